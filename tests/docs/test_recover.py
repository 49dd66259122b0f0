"""The page on crashes: its route is cut off in the middle, and its hook is asked."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.fixtures.pages import run_page


class Killed(BaseException):
    """Passes every `except Exception`, as the end of a process does."""


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.chdir(tmp_path)
    page = run_page("how-to/recover.md")
    yield page
    page.ledger.close()


async def pay(page: Any) -> httpx.Response:
    transport = httpx.ASGITransport(page.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://shop") as client:
        headers = {"Idempotency-Key": "pay-1"}
        return await client.post("/payments", json={"cents": 500}, headers=headers)


async def crash(page: Any, *, paid: bool) -> None:
    """The process ends in the handler, before or after the provider has taken the payment."""
    pay_at_provider = page.provider.pay

    def cut_off(reference: str, cents: int) -> None:
        if paid:
            pay_at_provider(reference, cents)
        raise Killed

    page.provider.pay = cut_off
    with pytest.raises(Killed):
        await pay(page)
    page.provider.pay = pay_at_provider


@pytest.mark.anyio
async def test_an_effect_that_is_found_is_not_repeated(page: Any) -> None:
    await crash(page, paid=True)
    answer = await pay(page)
    assert (answer.status_code, answer.json()) == (201, {"paid": 500})
    assert answer.headers["idempotent-replayed"] == "true"
    assert len(page.provider.payments) == 1


@pytest.mark.anyio
async def test_an_effect_that_is_not_there_is_made(page: Any) -> None:
    await crash(page, paid=False)
    answer = await pay(page)
    assert (answer.status_code, answer.json()) == (201, {"paid": 500})
    assert "idempotent-replayed" not in answer.headers
    assert len(page.provider.payments) == 1


@pytest.mark.anyio
async def test_who_cannot_tell_is_asked_again(page: Any) -> None:
    await crash(page, paid=True)
    page.provider.away = True
    unsure = await pay(page)
    page.provider.away = False
    answer = await pay(page)
    assert (unsure.status_code, unsure.json()["type"].split("/")[-1]) == (409, "outcome-unknown")
    assert answer.status_code == 201
