"""Sessions of admins: their end is exact, and what the store holds opens none."""

from collections.abc import AsyncIterator

import pytest

import oncekey
from oncekey.core.callers import Callers
from oncekey.core.ledger import Ledger
from oncekey.core.ports import Query
from oncekey.core.scope import PLATFORM_LEVEL
from oncekey.core.sessions import LIFE, Sessions
from tests.fixtures.frozen import FrozenClock

pytestmark = pytest.mark.anyio


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture(params=["memory", "sqlite"])
async def ledger(
    request: pytest.FixtureRequest, clock: FrozenClock, tmp_path: object
) -> AsyncIterator[Ledger]:
    url = "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/oncekey.db"
    opened = oncekey.open(url, clock=clock)
    yield opened
    await opened.aclose()


async def admin(callers: Callers, **options: float) -> tuple[str, str]:
    key, secret = await callers.create("default", project=PLATFORM_LEVEL, role="admin", **options)
    return key.id, secret


async def test_a_session_is_found_by_its_token(ledger: Ledger) -> None:
    callers = Callers(ledger)
    sessions = Sessions(ledger, callers)
    key_id, secret = await admin(callers)
    session = await sessions.open(secret)
    assert session is not None
    assert session.caller.key_id == key_id
    assert await sessions.find(session.token) == session
    assert await Sessions(ledger, Callers(ledger)).find(session.token) == session


async def test_it_ends_exactly(ledger: Ledger, clock: FrozenClock) -> None:
    callers = Callers(ledger)
    sessions = Sessions(ledger, callers)
    session = await sessions.open((await admin(callers))[1])
    assert session is not None
    clock.advance(int(LIFE * 1000) - 1)
    assert await sessions.find(session.token) is not None
    clock.advance(1)
    assert await sessions.find(session.token) is None


async def test_it_ends_with_the_key_it_was_opened_with(ledger: Ledger, clock: FrozenClock) -> None:
    callers = Callers(ledger)
    sessions = Sessions(ledger, callers)
    expiring = await sessions.open((await admin(callers, expires_in=60.0))[1])
    key_id, secret = await admin(callers)
    revoked = await sessions.open(secret)
    assert expiring is not None
    assert revoked is not None
    clock.advance(60_000)
    assert await sessions.find(expiring.token) is None
    await callers.revoke(key_id)
    assert await sessions.find(revoked.token) is None


async def test_closing_it_ends_it_at_once(ledger: Ledger) -> None:
    callers = Callers(ledger)
    sessions = Sessions(ledger, callers)
    session = await sessions.open((await admin(callers))[1])
    assert session is not None
    await sessions.close(session.token)
    assert await sessions.find(session.token) is None
    await sessions.close(session.token)


async def test_only_admins_open_one(ledger: Ledger) -> None:
    callers = Callers(ledger)
    sessions = Sessions(ledger, callers)
    _, secret = await callers.create("acme")
    for each in (secret, "", "oka_", "oka_" + "x" * 43, "\ud800"):
        assert await sessions.open(each) is None
    assert ledger.list(Query()) == []


@pytest.mark.parametrize("token", ["", "x", "a" * 64, "a" * 65, "ä" * 43, "\x00", "\ud800"])
async def test_a_made_up_token_opens_nothing(ledger: Ledger, token: str) -> None:
    assert await Sessions(ledger, Callers(ledger)).find(token) is None


async def test_nothing_that_is_kept_opens_a_session(ledger: Ledger) -> None:
    callers = Callers(ledger)
    sessions = Sessions(ledger, callers)
    _, secret = await admin(callers)
    session = await sessions.open(secret)
    assert session is not None
    (found,) = ledger.list(Query())
    kept = repr(found)
    assert session.token not in kept
    assert session.proof not in kept
    assert secret not in kept
    assert await sessions.find(found.record.ref.key) is None
