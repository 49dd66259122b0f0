"""A form that may have been done: it is shown again with its key, and sent again it acts once."""

import asyncio
import re
from typing import Any

import pytest

from oncekey.core.model import Kind, Outcome
from oncekey.webhooks.acting import Answered
from oncekey.webhooks.receiver import Receiver
from tests.fixtures.admins import Admin, settle
from tests.fixtures.api_site import ApiSite, api_site
from tests.fixtures.away import Away
from tests.fixtures.frozen import FrozenClock
from tests.fixtures.operator import Operator, at_console, hidden_in, words_of

pytestmark = pytest.mark.anyio

EVENT = {"tenant": "acme", "topic": "order:paid", "kind": "number", "value": "1"}
PUBLISH = "/events/publish"


class Hurried(FrozenClock):
    """Nobody has the patience to wait for long, once it hurries."""

    hurries = False

    def steady(self) -> int:
        if self.hurries:
            self.advance(60_000)
        return super().steady()


async def test_what_may_have_been_done_is_done_once() -> None:
    away = Away()
    async with api_site("memory://", faults=away) as site, at_console(site) as operator:
        form = {**await operator.fields(PUBLISH), **EVENT}
        away.times = 1
        told = await operator.send(PUBLISH, form)
        assert told.status_code == 503
        assert_in_doubt(told.text)
        again = await operator.send(PUBLISH, {**hidden_in(told.text), **EVENT})
        assert "said=published-to-nobody" in again.headers["location"]
        admin = Admin(await site.admin())
        assert len((await admin.see("events"))["events"]) == 1


async def test_what_was_changed_meanwhile_is_not_taken_for_the_first() -> None:
    """The key is that of what was sent first."""
    async with api_site("memory://") as site, at_console(site) as operator:
        form = {**await operator.fields(PUBLISH), **EVENT}
        assert (await operator.send(PUBLISH, form)).status_code == 303
        told = await operator.send(PUBLISH, {**form, "value": "2"})
        assert told.status_code == 422
        assert "what was sent before with this form was done" in words_of(told.text)
        assert hidden_in(told.text)["key"] != form["key"]


async def test_what_is_gone_since_it_was_done_leaves_the_same_form_to_send() -> None:
    away = Away()
    async with api_site("memory://", faults=away) as site, at_console(site) as operator:
        record = await settle(site.ledger, "a")
        path = f"/keys/{record.operation_id}/purge"
        form = await operator.fields(path)
        away.times = 1
        told = await operator.send(path, form)
        assert told.status_code == 503
        assert_in_doubt(told.text)
        assert "load this page again" in words_of(told.text)


async def test_what_is_still_running_keeps_its_key() -> None:
    clock = Hurried()
    async with (
        api_site("memory://", clock=clock, sweep_interval=0) as site,
        at_console(site) as operator,
    ):
        begun, ends = waited_for(site)
        path = await path_of_webhook(operator)
        form = await operator.fields(path)
        first = asyncio.create_task(operator.send(path, form))
        await begun.wait()
        clock.hurries = True
        told = await operator.send(path, form)
        clock.hurries = False
        assert told.status_code == 409
        assert_in_doubt(told.text)
        ends.set()
        assert (await first).status_code == 200
        again = await operator.send(path, hidden_in(told.text))
        assert "it was done then, and once" in words_of(again.text)


async def test_what_was_refused_gets_a_key_of_its_own() -> None:
    async with api_site("memory://") as site, at_console(site) as operator:
        for wrong in ({"value": "one"}, {"tenant": "?"}):
            form = {**await operator.fields(PUBLISH), **EVENT, **wrong}
            told = await operator.send(PUBLISH, form)
            assert told.status_code == 400
            assert "Nothing was done." in words_of(told.text)
            assert hidden_in(told.text)["key"] not in {"", form["key"]}


def assert_in_doubt(page: str) -> None:
    text = words_of(page)
    assert "Whether it was done is not known. It is safe to" in text
    assert "Nothing was" not in text


def waited_for(site: ApiSite) -> tuple[asyncio.Event, asyncio.Event]:
    """What follows a delivery begins, and ends when it is told to."""
    begun, ends = asyncio.Event(), asyncio.Event()

    async def behind(_: Any) -> Answered:
        begun.set()
        await ends.wait()
        return Answered(Outcome(Kind.RESPONSE, 201), True)

    means = site.means
    means.reception.receiver = Receiver(
        site.ledger, means.sources, means.providers, site.app.engine, behind
    )
    return begun, ends


async def path_of_webhook(operator: Operator) -> str:
    form = {"provider": "stripe", "then": "forward:/orders"}
    made = await operator.send("/webhooks/new", {**await operator.fields("/webhooks/new"), **form})
    found = re.search(r"wh_\w+", made.text)
    assert found is not None, made.text
    return f"/webhooks/{found[0]}/send"
