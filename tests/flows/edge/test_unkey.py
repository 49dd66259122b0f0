"""Unkey over HTTP: whom it names is believed for a moment; while it cannot be asked, nobody is."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from oncekey.core.errors import ConfigurationError, IdentityUnavailable, Unauthorized
from oncekey.edge.identity.identities import Identities, Known
from oncekey.edge.identity.unkey import Unkey
from tests.fixtures.frozen import FrozenClock
from tests.fixtures.site import Heard, Reply, Site
from tests.fixtures.tokens import NOW

pytestmark = pytest.mark.anyio

ROOT_KEY = "unkey_root_9f3a"
KEY = "acme_3kVn8w2"
PEER = "203.0.113.9"


def data_of(**others: Any) -> dict[str, Any]:
    """As Unkey answers for a good key."""
    return {
        "valid": True,
        "code": "VALID",
        "keyId": "key_42",
        "keyspaceId": "ks_1",
        "name": "CI",
        "enabled": True,
        "meta": {"project_id": "shop", "plan": "pro"},
        "identity": {"id": "id_7", "externalId": "acme", "meta": {}, "ratelimits": []},
        **others,
    }


class FakeUnkey:
    """Knows keys by their text, as the service does behind its address."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.keys: dict[str, dict[str, Any]] = {KEY: data_of()}
        site.answer = self.answer

    def answer(self, heard: Heard) -> Reply:
        fits = (heard.method, heard.path) == ("POST", "/v2/keys.verifyKey")
        if not fits or heard.headers.get("content-type") != "application/json":
            return Reply(b"{}", 404)
        if heard.headers.get("authorization") != f"Bearer {ROOT_KEY}":
            return Reply(b'{"error":{"title":"Unauthorized"}}', 401)
        data = self.keys.get(json.loads(heard.body)["key"], {"valid": False, "code": "NOT_FOUND"})
        return Reply(json.dumps({"meta": {"requestId": "req_1"}, "data": data}).encode())


class Edge:
    def __init__(self, site: Site, clock: FrozenClock, **options: Any) -> None:
        self._site = site
        unkey = Unkey(options.pop("root_key", ROOT_KEY), clock, url=site.url, **options)
        self.identities = Identities(unkey=unkey, clock=clock)

    @property
    def asked(self) -> int:
        return len(self._site.heard)

    async def identify(self, key: str = KEY) -> Known:
        """As the edge does it: by memory, or by asking."""
        lines = [(b"authorization", f"Bearer {key}".encode())]
        known = self.identities.recall(lines, PEER) or await self.identities.identify(lines, PEER)
        assert known is not None
        return known


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock(NOW * 1000)


@pytest.fixture
def unkey(site: Site) -> FakeUnkey:
    return FakeUnkey(site)


@pytest.fixture
async def edge(unkey: FakeUnkey, clock: FrozenClock) -> AsyncIterator[Edge]:
    made = Edge(unkey.site, clock, timeout=20.0)
    yield made
    await made.identities.close()


# -- whom it names ---------------------------------------------------------------------------


async def test_a_valid_key_is_a_service_of_its_tenant_and_project(edge: Edge) -> None:
    found = await edge.identify()

    assert (found.namespace, found.role) == ("t-acme:shop:service:key_42", "caller")


@pytest.mark.parametrize(
    "others, namespace",
    [
        ({"meta": {}}, "t-acme:_tenant:service:key_42"),
        ({"meta": None}, "t-acme:_tenant:service:key_42"),
        ({"meta": {"project_id": None}}, "t-acme:_tenant:service:key_42"),
        ({"meta": {"subject": "user:ada"}}, "t-acme:_tenant:user:ada"),
        ({"meta": {"subject": "client:a:b"}}, "t-acme:_tenant:client:a%3Ab"),
        ({"keyId": "key:42"}, "t-acme:shop:service:key%3A42"),
        ({"expires": 0}, "t-acme:shop:service:key_42"),
        ({"expires": None, "credits": 7, "more": [1]}, "t-acme:shop:service:key_42"),
    ],
)
async def test_what_a_key_may_say(
    edge: Edge, unkey: FakeUnkey, others: dict[str, Any], namespace: str
) -> None:
    unkey.keys[KEY] = data_of(**others)

    assert (await edge.identify()).namespace == namespace


