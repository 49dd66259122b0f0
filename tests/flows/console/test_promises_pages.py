"""Promises as operators see them: who waits, who settled them, and settling by hand, once."""

import json
import re
from functools import partial
from html import unescape
from urllib.parse import quote, urlencode

import pytest

from tests.fixtures.console_site import ConsoleSite, Visitor

HOSTILE = "<img src=x onerror=alert(1)>\"'&{{7*7}}/../resolve"


def place(promise_id: str, verb: str = "") -> str:
    return f"/promises/{verb and verb + '/'}{quote(promise_id, safe='')}"


def pending(site: ConsoleSite, key: str, name: str = "approval", promise: str = "decision") -> str:
    """The id of a promise that a workflow waits for."""
    found = f"{site.start(name, key, key)}:{promise}"
    # It may wait before that, to try a step again.
    while site.admin.get(f"promises/{found}").status_code == 404:
        pass
    return found


def listed(visitor: Visitor, **query: str) -> list[str]:
    html = visitor.see(f"/promises?{urlencode(query)}")
    return re.findall(r'id="p-\d+" href="/console/promises/([^"]+)"', html)


def audited(site: ConsoleSite, action: str, target: str) -> int:
    entries = site.tell("audit", limit=200)["entries"]
    return sum((each["action"], each["target"]) == (action, target) for each in entries)


# -- found and seen ----------------------------------------------------------------------------


def test_promises_are_found_by_what_they_are(console_site: ConsoleSite, visitor: Visitor) -> None:
    waits, settled = pending(console_site, "find-1"), pending(console_site, "find-2")
    console_site.admin.post(f"promises/{settled}/resolve", json={"value": 1}).raise_for_status()
    here, there = quote(waits, safe=""), quote(settled, safe="")
    assert {here, there} <= set(listed(visitor))
    assert here in listed(visitor, state="pending")
    assert there not in listed(visitor, state="pending")
    assert listed(visitor, key="approval:find-2", tenant="default") == [there]
    assert listed(visitor, key="approval:find-2", tenant="other") == []
    assert listed(visitor, id=waits) == [here]


def test_who_looks_for_a_key_is_told_of_what_came_early(visitor: Visitor) -> None:
    told = "is parked, and is no promise so far"
    assert told in visitor.see("/promises", key="stripe:ch_early", tenant="default")
    assert told not in visitor.see("/promises", tenant="nobody")


def test_a_long_list_is_paged(console_site: ConsoleSite, visitor: Visitor) -> None:
    for each in range(52):
        body = {"name": f"page-{each}"}
        console_site.caller.post("/api/tenants/default/promises", json=body).raise_for_status()
    html = visitor.see("/promises")
    (older,) = re.findall(r'href="/console(/promises\?[^"]+)" rel="next"', html)
    assert "page-51</a>" in html
    assert "page-1</a>" not in html
    assert "page-1</a>" in visitor.see(older.replace("&amp;", "&"))


@pytest.mark.parametrize("wanted", ["x", "pr_0000000000000001:x", "wf_0000000000000001:x", HOSTILE])
def test_what_is_not_there_is_not_found(visitor: Visitor, wanted: str) -> None:
    assert listed(visitor, id=wanted) == []
    for path in (place(wanted), place(wanted, "resolve"), place(wanted, "reject")):
        assert "<img src=x" not in visitor.see(path, 404)


@pytest.mark.parametrize("name", ["state", "before"])
def test_a_filter_that_cannot_be_is_told(visitor: Visitor, name: str) -> None:
    html = visitor.see(f"/promises?{urlencode({name: HOSTILE})}", 400)
    assert 'role="alert"' in html
    assert "<img src=x" not in html


def test_one_that_is_waited_for(console_site: ConsoleSite, visitor: Visitor) -> None:
    promise = pending(console_site, "seen-1", "order", "payment")
    workflow = promise.partition(":")[0]
    html = visitor.see(place(promise))
    assert f'href="/console/workflows/{workflow}">order' in html
    assert f'href="/console{place(promise, "resolve")}"' in html
    assert f'href="/console{place(promise, "reject")}"' in html
    assert "<dt>Who waits</dt>" in html
    operation = console_site.tell(f"promises/{promise}")["operation_id"]
    assert f'href="/console/keys/{operation}">stripe:ch_seen-1</a>' in html


