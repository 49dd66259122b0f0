"""How much there is of what, as an admin sees it."""

import pytest

from tests.fixtures.admins import Admin, settle
from tests.fixtures.api_site import ApiSite

pytestmark = pytest.mark.anyio


async def test_everything_is_counted(site: ApiSite) -> None:
    caller = await site.client()
    await settle(site.ledger, "a")
    waiting = await caller.start("approval")
    await caller.waits(waiting["id"])
    await caller.end_of((await caller.start("echo"))["id"])

    found = await Admin(await site.admin()).see("census")

    assert found["claims_in_progress"] == 0
    assert found["oldest_claim_at"] is None
    assert {name: number for name, number in found["workflows"].items() if number} == {
        "waiting": 1,
        "succeeded": 1,
    }
    assert set(found["tasks"].values()) == {0}
    assert found["promises"]["pending"] == 1
    assert found["oldest_waiting_at"] == waiting["created_at"]
    assert found["oldest_pending_at"] >= waiting["created_at"]
    assert found["counted_at"] >= found["oldest_pending_at"]