@pytest.mark.parametrize(
    "others",
    [
        *(
            {"valid": False, "code": code}
            for code in (
                "NOT_FOUND",
                "FORBIDDEN",
                "INSUFFICIENT_PERMISSIONS",
                "USAGE_EXCEEDED",
                "RATE_LIMITED",
                "DISABLED",
                "EXPIRED",
                "SOMETHING_NEW",
                None,
            )
        ),
        {"code": "RATE_LIMITED"},
        {"code": None},
        {"valid": False},
        {"enabled": False},
        {"expires": NOW * 1000},
        {"expires": 1},
        {"identity": None},
        {"identity": {}},
        {"identity": {"externalId": None}},
        {"identity": {"externalId": 7}},
        {"identity": {"externalId": "a:b"}},
        {"identity": {"externalId": "_tenant"}},
        {"identity": {"externalId": ""}},
        {"meta": {"project_id": "_tenant"}},
        {"meta": {"project_id": "_platform"}},
        {"meta": {"project_id": "a/b"}},
        {"meta": {"project_id": ["shop"]}},
        {"meta": {"subject": "ada"}},
        {"meta": {"subject": "robot:7"}},
        {"meta": {"subject": ["user:ada"]}},
        {"meta": {"subject": "service:oncekey"}},
        {"meta": {"subject": "service:webhook-ingest"}},
        {"keyId": "oncekey"},
        {"keyId": "webhook-ingest"},
        {"keyId": "a\nb"},
    ],
    ids=json.dumps,
)
async def test_what_makes_a_key_no_good(
    edge: Edge, unkey: FakeUnkey, others: dict[str, Any]
) -> None:
    unkey.keys[KEY] = data_of(**others)

    with pytest.raises(Unauthorized):
        await edge.identify()


async def test_the_log_may_say_why(edge: Edge, unkey: FakeUnkey) -> None:
    unkey.keys[KEY] = data_of(valid=False, code="RATE_LIMITED")

    with pytest.raises(Unauthorized, match="RATE_LIMITED"):
        await edge.identify()


# -- how long it is believed -----------------------------------------------------------------


async def test_a_good_key_is_asked_about_every_ten_seconds(edge: Edge, clock: FrozenClock) -> None:
    await edge.identify()
    clock.advance(9_999)
    await edge.identify()
    assert edge.asked == 1

    clock.advance(1)
    await edge.identify()
    assert edge.asked == 2


async def test_it_is_never_believed_beyond_its_expiry(
    edge: Edge, unkey: FakeUnkey, clock: FrozenClock
) -> None:
    unkey.keys[KEY] = data_of(expires=NOW * 1000 + 3_000)
    await edge.identify()
    clock.advance(2_999)
    await edge.identify()
    assert edge.asked == 1

    clock.advance(1)
    with pytest.raises(Unauthorized, match="expired"):
        await edge.identify()


async def test_a_refusal_is_asked_for_again(edge: Edge, unkey: FakeUnkey) -> None:
    unkey.keys[KEY] = data_of(valid=False, code="DISABLED")
    with pytest.raises(Unauthorized):
        await edge.identify()
    unkey.keys[KEY] = data_of()

    assert await edge.identify()


async def test_a_key_that_is_revoked_there_is_refused_ten_seconds_later(
    edge: Edge, unkey: FakeUnkey, clock: FrozenClock
) -> None:
    await edge.identify()
    del unkey.keys[KEY]
    clock.advance(10_000)

    with pytest.raises(Unauthorized, match="NOT_FOUND"):
        await edge.identify()


async def test_nothing_is_believed_longer_than_asked_for(
    unkey: FakeUnkey, clock: FrozenClock
) -> None:
    edge = Edge(unkey.site, clock, cache=0.0)
    await edge.identify()
    await edge.identify()
    await edge.identities.close()

    assert edge.asked == 2


async def test_many_with_one_key_ask_one_question(edge: Edge, site: Site) -> None:
    site.gate.clear()
    waiting = [asyncio.create_task(edge.identify()) for _ in range(20)]
    await asyncio.to_thread(site.arrived.acquire)
    waiting[0].cancel()
    await asyncio.wait(waiting[:1])
    site.gate.set()

    assert len({known.namespace for known in await asyncio.gather(*waiting[1:])}) == 1
    assert edge.asked == 1


async def test_each_key_has_its_own_answer(edge: Edge, unkey: FakeUnkey) -> None:
    names = [f"tenant-{n}" for n in range(20)]
    unkey.keys = {name: data_of(identity={"externalId": name}) for name in names}

    found = await asyncio.gather(*(edge.identify(name) for name in names))
    assert [known.identity.tenant for known in found] == names


