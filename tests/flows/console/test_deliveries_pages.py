"""Why did this customer's payment not arrive? An operator finds out from the pages alone."""

import json
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
from markupsafe import escape

from oncekey import Proceed
from oncekey.console.pages import deliveries
from oncekey.webhooks.delivery import Delivery, Item
from oncekey.webhooks.naming import operation_of
from oncekey.webhooks.receiver import Incoming, Receiver
from oncekey.webhooks.sources import Source
from tests.fixtures.admins import Admin
from tests.fixtures.api_site import ApiSite, Client, api_site, turn
from tests.fixtures.console_site import ConsoleSite, Visitor
from tests.fixtures.operator import Operator, at_console, words_of

pytestmark = pytest.mark.anyio

RESOLVE = 'resolve:"stripe:" + body.data.object.id'
HOSTILE = "<script>alert(1)</script>\"'&"
_DELIVERY = re.compile(r'href="/console(/deliveries/dl_[0-9a-f]{16})"')


@pytest.fixture
async def site() -> AsyncIterator[ApiSite]:
    async with api_site("memory://") as site:
        yield site


@pytest.fixture
async def admin(site: ApiSite) -> Admin:
    return Admin(await site.admin())


@pytest.fixture
async def acme(site: ApiSite) -> Client:
    return await site.client("acme")


@pytest.fixture
async def operator(site: ApiSite) -> AsyncIterator[Operator]:
    async with at_console(site) as operator:
        yield operator


async def webhook(admin: Admin, then: str = RESOLVE, **more: Any) -> Any:
    body = {"provider": "stripe", "then": then, "tenant": "acme", **more}
    return await admin.done("POST", "webhooks", body)


def receiver_of(site: ApiSite) -> Receiver:
    receiver = site.means.reception.receiver
    assert receiver is not None
    return receiver


async def deliver(
    site: ApiSite,
    made: Any,
    body: Any,
    *,
    secret: str | None = None,
    age: float = 0.0,
    headers: dict[str, str] | None = None,
) -> None:
    """As the provider would, or as somebody who is not the provider."""
    receiver = receiver_of(site)
    source = await source_of(site, made)
    lines = tuple((name.encode(), value.encode()) for name, value in (headers or {}).items())
    url = f"http://localhost{made['path']}"
    plain = Delivery(url, ((b"host", b"localhost"), *lines), json.dumps(body).encode())
    now = site.ledger.clock.now() / 1000 - age
    signed = site.means.providers[made["provider"]].sign(plain, secret or made["secret"], now)
    path = made["path"].encode()
    await receiver.receive(source, Incoming("POST", path, b"", signed.headers, "http", signed.body))
    await receiver.written()


async def source_of(site: ApiSite, made: Any) -> Source:
    source = await receiver_of(site).lookup(made["provider"], made["id"])
    assert source is not None
    return source


async def waits_for(admin: Admin, workflow: str, kind: str) -> None:
    """When that is all it waits for."""
    while True:
        journal = await admin.see(f"workflows/{workflow}/journal")
        # It has slept before, as its first step.
        if journal["count"] and [each["kind"] for each in journal["waits"]] == [kind]:
            return
        await turn()


def paid(event: str, charge: str) -> Any:
    return {"id": event, "type": "charge.succeeded", "data": {"object": {"id": charge}}}


async def look(operator: Operator, **filters: str) -> str:
    """Find it in the list, and go to the newest of what is found."""
    found = _DELIVERY.findall(await operator.html("/deliveries", **filters))
    assert found, filters
    return await operator.html(found[0])


# -- it did not come in --------------------------------------------------------------------------


async def test_another_secret_signed_it(site: ApiSite, admin: Admin, operator: Operator) -> None:
    made = await webhook(admin)
    await deliver(site, made, paid("evt_1", "ch_1"), secret="whsec_" + "b" * 32)
    page = await look(operator, webhook=made["id"], verdict="refused")
    words = words_of(page)
    assert "refused It was not believed, so nothing was done." in words
    assert "The signature is by none of the secrets of this webhook." in words
    assert "What to do: Nobody with a secret of this webhook signed it." in words
    assert "Give it here, in the console or with oncekey webhooks rotate" in words
    assert "Or somebody else sent it: then there is nothing to do." in words
    assert f'href="/console/webhooks/{made["id"]}/rotate"' in page
    assert "Nothing is known to have come after this." in words


