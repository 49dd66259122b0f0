"""Events as operators see them: found, seen, and published by hand, once."""

import re
from urllib.parse import urlencode

import pytest

from tests.fixtures.console_site import ConsoleSite, Visitor

HOSTILE = "<img src=x onerror=alert(1)>\"'&{{7*7}}"
PUBLISH = "/events/publish"


def listed(visitor: Visitor, **query: str) -> list[str]:
    html = visitor.see(f"/events?{urlencode(query)}")
    return re.findall(r'href="/console/events/(ev_[0-9a-f]{16})"', html)


def published(site: ConsoleSite, topic: str, data: object, tenant: str = "default") -> str:
    body = {"tenant": tenant, "topic": topic, "data": data}
    answer = site.admin.post("events", json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()["event_id"]


def waiting(site: ConsoleSite, key: str, number: int) -> str:
    workflow = site.start("parcel", key, number)
    site.workflow(workflow, "waiting")
    return workflow


# -- found and seen ----------------------------------------------------------------------------


def test_events_are_found_by_tenant_and_topic(console_site: ConsoleSite, visitor: Visitor) -> None:
    mine = published(console_site, "find:mine", {"a": 1})
    theirs = published(console_site, "find:theirs", {"a": 2}, "other")
    assert listed(visitor)[:2] == [theirs, mine]
    assert listed(visitor, tenant="other") == [theirs]
    assert listed(visitor, topic="find:mine") == [mine]
    assert listed(visitor, id=theirs) == [theirs]
    assert listed(visitor, topic="find:nobody's") == []


def test_a_long_list_is_paged(console_site: ConsoleSite, visitor: Visitor) -> None:
    made = [published(console_site, "page:many", each) for each in range(52)]
    assert listed(visitor, topic="page:many") == made[:1:-1]
    html = visitor.see("/events?topic=page%3Amany")
    (older,) = re.findall(r'href="/console(/events\?[^"]+)" rel="next"', html)
    html = visitor.see(older.replace("&amp;", "&"))
    assert re.findall(r'id="(ev_[0-9a-f]{16})"', html) == made[1::-1]


@pytest.mark.parametrize("wanted", ["x", "ev_0000000000000001", HOSTILE, "../keys"])
def test_what_is_not_there_is_not_found(visitor: Visitor, wanted: str) -> None:
    assert listed(visitor, id=wanted) == []
    if "/" not in wanted:
        assert "<img src=x" not in visitor.see(f"/events/{wanted}", 404)


def test_a_filter_that_cannot_be_is_told(visitor: Visitor) -> None:
    html = visitor.see(f"/events?{urlencode({'before': HOSTILE})}", 400)
    assert 'role="alert"' in html
    assert "<img src=x" not in html


def test_hostile_text_is_shown_as_text(console_site: ConsoleSite, visitor: Visitor) -> None:
    event = published(console_site, "hostile:text", {HOSTILE: HOSTILE})
    for path in ("/events?topic=hostile%3Atext", f"/events/{event}"):
        html = visitor.see(path)
        assert "<img src=x" not in html
        assert "&lt;img src=x onerror=alert(1)&gt;" in html
        assert "{{7*7}}" in html
    html = visitor.see(f"{PUBLISH}?{urlencode({'topic': HOSTILE, 'tenant': HOSTILE})}")
    assert "<img src=x" not in html


def test_a_workflow_leads_to_the_event_it_waited_for(
    console_site: ConsoleSite, visitor: Visitor
) -> None:
    workflow = waiting(console_site, "leads-1", 4001)
    event = published(console_site, "parcel.scanned", {"number": 4001})
    console_site.workflow(workflow, "succeeded")
    assert f'href="/console/events/{event}"' in visitor.see(f"/workflows/{workflow}")
    html = visitor.see(f"/events/{event}")
    assert "&#34;number&#34;: 4001" in html
    assert f'id="woke-1" class="name" href="/console/workflows/{workflow}"' in html


def test_a_workflow_tells_why_an_event_did_not_fit(
    console_site: ConsoleSite, visitor: Visitor
) -> None:
    workflow = waiting(console_site, "trouble-1", 4002)
    published(console_site, "parcel.scanned", {"no": "number"})
    while not console_site.tell(f"workflows/{workflow}/journal")["waits"][0]["trouble"]:
        pass
    html = visitor.see(f"/workflows/{workflow}")
    assert "An event came, and whether it fits could not be told" in html


# -- published by hand -------------------------------------------------------------------------


def test_a_workflow_that_waits_is_gone_on_with(console_site: ConsoleSite, visitor: Visitor) -> None:
    workflow = waiting(console_site, "hand-1", 5001)
    html = visitor.see(f"/workflows/{workflow}")
    (path,) = re.findall(r'href="/console(/events/publish\?[^"]+)"', html)
    path = path.replace("&amp;", "&")
    html = visitor.see(path)
    assert 'name="topic" type="text" value="parcel.scanned"' in html
    assert "<dd>input.number == 5001</dd>" in html
    assert f'href="/console/workflows/{workflow}">Leave it</a>' in html
    wanted = {"tenant": "default", "topic": "parcel.scanned", "headers": '{"from": "hand"}'}
    form = {**visitor.fields(path), **wanted, "kind": "JSON", "value": '{"number": 5001}'}
    first, second = visitor.send(path, form), visitor.send(path, form)
    (event,) = listed(visitor, topic="parcel.scanned")[:1]
    assert first.headers["location"] == f"/console/events/{event}?said=published"
    assert second.headers["location"] == f"/console/events/{event}?said=published&again=1"
    assert console_site.workflow(workflow, "succeeded")["result"] == {"number": 5001}
    html = visitor.see(f"/events/{event}")
    assert "&#34;from&#34;: &#34;hand&#34;" in html


@pytest.mark.parametrize("workflow", ["x", "wf_0000000000000001", HOSTILE])
def test_who_comes_from_nowhere_goes_back_to_the_events(visitor: Visitor, workflow: str) -> None:
    html = visitor.see(PUBLISH, topic="parcel.scanned", workflow=workflow)
    assert 'href="/console/events">Leave it</a>' in html
    assert "<img src=x" not in html


def test_an_event_that_nobody_waits_for(visitor: Visitor) -> None:
    fields = {"tenant": "default", "topic": "nobody:waits", "kind": "text", "value": "hello"}
    answer = visitor.act(PUBLISH, **fields)
    assert answer.headers["location"].endswith("?said=published-to-nobody")
    html = visitor.see(answer.headers["location"].removeprefix("/console"))
    assert "No wait fitted it." in html
    assert "could not be evaluated says so on the page of its workflow" in html
    assert "Nobody that is known." in html
    assert "&#34;hello&#34;" in html


@pytest.mark.parametrize(
    "wrong",
    [
        {"value": "{"},
        {"kind": "number", "value": "x"},
        {"headers": "x"},
        {"headers": '["a"]'},
        {"headers": '{"a": 1}'},
        {"topic": ""},
        {"topic": "x" * 5000},
        {"tenant": ""},
        {"tenant": "no slug"},
        {"tenant": HOSTILE},
    ],
)
def test_what_cannot_be_read_is_kept_and_does_nothing(
    console_site: ConsoleSite, visitor: Visitor, wrong: dict[str, str]
) -> None:
    topic = wrong.get("topic", "never:published")
    fields = {"tenant": "default", "topic": topic, "kind": "JSON", "value": '"kept"', **wrong}
    answer = visitor.act(PUBLISH, **fields)
    assert answer.status_code == 400, answer.text
    assert 'role="alert"' in answer.text
    assert "<img src=x" not in answer.text
    assert f'name="topic" type="text" value="{topic}"' in answer.text
    if "value" not in wrong:
        assert ">&#34;kept&#34;</textarea>" in answer.text
    assert console_site.tell("events", topic="never:published")["events"] == []