# -- when it cannot be asked -----------------------------------------------------------------

BROKEN = {
    "an error": Reply(b"{}", 500),
    "too many": Reply(b"{}", 429),
    "refused": Reply(b"{}", 403),
    "bad request": Reply(b"{}", 400),
    "a page": Reply(b"<html>"),
    "nothing": Reply(b""),
    "a list": Reply(b"[]"),
    "no data": Reply(b'{"data":null}'),
    "no verdict": Reply(b'{"data":{"code":"VALID"}}'),
    "a text for a verdict": Reply(json.dumps({"data": data_of(valid="true")}).encode()),
    "a number for a verdict": Reply(json.dumps({"data": data_of(valid=1)}).encode()),
    "no id": Reply(json.dumps({"data": data_of(keyId=None)}).encode()),
    "no time": Reply(json.dumps({"data": data_of(expires="never")}).encode()),
    "two verdicts": Reply(b'{"data":{"valid":false,"valid":true,"code":"VALID"}}'),
    "huge": Reply(json.dumps({"data": data_of(name="x" * 300_000)}).encode()),
    "elsewhere": Reply(b"", 307, {"Location": "/v2/keys.verifyKey"}),
}


@pytest.mark.parametrize("reply", BROKEN.values(), ids=BROKEN.keys())
async def test_an_answer_that_is_none_lets_nobody_in(
    edge: Edge, unkey: FakeUnkey, clock: FrozenClock, reply: Reply
) -> None:
    good = unkey.site.answer
    unkey.site.answer = lambda _: reply
    with pytest.raises(IdentityUnavailable):
        await edge.identify()

    unkey.site.answer = good
    await edge.identify()
    unkey.site.answer = lambda _: reply
    await edge.identify()
    clock.advance(10_000)
    with pytest.raises(IdentityUnavailable):
        await edge.identify()


async def test_when_it_is_away_nobody_is_let_in(edge: Edge, site: Site) -> None:
    site.stop()

    with pytest.raises(IdentityUnavailable, match="not reached"):
        await edge.identify()


async def test_when_it_is_too_slow_nobody_is_let_in(unkey: FakeUnkey, clock: FrozenClock) -> None:
    unkey.site.gate.clear()
    edge = Edge(unkey.site, clock, timeout=0.05)

    with pytest.raises(IdentityUnavailable, match=r"did not answer in 0\.05 s"):
        await edge.identify()
    await edge.identities.close()


async def test_a_wrong_root_key_is_not_the_callers_fault(
    unkey: FakeUnkey, clock: FrozenClock
) -> None:
    edge = Edge(unkey.site, clock, root_key="wrong")

    with pytest.raises(IdentityUnavailable, match="answered 401"):
        await edge.identify()
    await edge.identities.close()


async def test_nobody_waits_for_ever_when_it_is_closed(edge: Edge, site: Site) -> None:
    site.gate.clear()
    waiting = asyncio.create_task(edge.identify())
    await asyncio.to_thread(site.arrived.acquire)
    await edge.identities.close()

    with pytest.raises(IdentityUnavailable, match="closed"):
        await waiting


async def test_neither_key_is_told(
    edge: Edge, unkey: FakeUnkey, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    told = ""
    for answer in (unkey.site.answer, lambda _: Reply(b"", 500)):
        unkey.site.answer = answer
        with pytest.raises((Unauthorized, IdentityUnavailable)) as caught:
            await edge.identify("acme_unknown")
        told += str(caught.value) + repr(caught.value)
    told += repr(vars(edge.identities._memory)) + caplog.text

    assert "answered 500" in told
    assert "acme_unknown" not in told
    assert ROOT_KEY not in told


async def test_a_key_has_a_length(edge: Edge) -> None:
    with pytest.raises(Unauthorized, match="longer than"):
        await edge.identify("x" * 513)
    assert edge.asked == 0


@pytest.mark.parametrize("root_key", ["", "  ", "a\nb", "schlüssel"])
def test_a_root_key_that_is_none(root_key: str) -> None:
    with pytest.raises(ConfigurationError, match="root key"):
        Unkey(root_key, FrozenClock())


def test_the_root_key_does_not_go_out_in_the_clear() -> None:
    with pytest.raises(ConfigurationError, match="plain http"):
        Unkey(ROOT_KEY, FrozenClock(), url="http://unkey.example")