async def test_it_was_too_old(site: ApiSite, admin: Admin, operator: Operator) -> None:
    made = await webhook(admin)
    await deliver(site, made, paid("evt_1", "ch_1"), age=4000)
    words = words_of(await look(operator, tenant="acme", provider="stripe"))
    assert re.search(r"The timestamp is 40\d\d s old, more than allowed; check both clocks.", words)
    assert "compare the clock of this server with the provider's" in words


async def test_it_had_no_identifier(site: ApiSite, admin: Admin, operator: Operator) -> None:
    await deliver(site, await webhook(admin), {"type": "charge.succeeded"})
    words = words_of(await look(operator, verdict="refused"))
    assert "The delivery has no id." in words
    assert "has no identifier to make a key of" in words


async def test_its_body_came_before_under_another_name(
    site: ApiSite, admin: Admin, operator: Operator
) -> None:
    made = await webhook(admin, "workflow:echo", provider="github")
    await deliver(site, made, {"n": 1}, headers={"x-github-delivery": "first"})
    await deliver(site, made, {"n": 1}, headers={"x-github-delivery": "second"})
    page = await look(operator, identifier="second")
    words = words_of(page)
    assert "Its body came before under another identifier, so nothing was done." in words
    assert 'what is signed came before as "github-first"' in words
    assert "set repeats to allow" in words
    first = (await admin.see("deliveries", identifier="first"))["deliveries"][0]
    assert f'href="/console/keys/{first["operation_id"]}">github-first</a>' in page


async def test_a_flood_is_one_line_with_its_number(
    site: ApiSite, admin: Admin, operator: Operator
) -> None:
    made = await webhook(admin)
    for _ in range(70):
        await deliver(site, made, paid("evt_1", "ch_1"), secret="whsec_" + "b" * 32)
    receiver_of(site).close()
    words = words_of(await look(operator, webhook=made["id"]))
    assert "10 more within a minute" in words
    assert "It came 10 times." in words
    assert "× 10" in await operator.read(f"/webhooks/{made['id']}")


# -- it came in, and went no further -------------------------------------------------------------


async def test_another_attempt_is_being_worked_on(
    site: ApiSite, admin: Admin, operator: Operator
) -> None:
    made = await webhook(admin)
    item = Item("evt_1", b"{}", True)
    held = await site.ledger.abegin(operation_of(await source_of(site, made), item, "rerun"))
    assert isinstance(held, Proceed)
    await deliver(site, made, paid("evt_1", "ch_1"))
    words = words_of(await look(operator, identifier="evt_1"))
    assert "in-flight Another attempt was being worked on" in words
    assert "Key stripe-evt_1 in progress It is being worked on now." in words
    held.claim.abandon()


async def test_what_follows_failed(site: ApiSite, admin: Admin, operator: Operator) -> None:
    made = await webhook(admin, "resolve:body.data.customer")
    await deliver(site, made, paid("evt_1", "ch_1"))
    page = await look(operator, identifier="evt_1")
    words = words_of(page)
    assert "failed It was the first with its identifier, and what follows failed for good." in words
    assert "The expression of the webhook does not fit this body." in words
    assert "Key stripe-evt_1 failed" in words
    assert re.search(r'class="button danger" href="/console/keys/op_[0-9a-f]{16}/purge"', page)


async def test_it_came_early_and_is_parked(
    site: ApiSite, admin: Admin, acme: Client, operator: Operator
) -> None:
    await deliver(site, await webhook(admin), paid("evt_1", "ch_8"))
    words = words_of(await look(operator, identifier="evt_1"))
    assert "parked until a promise with its key is made (for the key stripe:ch_8)." in words
    assert "What to do: Nobody waits for that key so far." in words
    assert "Promise not there yet awaited Nobody has made it yet." in words
    workflow = (await acme.start("order", 8))["id"]
    await acme.end_of(workflow)
    words = words_of(await look(operator, identifier="evt_1"))
    assert f"Promise payment {workflow}:payment resolved" in words
    assert f"Workflow order {workflow} succeeded" in words
    assert "asked for it, and was taken when somebody did (for the key stripe:ch_8)." in words
    assert "parked" not in words
    assert "What to do" not in words
    (listed,) = (await admin.see("deliveries", identifier="evt_1"))["deliveries"]
    key = await operator.read(f"/keys/{listed['operation_id']}")
    assert "and was taken when somebody did" in key
    listed = await operator.read("/deliveries", identifier="evt_1")
    assert "It came before anybody asked for it (for the key stripe:ch_8)." in listed