def test_one_that_a_request_settled(console_site: ConsoleSite, visitor: Visitor) -> None:
    promise = pending(console_site, "seen-2")
    console_site.post(
        f"/api/tenants/default/promises/id:{promise}/resolve", "by-request", {"value": {"ok": True}}
    )
    html = visitor.see(place(promise))
    operation = console_site.tell(f"promises/{promise}")["settled_by"]["operation_id"]
    assert f'by the request <a id="settler" href="/console/keys/{operation}">by-request</a>' in html
    assert "&#34;ok&#34;: true" in html
    assert "<dt>Who waited</dt>" in html
    assert "Who waits" not in html
    assert "who waited" in visitor.see(place(promise, "resolve"))
    assert f'href="/console{place(promise, "resolve")}"' not in html


def test_one_that_a_delivery_settled(console_site: ConsoleSite, visitor: Visitor) -> None:
    promise = pending(console_site, "seen-3", "order", "payment")
    paid = {"id": "evt_seen3", "type": "charge.succeeded", "data": {"object": {"id": "ch_seen-3"}}}
    answer = console_site.admin.post(
        f"webhooks/{console_site.webhook}/send", json={"body": json.dumps(paid)}
    )
    assert answer.status_code == 200, answer.text
    html = visitor.see(place(promise))
    operation = answer.json()["operation_id"]
    assert f'by the delivery <a id="settler" href="/console/keys/{operation}">' in html
    assert f'href="/console/webhooks/{console_site.webhook}"' in html


def test_one_that_is_over_without_a_value(console_site: ConsoleSite, visitor: Visitor) -> None:
    cancelled = pending(console_site, "seen-4")
    console_site.admin.post(f"workflows/{cancelled.partition(':')[0]}/cancel").raise_for_status()
    assert "cancelled with what waited for it" in visitor.see(place(cancelled))
    body = {"name": "hurried", "timeout": 0.001}
    late = console_site.caller.post("/api/tenants/default/promises", json=body).json()["id"]
    while console_site.tell(f"promises/{late}")["state"] != "timed_out":
        pass
    assert "Nobody settled it until" in visitor.see(place(late))
    for promise in (cancelled, late):
        answer = visitor.act(place(promise, "resolve"), kind="null")
        assert answer.status_code == 410, answer.text
        assert 'role="alert"' in answer.text


def test_one_of_nobody(console_site: ConsoleSite, visitor: Visitor) -> None:
    body = {"name": "alone", "key": "alone-1"}
    made = console_site.caller.post("/api/tenants/default/promises", json=body).json()
    assert "it was made through the API" in visitor.see(place(made["id"]))


def test_a_name_may_hold_anything(console_site: ConsoleSite, visitor: Visitor) -> None:
    promise = pending_named(console_site, HOSTILE)
    assert quote(promise, safe="") in listed(visitor)
    for verb in ("", "resolve", "reject"):
        html = visitor.see(place(promise, verb))
        assert "<img src=x" not in html
        assert "&lt;img src=x onerror=alert(1)&gt;" in html
    answer = visitor.act(place(promise, "reject"), kind="text", value=HOSTILE)
    assert answer.headers["location"] == f"/console{place(promise)}?said=rejected"
    html = visitor.see(place(promise))
    assert "<img src=x" not in html
    assert "{{7*7}}" in html


def test_a_page_is_watched_and_not_that_of_another_name(
    console_site: ConsoleSite, visitor: Visitor
) -> None:
    """What ends a path in a link does not end the name of a promise."""
    for ending in ("?b=c", "#d", "%3Fe", "/f"):
        promise = pending_named(console_site, f"watched{ending}")
        (watched,) = re.findall(r'sse-connect="([^"]+)"', visitor.see(place(promise)))
        with visitor.client.stream("GET", unescape(watched)) as stream:
            lines = stream.iter_lines()
            while next(lines) != "event: live":
                pass
            # An event ends with an empty line.
            seen = list(iter(partial(next, lines), ""))
        assert f'href="/console{place(promise, "resolve")}"' in "".join(seen)


