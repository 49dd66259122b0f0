"""However many strange things come, nothing grows with them: neither what a process remembers, nor
its files and threads, nor what it counts by name."""

import functools
import gc
import http.client
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from oncekey.core.errors import OnceKeyError
from oncekey.core.scope import namespace_of
from oncekey.durable.cel import ConditionTrouble
from oncekey.durable.conditions import Subject, compile_condition
from oncekey.durable.expressions import compile_expression
from oncekey.edge.identity.gateway import Gateway
from oncekey.edge.target import path_of
from oncekey.upstream.framing import Heads, Malformed
from oncekey.wire.fingerprint import Fingerprint
from oncekey.wire.headers import key_in, lines_of
from oncekey.wire.identity import namespace_of_credentials
from oncekey.wire.rule import rule_of
from tests.fixtures.deliveries import NOW, PROVIDERS, secret_of, signed
from tests.fixtures.fuzzed import FuzzedSite
from tests.fixtures.fuzzing import TIMES

INPUTS = 20_000
REQUESTS = 3_000 * TIMES
MIB = 1 << 20
REFUSALS = (OnceKeyError, ConditionTrouble, Malformed)
GATEWAY, HEADS = Gateway(["10.0.0.0/8"]), Heads()
RULE = rule_of(key="optional")


def text_of(chance: random.Random) -> str:
    return "".join(chance.choices("ab.:/{}[]\"'%- \x00é€", k=chance.randrange(60)))


def raw_of(chance: random.Random) -> bytes:
    return text_of(chance).encode()


DOORS: list[Callable[[random.Random], Any]] = [
    lambda chance: key_in(lines_of([(b"idempotency-key", raw_of(chance))]).keys, RULE),
    lambda chance: path_of(b"/" + raw_of(chance)),
    lambda chance: namespace_of(f"t{chance.random()}"[:9], subject=f"user:{text_of(chance)}"),
    lambda chance: namespace_of_credentials([raw_of(chance)]),
    lambda chance: Fingerprint().of(
        "POST", raw_of(chance), raw_of(chance), raw_of(chance), raw_of(chance)
    ),
    lambda chance: GATEWAY.trusts(f"10.{chance.randrange(1 << 24)}"),
    lambda chance: HEADS.read(b"HTTP/1.1 200 %d\r\n\r\n" % chance.randrange(1 << 40)),
]
# Each of these takes a while; fewer of them are enough to fill what they remember.
SLOW_DOORS: list[Callable[[random.Random], Any]] = [
    lambda chance: compile_condition(f"input.a == {chance.randrange(1 << 40)}").holds(
        Subject({"a": 1}, "k", {})
    ),
    lambda chance: compile_expression(f"'{chance.random()}'", (("body", "dyn"),)),
    lambda chance: PROVIDERS["stripe"].verify(
        signed("stripe")._replace(body=raw_of(chance)), [secret_of("stripe")], NOW
    ),
]


def knock(doors: list[Callable[[random.Random], Any]], count: int, seed: int) -> None:
    chance = random.Random(seed)
    for each in range(count):
        with suppress(*REFUSALS):
            doors[each % len(doors)](chance)


def memories() -> Iterator[tuple[str, Any]]:
    """Whatever remembers its arguments, in every room that is loaded."""
    for name, module in list(sys.modules.items()):
        if name.startswith("oncekey"):
            for word, value in list(vars(module).items()):
                if isinstance(value, functools._lru_cache_wrapper):
                    yield f"{name}.{word}", value


def test_what_is_remembered_is_bounded_in_number() -> None:
    knock(DOORS, INPUTS, 1)
    knock(SLOW_DOORS, 6_000, 2)
    found = dict(memories())
    assert len(found) > 10
    endless = {
        name: each.cache_info().currsize
        for name, each in found.items()
        if each.cache_info().maxsize is None
    }
    # Those without a bound of their own are about what is there once.
    assert {name: size for name, size in endless.items() if size > 64} == {}
    assert len(HEADS.known) <= 256
    assert GATEWAY.trusts.cache_info().currsize <= 1024