# -- it arrived, and nobody saw it ---------------------------------------------------------------


async def test_it_resolved_and_the_workflow_waits_for_something_else(
    site: ApiSite, admin: Admin, acme: Client, operator: Operator
) -> None:
    workflow = (await acme.start("family", 3))["id"]
    await waits_for(admin, workflow, "event")
    scans = await webhook(admin, 'event:"family:sent"')
    await deliver(site, scans, paid("evt_1", "ch_1"))
    news = await webhook(admin, 'resolve:"news:3"')
    await waits_for(admin, workflow, "promise")
    await deliver(site, news, paid("evt_2", "ch_1"))
    await waits_for(admin, workflow, "sleep")
    await acme.waits(workflow)
    page = await look(operator, identifier="evt_2")
    words = words_of(page)
    assert "sleeps until" in words
    assert "Promise news" in words
    assert "Its key is news:3." in words
    assert f"Workflow family {workflow} waiting It has what the delivery brought" in words
    assert f'href="/console/workflows/{workflow}"' in page
    page = await look(operator, identifier="evt_1")
    told = "It was published as an event (as family:sent, which fits 1 wait)."
    assert told in words_of(page)
    assert re.search(r'href="/console/events/ev_[0-9a-f]{16}"', page)


async def test_it_resolved_a_promise_under_another_key_than_was_expected(
    site: ApiSite, admin: Admin, acme: Client, operator: Operator
) -> None:
    mine, other = [(await acme.start("order", number))["id"] for number in (7, 77)]
    for each in (mine, other):
        await acme.promise_of(each, "payment")
    # The order of 7 was paid; what is delivered names the charge of 77.
    await deliver(site, await webhook(admin), paid("evt_7", "ch_77"))
    await acme.end_of(other)
    page = await look(operator, identifier="evt_7")
    words = words_of(page)
    assert "It resolved a promise (by the key stripe:ch_77)." in words
    assert "Its key is stripe:ch_77." in words
    assert f"Workflow order {other} succeeded" in words
    assert mine not in page


async def test_its_promise_was_settled_before(
    site: ApiSite, admin: Admin, acme: Client, operator: Operator
) -> None:
    workflow = (await acme.start("order", 7))["id"]
    await acme.promise_of(workflow, "payment")
    made = await webhook(admin)
    for event in ("evt_1", "evt_2"):
        await deliver(site, made, paid(event, "ch_7"))
    words = words_of(await look(operator, identifier="evt_2"))
    assert "It had been settled before, so this delivery changed nothing." in words


async def test_the_same_event_again_leads_where_the_first_did(
    site: ApiSite, admin: Admin, acme: Client, operator: Operator
) -> None:
    made = await webhook(admin, "workflow:refusing")
    for _ in range(2):
        await deliver(site, made, paid("evt_1", "ch_1"))
    page = await look(operator, identifier="evt_1", verdict="replayed")
    (workflow,) = set(re.findall(r"wf_[0-9a-f]{16}", page))
    await acme.end_of(workflow)
    words = words_of(await look(operator, identifier="evt_1", verdict="replayed"))
    assert "It came before: its provider was answered as then" in words
    assert f"Workflow refusing {workflow} failed The delivery reached it" in words
    assert "it went wrong: terminal-error: there is nothing to refund." in words


async def test_a_delivery_to_a_webhook_that_is_gone_is_still_there(
    site: ApiSite, admin: Admin, operator: Operator
) -> None:
    made = await webhook(admin)
    await deliver(site, made, paid("evt_1", "ch_1"))
    await admin.done("DELETE", f"webhooks/{made['id']}")
    page = await look(operator, identifier="evt_1")
    assert "From a webhook that is gone." in words_of(page)
    assert f'href="/console/webhooks/{made["id"]}' not in page
    assert "one that is gone" in await operator.read("/deliveries")