def pending_named(site: ConsoleSite, name: str) -> str:
    answer = site.caller.post("/api/tenants/default/promises", json={"name": name})
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


# -- settled by hand ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind, written, value",
    [
        ("JSON", ' {"amount": 12.5, "of": ["tea"]}', {"amount": 12.5, "of": ["tea"]}),
        ("text", '{"not": "JSON"}', '{"not": "JSON"}'),
        ("text", "two\r\nlines", "two\nlines"),
        ("number", " 42 ", 42),
        ("true", "whatever", True),
        ("false", "", False),
        ("null", "", None),
    ],
)
def test_a_promise_is_resolved_with_a_value_of_each_kind(
    console_site: ConsoleSite, visitor: Visitor, kind: str, written: str, value: object
) -> None:
    promise = pending(console_site, f"kind-{kind}-{len(written)}")
    answer = visitor.act(place(promise, "resolve"), kind=kind, value=written)
    assert answer.headers["location"] == f"/console{place(promise)}?said=resolved"
    workflow = console_site.workflow(promise.partition(":")[0], "succeeded")
    assert workflow["result"] == value
    html = visitor.see(place(promise))
    assert "by hand, by an admin with the API key" in html


def test_the_same_form_settles_once(console_site: ConsoleSite, visitor: Visitor) -> None:
    promise = pending(console_site, "once-1")
    form = {**visitor.fields(place(promise, "resolve")), "kind": "text", "value": "yes"}
    first = visitor.send(place(promise, "resolve"), form)
    second = visitor.send(place(promise, "resolve"), form)
    assert first.headers["location"].endswith("?said=resolved")
    assert second.headers["location"].endswith("?said=resolved&again=1")
    assert audited(console_site, "promise.resolve", promise) == 1
    # The same form with another value is another wish, and is refused.
    other = visitor.send(place(promise, "resolve"), {**form, "value": "no"})
    assert other.status_code == 422
    assert console_site.tell(f"promises/{promise}")["value"] == "yes"


def test_the_first_to_settle_counts(console_site: ConsoleSite, visitor: Visitor) -> None:
    promise = pending(console_site, "first-1")
    visitor.act(place(promise, "resolve"), kind="number", value="1")
    assert "nothing can be changed" in visitor.see(place(promise, "reject"))
    answer = visitor.act(place(promise, "reject"), kind="text", value="too late")
    assert answer.headers["location"].endswith("?said=settled-before")
    assert console_site.tell(f"promises/{promise}")["state"] == "resolved"
    assert audited(console_site, "promise.reject", promise) == 0


def test_a_promise_is_rejected_with_a_reason(console_site: ConsoleSite, visitor: Visitor) -> None:
    promise = pending(console_site, "reject-1")
    answer = visitor.act(place(promise, "reject"), kind="text", value="we are closed")
    assert answer.headers["location"].endswith("?said=rejected")
    failed = console_site.workflow(promise.partition(":")[0], "failed")
    assert "we are closed" in str(failed["error"])
    assert "we are closed" in visitor.see(place(promise))


@pytest.mark.parametrize(
    "kind, written",
    [
        ("JSON", ""),
        ("JSON", '{"half":'),
        ("JSON", "NaN"),
        ("JSON", "1e999"),
        ("JSON", "[" * 100_000),
        ("number", "twelve"),
        ("number", "true"),
        ("number", "1e999"),
        ("bytes", "x"),
        ("JSON", '"</textarea><script>alert(1)</script>" x'),
    ],
)
@pytest.mark.parametrize("verb", ["resolve", "reject"])
def test_what_cannot_be_read_is_kept_and_does_nothing(
    console_site: ConsoleSite, visitor: Visitor, kind: str, written: str, verb: str
) -> None:
    promise = pending(console_site, "unreadable")
    answer = visitor.act(place(promise, verb), kind=kind, value=written)
    assert answer.status_code == 400, answer.text
    assert 'role="alert"' in answer.text
    assert "Nothing was done" in answer.text
    assert "<script>alert" not in answer.text
    shown = written.replace("<", "&lt;").replace(">", "&gt;").replace('"', "&#34;")
    assert f">{shown}</textarea>" in answer.text
    assert console_site.tell(f"promises/{promise}")["state"] == "pending"
