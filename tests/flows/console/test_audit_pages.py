"""The audit feed in the console: who did what to what, with a way to it."""

import pytest
from markupsafe import escape

from tests.fixtures.console_site import ConsoleSite, Visitor

HOSTILE = "<script>alert(1)</script>\"'&"
STRIPE = {"provider": "stripe", "then": "workflow:order"}


def test_entries_lead_to_who_did_it_and_to_what(
    console_site: ConsoleSite, visitor: Visitor
) -> None:
    made = console_site.admin.post("webhooks", json={**STRIPE, "tenant": "seen"}).json()
    console_site.admin.put("retention/webhook", json={"kept": "8d"})
    own = console_site.tell("whoami")["id"]
    page = visitor.see("/audit")
    assert f'href="/console/webhooks/{made["id"]}">{made["id"]}</a>' in page
    assert f'href="/console/apikeys/{own}">admin:{own}</a>' in page
    assert 'href="/console/retention/webhook">webhook</a>' in page
    for path in (f"/webhooks/{made['id']}", f"/apikeys/{own}", "/retention/webhook"):
        visitor.see(path)


def test_what_is_gone_is_named_without_a_way_to_it(
    console_site: ConsoleSite, visitor: Visitor
) -> None:
    made = console_site.admin.post("webhooks", json={**STRIPE, "tenant": "gone"}).json()
    console_site.admin.delete(f"webhooks/{made['id']}")
    page = visitor.see("/audit", tenant="gone", action="webhook.delete")
    assert made["id"] in page
    assert f'href="/console/webhooks/{made["id"]}"' not in page


def test_the_feed_is_filtered(console_site: ConsoleSite, visitor: Visitor) -> None:
    made = [
        console_site.admin.post("webhooks", json={**STRIPE, "tenant": tenant}).json()["id"]
        for tenant in ("one", "two")
    ]
    own = console_site.tell("whoami")["id"]
    for query, shown in (
        ({"tenant": "one"}, [True, False]),
        ({"target": made[1]}, [False, True]),
        ({"action": "webhook.create", "actor": f"admin:{own}"}, [True, True]),
        ({"action": "webhook.rotate"}, [False, False]),
        ({"actor": "cli:nobody"}, [False, False]),
    ):
        page = visitor.see("/audit", **query)
        links = [f'href="/console/webhooks/{each}"' in page for each in made]
        assert links == shown, query


def test_a_page_leads_to_the_older_one(console_site: ConsoleSite, visitor: Visitor) -> None:
    for _ in range(51):
        console_site.admin.put("retention/interactive", json={"kept": "24h"})
    page = visitor.see("/audit", action="retention.set")
    start = page.index('rel="next"')
    path = page[page.rindex('href="/console', 0, start) + len('href="/console') : start]
    older = visitor.see(path.partition('"')[0].replace("&amp;", "&"))
    assert page.count("retention.set</td>") == 50
    assert older.count("retention.set</td>") >= 1


@pytest.mark.parametrize("filters", [{"tenant": HOSTILE}, {"before": "yesterday"}])
def test_a_filter_that_cannot_be_used_is_told(visitor: Visitor, filters: dict[str, str]) -> None:
    page = visitor.see("/audit", 400, **filters)
    assert 'role="alert"' in page
    assert "<script>alert" not in page


def test_the_key_of_a_request_is_behind_what_it_did(
    console_site: ConsoleSite, visitor: Visitor
) -> None:
    body = {"role": "caller", "tenant": "keyed", "label": "of the till"}
    visitor.act("/apikeys/new", **body)
    page = visitor.see("/audit", tenant="keyed")
    assert 0 < page.index("of the till") < page.index("idempotency key")


def test_details_are_shown_as_text(console_site: ConsoleSite, visitor: Visitor) -> None:
    console_site.admin.post("webhooks", json={**STRIPE, "tenant": "hostile", "label": HOSTILE})
    page = visitor.see("/audit", tenant="hostile")
    assert str(escape(HOSTILE)) in page
    assert "<script>alert" not in page
    assert "idempotency key" not in page