def test_nothing_is_left_of_what_was_refused() -> None:
    """Once everything that remembers is full, the same again leaves no more objects."""
    knock(DOORS, INPUTS * 2, 3)
    gc.collect()
    before = len(gc.get_objects())
    knock(DOORS, INPUTS, 4)
    gc.collect()
    assert len(gc.get_objects()) - before < 2_000


# -- a server ------------------------------------------------------------------------------------


class Sizes:
    """Of a process, as its system tells."""

    def __init__(self, site: FuzzedSite) -> None:
        folder = Path(f"/proc/{site.served.pid}")
        status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
        self.memory = int(status["VmRSS"].split()[0]) << 10
        self.threads = int(status["Threads"])
        self.files = len(list((folder / "fd").iterdir()))
        self.series = len(_metrics(site))


def _metrics(site: FuzzedSite) -> list[str]:
    answer = site.session.get(f"{site.url}/metrics", headers=site.headers("admin"), timeout=20)
    assert answer.ok, answer.text
    return [line for line in answer.text.splitlines() if not line.startswith("#")]


def strange_request(
    chance: random.Random, site: FuzzedSite
) -> tuple[str, str, dict[str, str], bytes]:
    """To nowhere, by nobody, for a tenant there is not, or with what cannot be read."""
    number = chance.randrange(1 << 60)
    path, headers = chance.choice(
        [
            (f"/nowhere/{number}", {}),
            (f"/api/tenants/t{number}/workflows", {}),
            (f"/api/tenants/t{number}/promises", site.headers("caller")),
            (f"/api/v1/webhooks/p{number}/wh_{number}", {"Stripe-Signature": f"t={number},v1=00"}),
            (f"/api/v1/webhooks/stripe/{site.webhook}", {"Stripe-Signature": f"t={number},v1=00"}),
            (
                "/shop/orders",
                {"Authorization": f"Bearer ok_{number}", "Idempotency-Key": f"k{number}"},
            ),
            ("/shop/orders", {"X-API-Key": f"ok_{number:043}", "Idempotency-Key": "t-"}),
            ("/shop/orders", {**site.headers("caller"), "Idempotency-Key": f"t-{number}"}),
            (f"/shop/orders/by-idempotency-key/k{number}", site.headers("caller")),
            (f"/api/v1/operations/op_{number:016x}", site.headers("caller")),
            ("/api/tenants/default/promises", site.headers("caller")),
            (f"/console/{number}", {"Cookie": f"session={number}"}),
        ]
    )
    method = chance.choice(["GET", "POST", "POST", "PUT", f"M{number}"])
    return method, path, headers, chance.choice([b"", b"{", b'{"name": 1}', b"\xff" * 40])


def send_strange_requests(site: FuzzedSite, count: int, seed: int) -> None:
    chance = random.Random(seed)
    host = site.url.removeprefix("http://")
    line = http.client.HTTPConnection(host, timeout=20)
    for _ in range(count):
        method, path, headers, body = strange_request(chance, site)
        try:
            line.request(method, path, body, headers)
            answer = line.getresponse()
            answer.read()
            assert answer.status < 500, (method, path, answer.status)
        except (ConnectionError, http.client.HTTPException):
            line.close()
    line.close()


def test_a_server_is_as_large_after_strange_requests_as_before(fuzzed_site: FuzzedSite) -> None:
    send_strange_requests(fuzzed_site, REQUESTS, 1)
    before = Sizes(fuzzed_site)
    send_strange_requests(fuzzed_site, REQUESTS, 2)
    after = Sizes(fuzzed_site)
    assert after.memory - before.memory < 24 * MIB
    assert after.threads - before.threads <= 4
    assert after.files - before.files <= 8
    assert after.series == before.series
