"""The audit feed: what operators did, newest first."""

from collections.abc import AsyncIterator

import pytest

import oncekey
from oncekey.core.audit import MAX_DETAILS, Audit
from oncekey.core.errors import InvalidInput
from oncekey.core.ledger import Ledger
from tests.fixtures.frozen import FrozenClock

pytestmark = pytest.mark.anyio


@pytest.fixture
async def ledger() -> AsyncIterator[Ledger]:
    opened = oncekey.open("memory://", clock=FrozenClock())
    yield opened
    await opened.aclose()


async def test_an_entry_says_who_did_what_to_what(ledger: Ledger) -> None:
    audit = Audit(ledger)
    entry = await audit.record(
        "cli:ann", "webhook.create", "wh_1", tenant="acme", provider="stripe", label=None
    )

    assert await audit.list() == [entry]
    assert entry[1:6] == (ledger.clock.now(), "cli:ann", "webhook.create", "wh_1", "acme")
    assert entry.facts == {"provider": "stripe"}


async def test_entries_are_paged_newest_first(ledger: Ledger) -> None:
    audit = Audit(ledger)
    made = [
        await audit.record("a", "b", str(number), tenant=tenant)
        for number, tenant in enumerate(["acme", None, "other", "acme"])
    ]

    assert await audit.list(limit=2) == [made[3], made[2]]
    assert await audit.list(before=made[2].id) == [made[1], made[0]]
    assert await audit.list("acme") == [made[3], made[0]]


async def test_blocking_code_writes_the_same(ledger: Ledger) -> None:
    audit = Audit(ledger)
    entry = audit.write("cli:ann", "retention.set", "webhook", seconds=60.0)
    assert await audit.list() == [entry]


async def test_text_is_bounded_and_cannot_act(ledger: Ledger) -> None:
    entry = await Audit(ledger).record("a\0", "b\x1b", "t" * 999)
    assert (entry.actor, entry.action, len(entry.target)) == ("a\ufffd", "b\ufffd", 300)
    entry = await Audit(ledger).record("a", "b", "c", all="x" * MAX_DETAILS)
    assert entry.facts == {"all": "x" * 300 + "…"}
    with pytest.raises(InvalidInput, match="details"):
        await Audit(ledger).record("a", "b", "c", all=[0] * MAX_DETAILS)
