"""Addresses of keys that talk nonsense or send elsewhere: nothing changes, no stranger is asked."""

import gzip
import itertools
import logging
from collections.abc import AsyncIterator

import pytest

from oncekey.core.errors import ConfigurationError, IdentityUnavailable
from oncekey.edge.identity.jwks import MAX_JWKS, FetchedKeys
from tests.fixtures.frozen import FrozenClock
from tests.fixtures.published import SECOND, Edge, edge_of, publish, token
from tests.fixtures.site import Reply, Site
from tests.fixtures.tokens import jwks_of, rsa, secret_key, signed

pytestmark = pytest.mark.anyio


@pytest.fixture
async def edge(site: Site) -> AsyncIterator[Edge]:
    async with edge_of(site) as made:
        yield made


# -- nonsense --------------------------------------------------------------------------------

GOOD = jwks_of(SECOND)
NONSENSE = {
    "a page": Reply(b"<html>maintenance</html>"),
    "nothing": Reply(b""),
    "no list": Reply(b'{"keys":{}}'),
    "twice": Reply(b'{"keys":[],"keys":[]}'),
    "cut off": Reply(GOOD[:-20]),
    "an error": Reply(GOOD, 500),
    "not found": Reply(GOOD, 404),
    "another success": Reply(GOOD, 203),
    "packed": Reply(gzip.compress(GOOD), headers={"Content-Encoding": "gzip"}),
    "huge": Reply(GOOD + b" " * MAX_JWKS),
    "endless": Reply(itertools.repeat(b" " * 65_536)),
    "a bomb": Reply(b'{"keys":' + b"[" * 100_000),
    "too many": Reply(b'{"keys":[' + b",".join([b"{}"] * 65) + b"]}"),
    "no text": Reply(b"\xff\xfe\x00"),
    "null": Reply(b"null"),
}


@pytest.mark.parametrize("reply", NONSENSE.values(), ids=NONSENSE.keys())
async def test_nonsense_changes_nothing(edge: Edge, site: Site, reply: Reply) -> None:
    good = site.answer
    site.answer = lambda _: reply
    with pytest.raises(IdentityUnavailable):
        await edge.believes(token())

    site.answer = good
    edge.clock.advance(1_000)
    assert await edge.believes(token())
    site.answer = lambda _: reply
    edge.clock.advance(600_000)
    assert await edge.believes(token())
    assert not await edge.believes(token(SECOND))


async def test_an_answer_that_says_it_is_longer_than_it_is(edge: Edge, site: Site) -> None:
    site.answer = lambda _: Reply([GOOD], headers={"Content-Length": str(len(GOOD) + 5)})

    with pytest.raises(IdentityUnavailable, match="not reached"):
        await edge.believes(token(SECOND))


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_nobody_is_sent_elsewhere_for_keys(
    edge: Edge, site: Site, other_site: Site, status: int
) -> None:
    publish(other_site, rsa("attacker"))
    there = {"Location": f"{other_site.url}/keys"}
    site.answer = lambda _: Reply(jwks_of(rsa("attacker")), status, there)

    with pytest.raises(IdentityUnavailable, match="a redirect, which is not followed"):
        await edge.believes(signed(rsa("attacker")))
    assert other_site.heard == []


async def test_proxies_of_the_environment_are_not_asked(
    edge: Edge, other_site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(other_site, rsa("attacker"))
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, other_site.url)

    assert await edge.believes(token())
    assert other_site.heard == []


async def test_a_header_of_a_token_leads_nowhere(edge: Edge, other_site: Site) -> None:
    attacker = rsa("attacker")
    publish(other_site, attacker)
    for name in ("jku", "x5u"):
        header = {"alg": "RS256", "kid": "attacker", name: f"{other_site.url}/keys"}
        assert not await edge.believes(signed(attacker, header=header))
    assert other_site.heard == []


async def test_a_secret_that_is_published_signs_nothing(edge: Edge, site: Site) -> None:
    shared = secret_key()
    document = jwks_of(shared)
    assert b'"k"' in document
    site.answer = lambda _: Reply(document)

    assert not await edge.believes(signed(shared, algorithm="HS256"))


# -- addresses -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    ["http://id.example/keys", "http://10.0.0.7/keys", "http://127.0.0.1.evil.example/keys",
     "http://localhost.evil.example/", "ftp://127.0.0.1/keys", "file:///etc/keys", "keys", "",
     "https://", "https://user:pass@id.example/keys", "http://[::1", "https://id.example:port/"],
)  # fmt: skip
def test_addresses_that_are_not_asked(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"auth\.jwt\.jwks_url"):
        FetchedKeys(url, FrozenClock())


@pytest.mark.parametrize(
    "url",
    ["https://id.example/keys", "http://127.0.0.1:9/keys", "http://localhost/k", "http://[::1]/k"],
)
def test_addresses_that_are_asked(url: str) -> None:
    assert FetchedKeys(url, FrozenClock())
    assert FetchedKeys("http://id.example/keys", FrozenClock(), insecure=True)


async def test_nothing_of_a_token_is_logged(
    edge: Edge, site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "oncekey")
    secret = token()
    site.answer = lambda heard: Reply(b"", 500)
    with pytest.raises(IdentityUnavailable) as caught:
        await edge.believes(secret)

    told = caplog.text + str(caught.value)
    assert "answered 500" in told
    assert not any(part in told for part in secret.split("."))
