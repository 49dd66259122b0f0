"""Whoever stores a value that no page can hold: operators see the rest, and this as far as it
goes."""

from collections.abc import AsyncIterator

import pytest

from oncekey.core.decision import Proceed
from oncekey.core.model import Kind, Operation, Outcome, Ref
from oncekey.core.scope import Scope, namespace_of
from oncekey.durable.nesting import MAX_DEPTH
from tests.fixtures.api_site import ApiSite, api_site
from tests.fixtures.operator import Operator, at_console

pytestmark = pytest.mark.anyio

_LEVELS = (201, 700, 930)


@pytest.fixture
async def site() -> AsyncIterator[ApiSite]:
    async with api_site("memory://") as opened:
        yield opened


@pytest.fixture
async def operator(site: ApiSite) -> AsyncIterator[Operator]:
    async with at_console(site) as opened:
        yield opened


def nested(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


async def test_half_a_character_is_shown_as_it_was_written(
    site: ApiSite, operator: Operator
) -> None:
    ref = Ref(Scope(namespace_of("acme"), "POST /orders"), "halves")
    begun = await site.ledger.abegin(Operation(ref))
    assert isinstance(begun, Proceed)
    body = b'{"name": "\\ud800", "\\udfff": "all of it"}'
    await begun.claim.asettle(Outcome(Kind.RESPONSE, 201, body=body))
    page = await operator.read(f"/keys/{begun.claim.operation_id}")
    assert "\\ud800" in page
    assert "all of it" in page


async def test_an_event_of_many_levels_hides_no_other(site: ApiSite, operator: Operator) -> None:
    await site.app.engine.publish("acme", "deep:one", nested(MAX_DEPTH))
    await site.app.engine.publish("acme", "plain:one", b'{"a": [1]}')
    page = await operator.read("/events")
    assert "deep:one" in page
    assert "plain:one" in page


async def test_work_of_many_levels_hides_no_other(site: ApiSite, operator: Operator) -> None:
    client = await site.client()
    made = (await client.ask("promises", {"name": "deep"})).json()
    place = client.place(f"promises/id:{made['id']}/resolve")
    refused = await client.post(place, content=b'{"value": ' + nested(MAX_DEPTH + 1) + b"}")
    assert refused.status_code == 400, refused.text
    settled = await client.post(place, content=b'{"value": ' + nested(MAX_DEPTH) + b"}")
    assert settled.status_code == 200, settled.text
    assert "deep" in await operator.read("/promises")
    seen = await operator.read(f"/promises/{made['id']}")
    assert "[[[[" in seen.replace(" ", "")


@pytest.mark.parametrize("levels", _LEVELS)
async def test_an_answer_of_many_levels_is_shown(
    site: ApiSite, operator: Operator, levels: int
) -> None:
    """What a service answers has no bound of ours."""
    begun = await site.ledger.abegin(Operation(Ref(Scope(namespace_of("acme"), "POST /o"), "k")))
    assert isinstance(begun, Proceed)
    await begun.claim.asettle(Outcome(Kind.RESPONSE, 201, body=nested(levels)))
    page = await operator.read(f"/keys/{begun.claim.operation_id}")
    assert "[[[[" in page.replace(" ", "")


async def test_brackets_in_texts_are_no_levels(site: ApiSite, operator: Operator) -> None:
    text = '"' + "[" * 300 + '\\""'
    await site.app.engine.publish("acme", "brackets", text.encode())
    assert "Only its beginning" not in await operator.read("/events")
    admin = await site.admin()
    (event,) = (await admin.see("/api/admin/events")).json()["events"]
    assert event["data"] == "[" * 300 + '"'
    assert event["whole"]
