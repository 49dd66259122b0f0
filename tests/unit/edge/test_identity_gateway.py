"""Gateways: whom they name counts when they are who they are said to be."""

import pytest

from oncekey.core.errors import ConfigurationError, Unauthorized
from oncekey.edge.identity.gateway import Gateway
from oncekey.edge.identity.identities import Identities
from oncekey.edge.identity.known import known_of
from tests.fixtures.credentials import PEER, AnyKey, Lines, bearer
from tests.fixtures.frozen import FrozenClock

TRUSTED = ["127.0.0.1", "10.0.0.0/8", "::1", "fd00::/8"]


def lines(tenant: bytes = b"acme", subject: bytes = b"user:ada", *more: bytes) -> Lines:
    return [
        (b"host", b"shop"),
        (b"x-tenant-id", tenant),
        (b"x-subject", subject),
        *((b"x-project-id", project) for project in more),
    ]


@pytest.mark.parametrize(
    "peer", ["127.0.0.1", "10.255.0.1", "::1", "fd12::7", "::ffff:10.0.0.1", "::ffff:7f00:1"]
)
def test_addresses_that_are_listed(peer: str) -> None:
    assert Gateway(TRUSTED).trusts(peer)


@pytest.mark.parametrize(
    "peer",
    ["127.0.0.2", "11.0.0.1", "192.168.0.1", "::2", "fe80::1", "::ffff:11.0.0.1", "", "unix:",
     "/run/edge.sock", "localhost", "10.0.0.1, 127.0.0.1", "10.0.0.1:80", " 10.0.0.1", "010.0.0.1",
     "10.1", "167772161", "0x0a000001", "10.0.0.1\0", "[::1]", "::10.0.0.1", "testclient"],
)  # fmt: skip
def test_all_others(peer: str) -> None:
    assert not Gateway(TRUSTED).trusts(peer)


def test_nobody_is_trusted_unless_listed() -> None:
    assert not Gateway([]).trusts("127.0.0.1")


def test_tenant_subject_and_project() -> None:
    gateway = Gateway(TRUSTED)

    for given, namespace in (
        (lines(), "t-acme:_tenant:user:ada"),
        (lines(b"acme", b"service:ci", b"shop"), "t-acme:shop:service:ci"),
        (lines(b" acme ", b"ada", b""), "t-acme:_tenant:user:ada"),
        (lines(b"acme", "ädå".encode()), "t-acme:_tenant:user:%C3%A4d%C3%A5"),
        (lines(b"acme", b"user:a:b"), "t-acme:_tenant:user:a%3Ab"),
    ):
        found = gateway.known_in(given)
        assert found is not None
        assert (found.namespace, found.role) == (namespace, "caller")


@pytest.mark.parametrize(
    "given", [[], lines(b""), lines(subject=b""), lines()[:2], [lines()[0], lines()[2]]]
)
def test_without_tenant_or_subject_nobody_is_named(given: Lines) -> None:
    assert Gateway(TRUSTED).known_in(given) is None


@pytest.mark.parametrize(
    "given",
    [
        lines(b"a:b"),
        lines(b"t-acme:shop"),
        lines(b"a%3Ab"),
        lines("аcme".encode()),
        lines(b"acme, other"),
        lines(b"\xff"),
        lines(b"acme", b"service:oncekey"),
        lines(b"acme", b"service:webhook-ingest"),
        lines(b"acme", b"user:"),
        lines(b"acme", b"user:a\0"),
        lines(b"acme", b"user:a\rb"),
        lines(b"acme", b"x" * 2000),
        lines(b"acme", b"user:ada", b"_tenant"),
        lines(b"acme", b"user:ada", b"_platform"),
        lines(b"acme", b"user:ada", b"shop:user"),
        lines(b"acme", b"user:ada", b"shop", b"shop"),
        [*lines(), (b"x-subject", b"user:ada")],
        [*lines(), (b"x-tenant-id", b"acme")],
    ],
)
def test_names_that_cannot_be_or_are_there_twice(given: Lines) -> None:
    with pytest.raises(Unauthorized):
        Gateway(TRUSTED).known_in(given)


def test_the_headers_may_have_other_names() -> None:
    gateway = Gateway(TRUSTED, tenant="X-Org", project="X-Work", subject="X-User")

    assert gateway.headers == {b"x-org", b"x-work", b"x-user"}
    assert gateway.known_in(lines()) is None
    assert gateway.known_in([(b"x-org", b"acme"), (b"x-user", b"ada")]) is not None


def test_one_header_cannot_be_two() -> None:
    with pytest.raises(ConfigurationError, match="three headers"):
        Gateway(TRUSTED, tenant="X-User", subject="x-user")


@pytest.mark.parametrize("text", ["", "gateway", "10.0.0.1/8", "10.0.0.0/33", "300.0.0.1"])
def test_what_is_no_network(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"auth\.gateway\.trusted"):
        Gateway([text])


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture
def any_key(clock: FrozenClock) -> AnyKey:
    return AnyKey(clock)


# -- beside credentials ---------------------------------------------------------------------


@pytest.mark.anyio
async def test_a_trusted_gateway_comes_first(clock: FrozenClock, any_key: AnyKey) -> None:
    identities = Identities(unkey=any_key, gateway=Gateway(["10.0.0.0/8"]), clock=clock)
    named: Lines = [(b"x-tenant-id", b"acme"), (b"x-subject", b"user:ada")]
    gateway = known_of("acme", None, "user:ada")

    assert await identities.identify([*named, *bearer("other")], "10.1.2.3") == gateway
    assert identities.recall([*named, *bearer("other")], "10.1.2.3") == gateway
    assert any_key.asked == []


@pytest.mark.anyio
async def test_without_its_headers_the_credential_counts(
    clock: FrozenClock, any_key: AnyKey
) -> None:
    identities = Identities(unkey=any_key, gateway=Gateway(["10.0.0.0/8"]), clock=clock)
    named: Lines = [(b"x-tenant-id", b"acme"), (b"x-subject", b"user:ada")]

    for lines, peer in ((named, PEER), (named[:1], "10.1.2.3"), (named, "")):
        assert identities.recall(lines, peer) is None
        assert await identities.identify(lines, peer) is None
        found = await identities.identify([*lines, *bearer("other")], peer)
        assert found is not None
        assert found.identity.tenant == "other"


@pytest.mark.anyio
async def test_where_only_gateways_are_trusted_credentials_are_refused(clock: FrozenClock) -> None:
    identities = Identities(gateway=Gateway(["10.0.0.0/8"]), clock=clock)

    with pytest.raises(Unauthorized):
        await identities.identify(bearer("acme"), PEER)


@pytest.mark.anyio
async def test_a_gateway_that_says_two_things_is_refused(clock: FrozenClock) -> None:
    identities = Identities(gateway=Gateway(["10.0.0.0/8"]), clock=clock)
    lines: Lines = [(b"x-tenant-id", b"acme"), (b"x-tenant-id", b"other"), (b"x-subject", b"ada")]

    assert identities.recall(lines, "10.1.2.3") is None
    with pytest.raises(Unauthorized, match="two x-tenant-id"):
        await identities.identify(lines, "10.1.2.3")
