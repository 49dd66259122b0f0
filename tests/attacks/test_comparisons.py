"""A clock in the attacker's hand: what is compared with a secret takes as long whatever it is, and
whoever is refused has cost as many steps as anybody. Steps are counted; no clock is looked at."""

import ast
import hmac
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import oncekey
from oncekey.core.api_keys import PREFIXES
from oncekey.core.callers import Callers
from oncekey.core.errors import SignatureInvalid, Unauthorized
from oncekey.core.ledger import Ledger
from oncekey.core.sessions import Sessions
from oncekey.edge.identity.claims import ClaimRules
from oncekey.edge.identity.identities import Identities
from oncekey.edge.identity.jwk import ring_of_secret
from oncekey.edge.identity.jwks import GivenKeys
from oncekey.edge.identity.jwt import JwtVerifier
from oncekey.edge.identity.local_keys import LocalKeys
from oncekey.schedules.signing import sign, verify_signature
from oncekey.testing import memory_ledger
from oncekey.webhooks import signing
from tests.fixtures.frozen import FrozenClock
from tests.fixtures.tokens import NOW, SECRET, secret_key, signed

PACKAGE = Path(oncekey.__file__).parent
# Whatever knows a secret, and is handed something by a stranger.
ROOMS = (
    "console/guard.py",
    "core/api_keys.py",
    "core/callers.py",
    "core/sessions.py",
    "durable/tokens.py",
    "edge/identity",
    "schedules/signing.py",
    "webhooks",
    "wire/credentials.py",
)
SECRETS = frozenset(
    {"digest", "expected", "mac", "password", "proof", "secret", "secrets", "signature", "token"}
)
# How a signature is spelled, by what it was read as: nothing in it is secret.
ARGUED = frozenset({"as_base64(digest) == text"})

pytestmark = pytest.mark.anyio


# -- what is written -----------------------------------------------------------------------------


def modules() -> Iterator[Path]:
    for room in ROOMS:
        place = PACKAGE / room
        yield from [place] if place.is_file() else place.rglob("*.py")


def names_in(node: ast.expr) -> set[str]:
    """What an expression is called. What a call answers is called as the call is."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return {name.strip("_")}
        case ast.Call(func=function):
            inner = [names_in(each) for each in node.args]
            return names_in(function).union(*inner)
        case ast.Subscript(value=value):
            return names_in(value)
        case _:
            return set()


def comparisons_in(path: Path) -> Iterator[str]:
    """With what may be a secret, by means that stop at the first difference."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Compare):
            continue
        sides = [node.left, *node.comparators]
        plain = any(isinstance(each, ast.Eq | ast.NotEq) for each in node.ops)
        fixed = any(isinstance(each, ast.Constant) for each in sides)
        if plain and not fixed and any(names_in(each) & SECRETS for each in sides):
            yield ast.unparse(node)


def test_no_secret_is_compared_as_if_it_were_none() -> None:
    found = {each for path in modules() for each in comparisons_in(path)}
    assert found == ARGUED


@pytest.mark.parametrize(
    "code",
    ["a == secret", "self._token != given", "digest(x) == y", "secrets[0] == b", "f(mac) == c"],
)
def test_the_search_finds_what_it_is_for(tmp_path: Path, code: str) -> None:
    (tmp_path / "room.py").write_text(code)
    assert list(comparisons_in(tmp_path / "room.py")) == [code]


# -- what is done --------------------------------------------------------------------------------


class Counted:
    """`hmac.compare_digest`, with a count."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, one: Any, other: Any) -> bool:
        self.times += 1
        return COMPARE(one, other)


COMPARE = hmac.compare_digest


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    made = Counted()
    monkeypatch.setattr(hmac, "compare_digest", made)
    return made


@pytest.mark.parametrize("good", [0, 1, 2, None])
def test_which_secret_of_a_webhook_fits_takes_no_time_to_tell(
    counted: Counted, good: int | None
) -> None:
    keys = [b"first", b"second", b"third"]
    given = "00" * 32 if good is None else signing.as_hex(signing.mac(keys[good], b"body"))
    try:
        signing.check([given, "11" * 32], b"body", keys)
    except SignatureInvalid:
        assert good is None
    assert counted.times == 6


@pytest.mark.parametrize("good", [0, 1, None])
def test_nor_does_that_of_a_schedule(counted: Counted, good: int | None) -> None:
    secrets = ["a secret of schedules", "another of schedules"]
    given = sign("nobody's secret at all" if good is None else secrets[good], b"body", 100)
    assert verify_signature(secrets, given, b"body", now=100.0) is (good is not None)
    assert counted.times == 2


@pytest.mark.parametrize("secret", [SECRET, "another secret of more than thirty-two bytes, really"])
async def test_a_shared_secret_of_tokens_is_compared_as_one(counted: Counted, secret: str) -> None:
    keys, clock = GivenKeys(ring_of_secret(SECRET)), FrozenClock(NOW * 1000)
    token = signed(secret_key(secret), algorithm="HS256")
    try:
        await JwtVerifier(keys, ClaimRules(), clock).verify(token)
    except Unauthorized:
        assert secret != SECRET
    assert counted.times == 1


class Asked:
    """How often a store was asked."""

    def __init__(self, ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
        self.times = 0
        run = ledger.arun

        def arun(steps: Any) -> Any:
            self.times += 1
            return run(steps)

        monkeypatch.setattr(ledger, "arun", arun)

    def since(self) -> int:
        times, self.times = self.times, 0
        return times


async def test_an_api_key_that_was_is_refused_as_one_that_never_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A digest, one question to the store, and the same words: for all there are."""
    clock = FrozenClock()
    ledger = memory_ledger(clock)
    asked, callers = Asked(ledger, monkeypatch), Callers(ledger, cache_seconds=0)
    identities = Identities(api_keys=LocalKeys(callers))
    key, revoked = await callers.create("acme")
    await callers.revoke(key.id)
    _, expired = await callers.create("acme", expires_in=1)
    _, admin = await callers.create("acme", role="admin")
    clock.advance(1000)
    unknown = PREFIXES["caller"] + "x" * 43
    refusals = set()
    for secret in (unknown, revoked, expired):
        asked.since()
        assert await callers.identify(secret) is None
        assert asked.since() == 1
        with pytest.raises(Unauthorized) as refused:
            await identities.identify([(b"x-api-key", secret.encode())], "")
        assert asked.since() == 1
        refusals.add(str(refused.value))
    assert len(refusals) == 1
    # Of another form, it is nobody's whatever the store says: that is no secret.
    assert await callers.identify(admin) is None
    assert asked.since() == 0
    await ledger.aclose()


async def test_a_session_that_was_is_refused_as_one_that_never_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ledger = oncekey.open("memory://")
    asked, callers = Asked(ledger, monkeypatch), Callers(ledger)
    sessions = Sessions(ledger, callers)
    _, secret = await callers.create("default", role="admin")
    opened = await sessions.open(secret)
    assert opened is not None
    await sessions.close(opened.token)
    asked.since()
    for token in (opened.token, "x" * len(opened.token)):
        assert await sessions.find(token) is None
        assert asked.since() == 1
    await ledger.aclose()
