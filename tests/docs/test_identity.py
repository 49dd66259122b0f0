"""The page on identity: a renewed token is the same caller, another user is another one."""

from pathlib import Path

import httpx
import pytest

from tests.fixtures.pages import run_page


@pytest.mark.anyio
async def test_a_retry_with_a_renewed_token_gets_the_first_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    page = run_page("how-to/identity.md")
    transport = httpx.ASGITransport(page.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://shop") as client:
        answers = [
            await client.post(
                "/orders", headers={"Idempotency-Key": "order-1", "Authorization": token}
            )
            for token in ("Bearer old", "Bearer new", "Bearer other")
        ]
    page.ledger.close()
    assert [answer.json() for answer in answers] == [{"order": 1}, {"order": 1}, {"order": 2}]
    assert page.orders == ["ada", "bob"]