async def test_a_webhook_is_chosen_by_its_name(
    site: ApiSite, admin: Admin, operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = await webhook(admin, label=HOSTILE)
    two = await webhook(admin, provider="github")
    page = await operator.html("/deliveries", webhook=two["id"])
    assert f'<option value="{one["id"]}">stripe of acme: {escape(HOSTILE)}</option>' in page
    assert f'<option value="{two["id"]}" selected>github of acme: {two["id"]}</option>' in page
    # One that is gone has its deliveries still.
    await admin.done("DELETE", f"webhooks/{two['id']}")
    page = await operator.html("/deliveries", webhook=two["id"])
    assert f'<option value="{two["id"]}" selected>{two["id"]}</option>' in page
    # Of very many, one is named.
    await webhook(admin)
    monkeypatch.setattr(deliveries, "_MOST_WEBHOOKS", 1)
    page = await operator.html("/deliveries", webhook=two["id"])
    assert f'<input name="webhook" value="{two["id"]}"' in page


async def test_a_provider_is_found_as_it_writes_itself(
    site: ApiSite, admin: Admin, operator: Operator
) -> None:
    await deliver(site, await webhook(admin), paid("evt_1", "ch_1"))
    assert "evt_1" in await operator.read("/deliveries", provider="Stripe")


async def test_the_overview_tells_of_what_failed_beside_what_was_refused(
    site: ApiSite, admin: Admin, operator: Operator
) -> None:
    await deliver(site, await webhook(admin), paid("evt_1", "ch_1"), secret="whsec_" + "b" * 32)
    await deliver(site, await webhook(admin, "resolve:body.no"), paid("evt_2", "ch_1"))
    page = await operator.html("")
    words = words_of(page)
    assert "Refused or failed deliveries stripe failed" in words
    assert "stripe refused The signature is by none of the secrets of this webhook, 20" in words
    assert 'href="/console/deliveries?verdict=failed"' in page
    assert "Claims held" in words
    assert "Requests 0/s max 0/s" in words


# -- of a real server ----------------------------------------------------------------------------


def test_deliveries_of_all_webhooks_are_found(console_site: ConsoleSite, visitor: Visitor) -> None:
    body = json.dumps(paid("evt_<b>real</b>", HOSTILE))
    console_site.admin.post(f"webhooks/{console_site.webhook}/send", json={"body": body})
    page = visitor.see("/deliveries", identifier="evt_<b>real</b>")
    (path,) = _DELIVERY.findall(page)
    one = visitor.see(path)
    for each in (page, one):
        assert "<b>real" not in each
        assert "<script>alert" not in each
        assert str(escape(HOSTILE)) in each


def test_who_looks_for_an_identifier_is_told_of_those_that_were_not_believed(
    visitor: Visitor,
) -> None:
    page = visitor.see("/deliveries", identifier="evt_no")
    assert "No such deliveries." in page
    assert "A delivery with a bad signature is kept without its identifier" in page
    assert 'href="/console/deliveries?verdict=refused"' in page
    page = visitor.see("/deliveries", identifier="evt_no", webhook="wh_1")
    assert 'href="/console/deliveries?verdict=refused&amp;webhook=wh_1"' in page
    unfiltered = visitor.see("/deliveries", tenant="nobody")
    assert "see what was refused" not in unfiltered


@pytest.mark.parametrize(
    "filters",
    [{"verdict": "lost"}, {"operation": HOSTILE}, {"before": "yesterday"}],
    ids=["verdict", "operation", "before"],
)
def test_a_filter_that_cannot_be_used_is_told(visitor: Visitor, filters: dict[str, str]) -> None:
    page = visitor.see("/deliveries", 400, **filters)
    assert 'role="alert"' in page
    assert "<script>alert" not in page
    assert "operation" not in filters or str(escape(HOSTILE)) in page


@pytest.mark.parametrize("id", ["dl_0000000000000001", "dl_1", "wh_1", "%3Cscript%3E", "dl_%2e%2e"])
def test_what_is_not_there_is_not_found(visitor: Visitor, id: str) -> None:  # noqa: A002
    visitor.see(f"/deliveries/{id}", 404)
