"""Who may read the metrics, also while the store is away."""

from typing import Any

import pytest

import oncekey
from oncekey import Ledger, StoreUnavailable
from oncekey.compose.readers import Readers
from oncekey.core.callers import Callers
from oncekey.stores.values import JsonCodec
from tests.fixtures.http.cut import CutStore

pytestmark = pytest.mark.anyio


def bearer(secret: str) -> tuple[tuple[bytes, bytes], ...]:
    return ((b"authorization", f"Bearer {secret}".encode()),)


async def test_an_admin_is_let_in_for_an_hour_more() -> None:
    cut: Any = CutStore(oncekey.open("memory://").store)
    ledger = Ledger(cut, codec=JsonCodec())
    callers = Callers(ledger, cache_seconds=0)
    key, secret = await callers.create("operators", role="admin")
    _, other = await callers.create("operators", role="admin")
    _, caller = await callers.create("acme")
    now = [0.0]
    readers = Readers(callers, lambda: now[0])
    assert await readers.admit(bearer(secret))
    assert not await readers.admit(bearer(caller))
    assert not await readers.admit(())

    cut.cut(object)
    assert await readers.admit(bearer(secret))
    for unseen in (other, "oka_" + "a" * 43):
        with pytest.raises(StoreUnavailable):
            await readers.admit(bearer(unseen))
    now[0] = 3601.0
    with pytest.raises(StoreUnavailable):
        await readers.admit(bearer(secret))

    cut.mend()
    assert await readers.admit(bearer(secret))
    await callers.revoke(key.id)
    assert not await readers.admit(bearer(secret))
    cut.cut(object)
    with pytest.raises(StoreUnavailable):
        await readers.admit(bearer(secret))
    cut.mend()
    ledger.close()
