"""Those who take up as much as they can: connections, heads, bodies, memory, the patience of
others. Whatever they do has an end, and everybody else is served meanwhile."""

import itertools
import json
import resource
from collections.abc import Callable, Iterator
from typing import Self

import pytest

from tests.fixtures.behind import DO
from tests.fixtures.stronghold import Stronghold, bearer, head
from tests.fixtures.wiretap import Wire

STRONGHOLD = {
    "more": """
[upstreams.narrow]
url = "{url}"
timeout = "10s"
max_connections = 4

[[routes]]
path = "/narrow/{rest:path}"
methods = ["GET"]
upstream = "narrow"
policy = "PROHIBITED"
"""
}
MANY = 2000


@pytest.fixture(autouse=True)
def _room_for_sockets() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class Crowd(list[Wire]):
    """Connections that are closed together, whatever happens."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for wire in self:
            wire.socket.close()


def is_served(fort: Stronghold, key: str) -> bool:
    """Whether somebody who keeps to the rules is."""
    return fort.ask(key=key, bearer=bearer()).status_code == 201


# -- connections ---------------------------------------------------------------------------------


def test_the_silent_do_not_stop_others(fort: Stronghold) -> None:
    with Crowd(fort.wire() for _ in range(MANY)) as crowd:
        assert is_served(fort, "silence")
        for wire in crowd:
            assert wire.answer().code == "request-timeout"
            assert wire.is_over()
    assert len(fort.effects) == 1


def test_it_takes_as_many_connections_as_it_may(fort: Stronghold) -> None:
    with open(f"/proc/{fort.served.pid}/limits") as file:  # noqa: PTH123 - a file of the kernel
        (line,) = [line for line in file if line.startswith("Max open files")]
    soft, hard = line.split()[3:5]
    assert soft == hard


SLOW = {
    "a method": b"POS",
    "a target": b"POST /api/v1/ord",
    "a name": b"POST /api/v1/orders HTTP/1.1\r\nHos",
    "a value": b"POST /api/v1/orders HTTP/1.1\r\nHost: ed",
    "no empty line": head(key="k")[:-2],
    "line breaks": b"\r\n\r\n\r\n",
    "a body": head(key="k", length=5) + b"{",
    "a body of nobody": head(key="k", length=5, credentials=None) + b"{",
    "a large body": head(key="k", length=500_000) + b"{",
    "chunks": head("/api/v1/orders", "Transfer-Encoding: chunked", key="k", length=None)
    + b"5\r\n{",
    "a body that is asked for": head("/api/v1/orders", "Expect: 100-continue", key="k", length=9),
    "a body of 1 GB": head(key="k", length=1 << 30) + b"{",
    "a body of 1 GB for a handler": head("/api/v1/pings", length=1 << 30),
}


def test_whoever_is_slow_is_not_waited_for(fort: Stronghold) -> None:
    before = fort.memory
    with Crowd(fort.wire(each) for each in SLOW.values() for _ in range(20)) as crowd:
        assert is_served(fort, "slow")
        for wire in crowd:
            assert wire.answer().status in {401, 408}
            assert wire.is_over()
    assert len(fort.effects) == 1
    assert fort.memory - before < 32


FORM = "Content-Type: application/x-www-form-urlencoded"
# By the path, and whether one has to be an admin to be listened to.
UNREAD = {
    "/console/sign-in": False,
    "/console/sign-out": False,
    "/api/admin/apikeys": True,
    "/api/admin/webhooks": True,
}


@pytest.mark.parametrize("target", UNREAD)
def test_a_body_that_does_not_come_is_not_waited_for_anywhere(
    fort: Stronghold, target: str
) -> None:
    """The console reads forms of anybody, and the API those of callers that are known."""
    admin = fort.admin if UNREAD[target] else None
    for more in (b"", b"secret=o"):
        with fort.wire(head(target, FORM, credentials=admin, length=1000) + more) as wire:
            assert wire.answer().code == "request-timeout"
            assert wire.is_over()


def test_whoever_leaves_in_the_middle_leaves_no_trace(fort: Stronghold) -> None:
    """A form that anybody can begin: the fort has no trace in its log when it is over."""
    for _ in range(3):
        with fort.wire(head("/console/sign-in", FORM, credentials=None, length=1000)) as wire:
            wire.send(b"secret=")
    assert is_served(fort, "left")


def test_a_byte_now_and_then_does_not_keep_a_head_going(fort: Stronghold) -> None:
    """Time runs for the whole of it, not for each byte. The pace is that of other requests."""
    with fort.wire(b"POST /api/v1/orders HTTP/1.1\r\nX-Slow: ") as wire:
        wire.socket.settimeout(0.01)
        while True:
            wire.send(b"a")
            assert fort.ask("GET", "/api/v1/orders", bearer=bearer()).status_code == 200
            try:
                answer = wire.answer()
                break
            except TimeoutError:
                continue
        assert answer.code == "request-timeout"


def test_nobody_rests_here_for_ever(fort: Stronghold) -> None:
    """An answered connection that gets a byte now has somebody who waits for the next one."""
    read = head("/api/v1/orders", method="GET", length=None)
    with Crowd() as crowd:
        for request, more in (
            (read, b""),
            (read, b"\r\n"),
            (read, b"G"),
            (head("/nothing", length=1 << 20, credentials=None), b"a"),
            (head("/api/v1/webhooks/stripe/wh_x", length=1 << 20, credentials=None), b"a"),
            (head("/api/v1/orders", length=1 << 20, credentials=None), b"a"),
            (head("/api/v1/orders", "Connection: upgrade", "Upgrade: h2c", method="GET"), b"P"),
        ):
            wire = fort.wire(request)
            crowd.append(wire)
            assert wire.answer().status in {200, 401, 404}
            wire.send(more)
        for wire in crowd:
            assert wire.is_over() or wire.answer().code == "request-timeout"


# -- heads ---------------------------------------------------------------------------------------

LARGE = {
    "a value": head("/api/v1/orders", "X-Large: " + "a" * 70_000, key="k"),
    "a value without an end": head()[:-2] + b"X-Large: " + b"a" * 5_000_000,
    "a name without an end": head()[:-2] + b"X" * 5_000_000,
    "a target without an end": b"GET /" + b"a" * 5_000_000,
    "a cookie": head("/api/v1/orders", "Cookie: " + "a=b; " * 20_000, key="k"),
    "a token": head(credentials="a." * 40_000, key="k"),
    "lines": head("/api/v1/orders", *(f"X-{number}: 1" for number in range(10_000)), key="k"),
    "the same line": head("/api/v1/orders", *["X-Same: 1"] * 10_000, key="k"),
    "lines that name others": head(
        "/api/v1/orders", *(f"Connection: x-{number}" for number in range(10_000)), key="k"
    ),
    "a few too many lines": head("/api/v1/orders", *["X-Same: 1"] * 130, key="k"),
    "keys": head("/api/v1/orders", *["Idempotency-Key: k"] * 10_000),
    "empty lines": head("/api/v1/orders", *(f"X-{number}:" for number in range(200)), key="k"),
}


@pytest.mark.parametrize("name", LARGE)
def test_a_head_has_an_end(fort: Stronghold, name: str) -> None:
    before = fort.memory
    with fort.wire(LARGE[name]) as wire:
        assert wire.answer().code == "request-head-too-large"
        assert wire.is_over()
    assert is_served(fort, f"large-{[*LARGE].index(name)}")
    assert len(fort.effects) == 1
    assert fort.memory - before < 16


def test_a_large_head_in_many_pieces_is_large_too(fort: Stronghold) -> None:
    with fort.wire(head(key="k")[:-2]) as wire:
        for number in range(200):
            wire.send(f"X-{number}: {'a' * 1000}\r\n".encode())
        assert wire.send(b"\r\n").answer().code == "request-head-too-large"
    assert fort.effects == []


def test_a_head_that_just_fits_is_taken(fort: Stronghold) -> None:
    lines = [f"X-{number}: {'a' * 480}" for number in range(110)]
    with fort.wire(head("/api/v1/notes", *lines)) as wire:
        assert wire.answer().status == 201
    (effect,) = fort.effects
    assert effect["x-109"] == ["a" * 480]


# -- answers -------------------------------------------------------------------------------------


def test_answers_that_nobody_reads_do_not_pile_up(fort: Stronghold) -> None:
    """One answer of 900 kB is kept, and asked for 600 times in 100 kB of requests."""
    do = f"{DO}: " + json.dumps({"chunks": ["x" * 9000], "times": 100})
    with fort.wire(head("/api/v1/orders", do, key="heavy")) as wire:
        assert len(wire.answer().body) == 900_000
    again = head(key="heavy")
    for _ in range(2):
        with fort.wire(again) as wire:
            assert wire.answer()["idempotent-replayed"] == "true"
    before = fort.memory
    with Crowd(fort.wire(again * 600, receive_buffer=4096) for _ in range(3)):
        assert is_served(fort, "unread")
        assert fort.ask("GET", "/api/v1/orders", bearer=bearer()).status_code == 200
        assert fort.memory - before < 64


def test_nor_do_they_when_each_is_asked_for_by_itself(fort: Stronghold) -> None:
    """What repeats the request before it is answered at once, while its client takes answers."""
    do = f"{DO}: " + json.dumps({"chunks": ["x" * 9000], "times": 100})
    with fort.wire(head("/api/v1/orders", do, key="heavier")) as wire:
        assert len(wire.answer().body) == 900_000
    again = head(key="heavier")
    with fort.wire(again) as wire:
        assert wire.answer()["idempotent-replayed"] == "true"
    before = fort.memory
    with fort.wire(again, receive_buffer=4096) as wire:
        for _ in range(120):
            assert fort.ask("GET", "/api/v1/orders", bearer=bearer()).status_code == 200
            wire.send(again)
        assert fort.memory - before < 64


@pytest.mark.parametrize("line", ["X-Way: short", "Expect: the long way"])
def test_whoever_does_not_read_keeps_no_service_busy(fort: Stronghold, line: str) -> None:
    """There are four connections to it, and eight clients who let an endless answer stand."""
    do = f"{DO}: " + json.dumps({"chunks": ["x" * 30_000], "times": 1_000_000})
    endless = head("/narrow/endless", do, line, method="GET", length=None)
    with Crowd(fort.wire(endless, receive_buffer=4096) for _ in range(8)):
        for number in range(3):
            answer = fort.ask("GET", f"/narrow/{number}", bearer=bearer())
            assert answer.status_code == 200
    short = [each.target for each in fort.effects if "endless" not in each.target]
    assert short == ["/narrow/0", "/narrow/1", "/narrow/2"]


def test_whoever_leaves_keeps_no_service_busy(fort: Stronghold) -> None:
    do = f"{DO}: " + json.dumps({"chunks": ["x" * 3000], "times": 1_000_000, "pause": 0.001})
    for line in ("X-Way: short", "Expect: the long way"):
        endless = head("/narrow/endless", do, line, method="GET", length=None)
        for wire in [fort.wire(endless) for _ in range(8)]:
            wire.socket.recv(1000)
            wire.socket.close()
    assert fort.ask("GET", "/narrow/after", bearer=bearer()).status_code == 200


# -- memory --------------------------------------------------------------------------------------


def flood(fort: Stronghold, requests: Iterator[bytes], rounds: int, size: int = 20) -> set[int]:
    statuses = set()
    with fort.wire() as wire:
        for _ in range(rounds):
            wire.send(b"".join(next(requests) for _ in range(size)))
            statuses |= {wire.answer().status for _ in range(size)}
    return statuses


def numbered(write: Callable[[int], bytes]) -> Iterator[bytes]:
    return map(write, itertools.count())


FLOODS: dict[str, tuple[Callable[[int], bytes], set[int]]] = {
    "paths of nobody": (
        lambda n: head(f"/api/v1/orders/{n}{'x' * 16_000}/pay", credentials=None, key="k"),
        {401},
    ),
    "paths that lead nowhere": (lambda n: head(f"/{n}{'x' * 16_000}", credentials=None), {404}),
    "queries of nobody": (
        lambda n: head(f"/api/v1/orders?{n}{'x' * 16_000}", credentials=None, key="k"),
        {401},
    ),
    "tokens": (lambda n: head(key="k", credentials=f"{n}{'x' * 16_000}.x.x"), {401}),
    "API keys": (lambda n: head(key="k", credentials=f"ok_{n}{'x' * 16_000}"), {401}),
    "names of lines": (
        lambda n: head("/api/v1/orders", f"X-{n}{'x' * 16_000}: 1", key="k", credentials=None),
        {401},
    ),
    "names of lines that go on": (
        lambda n: head("/api/v1/orders", f"X-{n}{'x' * 16_000}: 1", method="GET", length=None),
        {200},
    ),
    "keys that are none": (lambda n: head(key=f"{n}{'x' * 16_000}"), {400}),
    "webhooks": (lambda n: head(f"/api/v1/webhooks/stripe/wh_{n}{'x' * 100}"), {404}),
    "operations": (lambda n: head(f"/api/v1/operations/op_{n:016x}", method="GET"), {404}),
    "keys that nobody used": (
        lambda n: head(f"/api/v1/orders/by-idempotency-key/{n}", method="GET"),
        {404},
    ),
    "decisions": (
        lambda n: head(
            "/edge/decide",
            "X-Original-Method: POST",
            f"X-Original-URI: /api/v1/orders/{n}{'x' * 16_000}/pay",
            method="GET",
            key=f"k{n}",
        ),
        {200},
    ),
}


@pytest.mark.parametrize("name", FLOODS)
def test_what_is_made_up_is_not_remembered(fort: Stronghold, name: str) -> None:
    """800 of them, most of 16 kB: all of it would be 13 MB, and as much again as text."""
    write, expected = FLOODS[name]
    requests = numbered(write)
    assert flood(fort, requests, 5) == expected
    before = fort.memory
    assert flood(fort, requests, 40) == expected
    assert fort.memory - before < 10
    assert all(each.method == "GET" for each in fort.effects)


def test_a_crowd_of_requests_at_once_is_answered_one_by_one(fort: Stronghold) -> None:
    before = fort.memory
    with fort.wire(head("/api/v1/orders", method="GET", length=None) * 500) as wire:
        assert {wire.answer().status for _ in range(500)} == {200}
    assert len(fort.effects) == 500
    assert fort.memory - before < 32


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 60_000,
        b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
        b'{"a": ' + b"9" * 60_000 + b"}",
        b'{"a": 1e999999999}',
        b'{"a": -1e-999999999}',
        b'{"a": "' + b"\\ud800" * 9000 + b'"}',
        b"{" + b",".join(b'"%d": 1' % number for number in range(6000)) + b"}",
        b'{"a": 1' + b', "a": 1' * 6000 + b"}",
        b"\xff" * 60_000,
        b"\0" * 60_000,
    ],
    ids=range(10),
)
def test_a_body_that_is_hard_to_read_is_only_a_body(fort: Stronghold, body: bytes) -> None:
    """It is read for its fingerprint, and goes on as it came."""
    key = f"hard-{len(body)}-{body[:9].hex()}"
    request = head("/api/v1/orders", "Content-Type: application/json", key=key, length=len(body))
    for _ in range(2):
        with fort.wire(request + body) as wire:
            assert wire.answer().status == 201
    (effect,) = fort.effects
    assert effect.body == body
