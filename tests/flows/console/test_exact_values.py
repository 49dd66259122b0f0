"""What callers sent is shown as they wrote it, and what operators write is sent as they did."""

import pytest
from markupsafe import escape

from tests.fixtures.admins import settle
from tests.fixtures.api_site import api_site
from tests.fixtures.console_site import ConsoleSite, Visitor
from tests.fixtures.operator import at_console

_WRITTEN = '{"amount":12345678901234567890.1230,"rate":1.10,"rate":-0,"many":1E+3}'
_SHOWN = """{
  "amount": 12345678901234567890.1230,
  "rate": 1.10,
  "rate": -0,
  "many": 1E+3
}"""


def test_an_event_is_published_and_shown_as_it_was_written(
    console_site: ConsoleSite, visitor: Visitor
) -> None:
    fields = {"topic": "exact:json", "kind": "JSON", "value": _WRITTEN}
    answer = visitor.act("/events/publish", tenant="default", **fields)
    path = answer.headers["location"].removeprefix("/console").partition("?")[0]
    assert _WRITTEN in console_site.admin.get(path.removeprefix("/")).text
    assert f"<code>{escape(_SHOWN)}</code>" in visitor.see(path)
    assert "12345678901234567890.1230" in visitor.see("/events", topic="exact:json")


def test_a_number_keeps_its_digits(console_site: ConsoleSite, visitor: Visitor) -> None:
    made = console_site.caller.post("/api/tenants/default/promises", json={"name": "exact"}).json()
    value = " 100000000000000000000000.50 "
    visitor.act(f"/promises/resolve/{made['id']}", kind="number", value=value)
    assert f'"value":{value.strip()}' in console_site.admin.get(f"promises/{made['id']}").text
    assert f"<code>{value.strip()}</code>" in visitor.see(f"/promises/{made['id']}")


@pytest.mark.anyio
@pytest.mark.parametrize("number", ["1e400", "1.10", "-0", "1" * 5000, "12345678901234567890.123"])
async def test_what_is_stored_is_shown_as_it_is(number: str) -> None:
    body, shown = f'{{"a":{number},"a":[]}}', f'{{\n  "a": {number},\n  "a": []\n}}'
    async with api_site("memory://") as site, at_console(site) as operator:
        record = await settle(site.ledger, "exact", body=body.encode())
        page = await operator.html(f"/keys/{record.operation_id}")
    assert f"<code>{escape(shown)}</code>" in page


@pytest.mark.parametrize("label", ["1e5", "1.10", "true", '{"a":1}', '"quoted"'])
def test_a_text_in_the_audit_feed_is_no_number(
    console_site: ConsoleSite, visitor: Visitor, label: str
) -> None:
    body = {"role": "caller", "tenant": "labelled", "label": label}
    made = console_site.admin.post("apikeys", json=body).json()
    assert f"<dd>{escape(label)}</dd>" in visitor.see("/audit", target=made["id"])
