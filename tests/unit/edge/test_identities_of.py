"""`[auth]` becomes identities: each place for keys, each rule for tokens, Unkey and the gateway."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import oncekey
from oncekey.compose.identities import identities_of
from oncekey.config import load
from oncekey.core.callers import Callers
from oncekey.core.errors import ConfigurationError, Unauthorized
from oncekey.core.ledger import Ledger
from oncekey.edge.identity.identities import Identities
from tests.fixtures.frozen import FrozenClock
from tests.fixtures.tokens import (
    NOW,
    SECRET,
    claims_of,
    curve,
    jwks_of,
    pem_of,
    rsa,
    secret_key,
    signed,
)

pytestmark = pytest.mark.anyio

PEER = "10.1.2.3"


@pytest.fixture
async def ledger() -> AsyncIterator[Ledger]:
    opened = oncekey.open("memory://", clock=FrozenClock(NOW * 1000))
    yield opened
    await opened.aclose()


def built(ledger: Ledger, folder: Path, **auth: Any) -> Identities:
    path = folder / "oncekey.toml"
    path.touch()
    return identities_of(load(path, {}, {"auth": auth}), ledger)


async def found(identities: Identities, *lines: tuple[bytes, bytes]) -> str:
    known = await identities.identify(lines, PEER)
    assert known is not None
    return known.namespace


def bearer(secret: str) -> tuple[bytes, bytes]:
    return (b"authorization", f"Bearer {secret}".encode())


async def test_keys_may_be_in_each_of_these_places(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "keys.json").write_bytes(jwks_of(curve(), rsa(), secret_key()))
    (tmp_path / "key.pem").write_text(pem_of(rsa()))
    monkeypatch.setenv("TOKENS", SECRET)
    of_rsa, of_secret = signed(rsa()), signed(secret_key(), algorithm="HS512")
    for place, token in (
        ({"jwks_file": "keys.json"}, of_rsa),
        ({"jwks_file": str(tmp_path / "keys.json")}, of_rsa),
        ({"public_key": pem_of(rsa())}, of_rsa),
        ({"public_key_file": "key.pem"}, of_rsa),
        ({"secret": SECRET}, of_secret),
        ({"secret_env": "TOKENS"}, of_secret),
    ):
        identities = built(ledger, tmp_path, jwt=place)
        assert await found(identities, bearer(token)) == "t-acme:shop:user:ada"
        with pytest.raises(Unauthorized):
            await identities.identify([bearer(signed(rsa("attacker")))], PEER)


async def test_the_keys_of_an_address_are_not_asked_for_before_they_are_needed(
    ledger: Ledger, tmp_path: Path
) -> None:
    identities = built(ledger, tmp_path, jwt={"jwks_url": "https://id.invalid/keys"})

    await identities.close()


async def test_what_is_set_for_tokens_holds(ledger: Ledger, tmp_path: Path) -> None:
    names = {"tenant": "org.id", "project": "org.project", "subject": "email"}
    identities = built(
        ledger,
        tmp_path,
        jwt={
            "public_key": pem_of(rsa()),
            "algorithms": ["PS256"],
            "issuer": "https://id.example",
            "audience": ["orders", "billing"],
            "claims": names,
            "subject_type": "tenant_member",
            "leeway": "5s",
        },
    )

    def token(algorithm: str = "PS256", **others: Any) -> tuple[bytes, bytes]:
        claims = {
            "iss": "https://id.example",
            "aud": "billing",
            "org": {"id": "acme", "project": "shop"},
            "email": "ada@acme.example",
            "exp": NOW - 4,
            **others,
        }
        return bearer(signed(rsa(), claims, algorithm=algorithm))

    assert await found(identities, token()) == "t-acme:shop:tenant_member:ada@acme.example"
    for other in (
        token("RS256"),
        token(iss="https://other.example"),
        token(aud="other"),
        token(exp=NOW - 5),
        token(org={}),
    ):
        with pytest.raises(Unauthorized):
            await identities.identify([other], PEER)


async def test_a_fixed_tenant(ledger: Ledger, tmp_path: Path) -> None:
    identities = built(ledger, tmp_path, jwt={"secret": SECRET, "tenant": "solo"})
    token = signed(secret_key(), claims_of(tenant_id=None), algorithm="HS256")

    assert await found(identities, bearer(token)) == "t-solo:shop:user:ada"


async def test_without_settings_only_our_own_keys_count(ledger: Ledger, tmp_path: Path) -> None:
    identities = built(ledger, tmp_path)
    _, secret = await Callers(ledger).create("acme", subject="service:ci")

    assert await found(identities, bearer(secret)) == "t-acme:_tenant:service:ci"
    for other in (bearer(signed(rsa())), bearer("unkey_key"), (b"authorization", b"Basic YTpi")):
        with pytest.raises(Unauthorized):
            await identities.identify([other], PEER)
    named = [(b"x-tenant-id", b"acme"), (b"x-subject", b"user:ada")]
    assert await identities.identify(named, PEER) is None


async def test_a_gateway_under_names_of_its_own(ledger: Ledger, tmp_path: Path) -> None:
    headers = {"tenant": "X-Org", "project": "X-Work", "subject": "X-User"}
    identities = built(ledger, tmp_path, gateway={"trusted": ["10.0.0.0/8"], "headers": headers})

    lines = ((b"x-org", b"acme"), (b"x-work", b"shop"), (b"x-user", b"user:ada"))
    assert await found(identities, *lines) == "t-acme:shop:user:ada"
    assert identities.gateway is not None
    assert identities.gateway.headers == {b"x-org", b"x-work", b"x-user"}


async def test_a_key_that_is_revoked_by_this_process_is_refused_at_once(ledger: Ledger) -> None:
    callers = Callers(ledger)
    identities = identities_of(load(None, {}, {}), ledger, callers)
    key, secret = await callers.create("acme")
    assert await found(identities, bearer(secret))
    await callers.revoke(key.id)

    assert identities.recall([bearer(secret)], PEER) is None
    with pytest.raises(Unauthorized):
        await identities.identify([bearer(secret)], PEER)


async def test_unkey_needs_its_root_key(
    ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    auth = {"api_keys": {"provider": "unkey"}, "unkey": {"root_key_env": "ROOT"}}
    monkeypatch.delenv("ROOT", raising=False)
    with pytest.raises(ConfigurationError, match=r"auth\.unkey\.root_key_env: there is no ROOT"):
        built(ledger, tmp_path, **auth)

    monkeypatch.setenv("ROOT", "unkey_root")
    identities = built(ledger, tmp_path, **auth)
    with pytest.raises(Unauthorized, match="longer than"):
        await identities.identify([bearer("k" * 600)], PEER)


@pytest.mark.parametrize(
    "jwt, message",
    [
        ({"jwks_file": "missing.json"}, r"jwks_file: .* cannot be read: No such file"),
        ({"jwks_file": "page.html"}, r"jwks_file: .* is no JWKS"),
        ({"jwks_file": "empty.json"}, r"jwks_file: .* has no key that can be used"),
        ({"jwks_file": "huge.json"}, r"jwks_file: .* is larger than"),
        ({"jwks_file": "."}, r"jwks_file: .* cannot be read: Is a directory"),
        ({"public_key_file": "page.html"}, r"public_key cannot be used"),
        ({"public_key_file": "private.pem"}, r"is a private key"),
        ({"secret_env": "NOT_THERE"}, r"secret_env: there is no NOT_THERE"),
    ],
)
def test_keys_that_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jwt: dict[str, str], message: str
) -> None:
    monkeypatch.delenv("NOT_THERE", raising=False)
    (tmp_path / "page.html").write_text("<html>")
    (tmp_path / "empty.json").write_text('{"keys": []}')
    (tmp_path / "huge.json").write_bytes(b" " * (1 << 20))
    (tmp_path / "private.pem").write_bytes(rsa().as_pem(private=True))
    ledger = oncekey.open("memory://")

    with pytest.raises(ConfigurationError, match=message):
        built(ledger, tmp_path, jwt=jwt)
    ledger.close()
