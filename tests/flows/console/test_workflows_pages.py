"""Workflows and tasks as operators see them: found, drawn, and gone on with once."""

import re
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.fixtures.console_site import ConsoleSite, Visitor

HOSTILE = "<img src=x onerror=alert(1)>\"'&{{7*7}}"
NOBODY = "wf_0000000000000001"


def audited(site: ConsoleSite, action: str, target: str) -> int:
    entries = site.tell("audit", limit=200)["entries"]
    return sum((each["action"], each["target"]) == (action, target) for each in entries)


def listed(visitor: Visitor, **query: str) -> list[str]:
    """The ids on the page, in their order."""
    html = visitor.see(f"/workflows?{urlencode(query)}")
    return re.findall(r'href="/console/workflows/((?:wf|tk)_[0-9a-f]{16})"', html)


def waiting(site: ConsoleSite, name: str, key: str, given: Any) -> str:
    workflow = site.start(name, key, given)
    site.workflow(workflow, "waiting")
    return workflow


# -- many --------------------------------------------------------------------------------------


def test_work_is_found_by_what_it_is(console_site: ConsoleSite, visitor: Visitor) -> None:
    waits = waiting(console_site, "order", "find-1", "find-1")
    failed = console_site.start("broken", "find-2", "find-2")
    paused = console_site.start("stubborn", "find-3", "find-3")
    console_site.workflow(failed, "failed")
    console_site.workflow(paused, "paused")
    assert {waits, failed, paused} <= set(listed(visitor))
    assert waits in listed(visitor, status="waiting")
    assert failed not in listed(visitor, status="waiting")
    stuck = listed(visitor, status="stuck")
    assert {failed, paused} <= set(stuck)
    assert waits not in stuck
    assert failed in listed(visitor, name="broken")
    assert paused not in listed(visitor, name="broken")
    assert listed(visitor, key="find-2", tenant="default") == [failed]
    assert listed(visitor, id=paused) == [paused]
    assert failed not in listed(visitor, sort="task")
    assert "it cannot be done: find-2" in visitor.see("/workflows", name="broken")
    html = visitor.see("/workflows", name="order")
    assert f'href="/console/promises/{waits}%3Apayment">stripe:ch_find-1</a>' in html
    assert f'href="/console/promises/{waits}%3Apayment">' in visitor.see("/workflows", id=waits)


def test_what_is_waited_for_is_told_in_the_list(
    console_site: ConsoleSite, visitor: Visitor
) -> None:
    tries = waiting(console_site, "hopeful", "list-1", HOSTILE)
    scans = waiting(console_site, "parcel", "list-2", 77)
    html = visitor.see("/workflows", name="hopeful")
    assert '<span class="badge warn">retrying, 1 failure</span>' in html
    assert '<span class="why amber">ConnectionError: not yet: &lt;img' in html
    assert "<img src=x" not in html
    assert '<span class="badge busy">waiting</span>' not in html
    html = visitor.see("/workflows", name="parcel")
    link = f'<a id="for-{scans}" href="/console/events?tenant=default&amp;topic=parcel.scanned">'
    assert f"for event {link}parcel.scanned</a>" in html
    for workflow in (tries, scans):
        assert f'href="/console/workflows/{workflow}"' in visitor.see("/workflows", id=workflow)


@pytest.mark.parametrize("wanted", [NOBODY, "x", f"{NOBODY}/journal", "../keys", HOSTILE])
def test_an_id_that_is_none_finds_nothing(visitor: Visitor, wanted: str) -> None:
    html = visitor.see("/workflows", id=wanted)
    assert "No such workflows" in html
    assert "<img src=x" not in html


def test_the_page_of_a_journal_is_no_workflow(console_site: ConsoleSite, visitor: Visitor) -> None:
    workflow = waiting(console_site, "order", "slash-1", "slash-1")
    assert "No such workflows" in visitor.see("/workflows", id=f"{workflow}/journal")


@pytest.mark.parametrize(
    "query", [{"status": HOSTILE}, {"sort": HOSTILE}, {"name": HOSTILE, "before": "x"}]
)
def test_a_filter_that_cannot_be_is_told_and_kept(visitor: Visitor, query: dict[str, str]) -> None:
    html = visitor.see(f"/workflows?{urlencode(query)}", 400)
    assert 'role="alert"' in html
    assert "<img src=x" not in html
    if "name" in query:
        assert 'value="&lt;img src=x onerror=alert(1)&gt;&#34;&#39;&amp;{{7*7}}"' in html


def test_a_long_list_is_paged(console_site: ConsoleSite, visitor: Visitor) -> None:
    made = [console_site.start("boss", f"page-{each}", f"page-{each}") for each in range(52)]
    first = listed(visitor, name="boss")
    assert first == made[:1:-1]
    html = visitor.see("/workflows", name="boss")
    (older,) = re.findall(r'href="/console(/workflows\?[^"]+)" rel="next"', html)
    rest = re.findall(r'id="(wf_[0-9a-f]{16})"', visitor.see(older.replace("&amp;", "&")))
    assert rest == made[1::-1]


def test_work_of_every_tenant_is_seen(console_site: ConsoleSite, visitor: Visitor) -> None:
    made = console_site.admin.post("apikeys", json={"tenant": "other", "label": "o"}).json()
    answer = console_site.caller.post(
        "/api/tenants/other/workflows/broken/start",
        json={"input": "of the other"},
        headers={"authorization": f"Bearer {made['secret']}"},
    )
    workflow = answer.json()["id"]
    console_site.workflow(workflow, "failed")
    assert listed(visitor, tenant="other") == [workflow]
    assert workflow not in listed(visitor, tenant="default")
    assert "it cannot be done: of the other" in visitor.see(f"/workflows/{workflow}")


# -- one ---------------------------------------------------------------------------------------


def test_one_that_waits_for_a_promise(console_site: ConsoleSite, visitor: Visitor) -> None:
    workflow = waiting(console_site, "approval", "one-1", "one-1")
    # Before that it waits to try its first step again.
    while console_site.admin.get(f"promises/{workflow}:decision").status_code == 404:
        pass
    html = visitor.see(f"/workflows/{workflow}")
    promise = f"{workflow}%3Adecision"
    assert f'href="/console/promises/{promise}"' in html
    assert f'href="/console/promises/resolve/{promise}"' in html
    assert "<code>approval:one-1</code>" in html
    assert f'href="/console/workflows/{workflow}/cancel"' in html
    assert f'href="/console/workflows/{workflow}/resume"' not in html
    # Its first step was tried twice, and the wait has no end so far.
    assert "2 attempts" in html
    assert '<rect class="done"' in html
    assert '<line class="open"' in html
    operation = console_site.operation("one-1")
    assert f'href="/console/keys/{operation}">one-1</a>' in html


def test_one_that_waits_for_an_event(console_site: ConsoleSite, visitor: Visitor) -> None:
    workflow = waiting(console_site, "parcel", "one-2", 2002)
    html = visitor.see(f"/workflows/{workflow}")
    assert "<code>input.number == 2002</code>" in html
    assert (
        'href="/console/events/publish?tenant=default&amp;topic=parcel.scanned&amp;workflow='
        in html
    )


def test_one_that_sleeps(console_site: ConsoleSite, visitor: Visitor) -> None:
    workflow = waiting(console_site, "patient", "one-3", "x")
    (wait,) = console_site.tell(f"workflows/{workflow}/journal")["waits"]
    html = visitor.see(f"/workflows/{workflow}")
    assert f'sleeps until <time datetime="{wait["due_at"]}">' in html


def test_one_that_tries_again(console_site: ConsoleSite, visitor: Visitor) -> None:
    workflow = waiting(console_site, "hopeful", "one-4", "one-4")
    html = visitor.see(f"/workflows/{workflow}")
    assert "<strong>knock</strong> again after 1 failed attempt, at" in html
    assert "<strong>ConnectionError</strong>: not yet: one-4" in html


def test_one_that_waits_for_another(console_site: ConsoleSite, visitor: Visitor) -> None:
    workflow = waiting(console_site, "boss", "one-5", "one-5")
    journal = console_site.tell(f"workflows/{workflow}/journal")
    html = visitor.see(f"/workflows/{workflow}")
    assert f'href="/console/workflows/{journal["waits"][0]["target"]}"' in html
    task = journal["steps"][0]["called"]
    assert f'started <a id="called-1" class="name" href="/console/workflows/{task}"' in html
    console_site.workflow(task, "succeeded")
    assert "A task is one step" in visitor.see(f"/workflows/{task}")


def test_one_that_is_over_can_only_be_forked(console_site: ConsoleSite, visitor: Visitor) -> None:
    workflow = console_site.start("broken", "one-6", "one-6")
    console_site.workflow(workflow, "failed")
    html = visitor.see(f"/workflows/{workflow}")
    assert "<strong>terminal-error</strong>: it cannot be done: one-6" in html
    assert f'href="/console/workflows/{workflow}/fork"' in html
    assert f'href="/console/workflows/{workflow}/fork?from_step=1"' in html
    assert f'href="/console/workflows/{workflow}/fork?from_step=2"' in html
    assert "/cancel" not in html
    assert "/resume" not in html


def test_the_journal_of_one_that_is_paused_ends_where_it_stopped(
    console_site: ConsoleSite, visitor: Visitor
) -> None:
    workflow = console_site.start("stubborn", "one-9", HOSTILE)
    console_site.workflow(workflow, "paused")
    html = visitor.see(f"/workflows/{workflow}")
    _, _, row = html.partition('<tr class="stopped"')
    assert "<strong>step-failed</strong>: call failed 1 times" in row.partition("</tr>")[0]
    assert "No step has ended so far." not in html
    assert "<img src=x" not in html


def test_a_long_journal_is_paged_and_begins_where_it_goes_on(
    console_site: ConsoleSite, visitor: Visitor
) -> None:
    workflow = waiting(console_site, "stairs", "one-7", 250)

    def steps(**query: str) -> list[int]:
        html = visitor.see(f"/workflows/{workflow}", **query)
        assert "waits for the promise" in html
        return [int(each) for each in re.findall(r'<tr id="step-(\d+)"', html)]

    assert steps() == list(range(201, 251))
    assert steps(after="0") == list(range(1, 101))
    html = visitor.see(f"/workflows/{workflow}", after="100")
    assert "Steps 101 to 200 of 250" in html
    assert f'href="/console/workflows/{workflow}?after=200#journal" rel="next"' in html
    assert f'href="/console/workflows/{workflow}?after=0#journal" rel="prev"' in html
    # Only on the last page does the timeline end with what is waited for.
    assert '<tr class="open">' not in html
    visitor.see(f"/workflows/{workflow}", 400, after=HOSTILE)


def test_hostile_text_is_shown_as_text(console_site: ConsoleSite, visitor: Visitor) -> None:
    workflow = waiting(console_site, "strange", "one-8", HOSTILE)
    page = f"/workflows/{workflow}"
    for path in (page, f"{page}/fork?from_step=1"):
        html = visitor.see(path)
        assert "<img src=x" not in html
        assert "&lt;img src=x onerror=alert(1)&gt;" in html
        assert "{{7*7}}" in html
    # The promise has that name as well, and its page is found under it.
    (link,) = set(re.findall(r'href="/console(/promises/wf_[^"]+)"', visitor.see(page)))
    assert "<img src=x" not in visitor.see(link)


@pytest.mark.parametrize("path", ["", "/cancel", "/resume", "/fork"])
@pytest.mark.parametrize("wanted", [NOBODY, "x", "op_0000000000000001", "%3Cscript%3E"])
def test_what_is_not_there_is_not_found(visitor: Visitor, wanted: str, path: str) -> None:
    assert "<script>" not in visitor.see(f"/workflows/{wanted}{path}", 404)


# -- what can be done --------------------------------------------------------------------------


def test_cancelling_twice_with_one_form_acts_once(
    console_site: ConsoleSite, visitor: Visitor
) -> None:
    workflow = waiting(console_site, "patient", "act-1", "x")
    path = f"/workflows/{workflow}/cancel"
    form = visitor.fields(path)
    first, second = visitor.send(path, form), visitor.send(path, form)
    assert first.headers["location"] == f"/console/workflows/{workflow}?said=cancelled"
    assert second.headers["location"] == f"/console/workflows/{workflow}?said=cancelled&again=1"
    assert console_site.tell(f"workflows/{workflow}")["status"] == "cancelled"
    assert audited(console_site, "workflow.cancel", workflow) == 1
    html = visitor.see(f"/workflows/{workflow}", said="cancelled")
    assert "It is cancelled" in html
    assert "Somebody cancelled it" in html


@pytest.mark.parametrize("key", ["", "ä", "a b", "x" * 5000, "\0"])
def test_a_form_without_a_key_that_can_be_does_nothing(
    console_site: ConsoleSite, visitor: Visitor, key: str
) -> None:
    workflow = waiting(console_site, "patient", "act-0", "x")
    answer = visitor.act(f"/workflows/{workflow}/cancel", key=key)
    assert answer.status_code == 400
    assert 'role="alert"' in answer.text
    assert console_site.tell(f"workflows/{workflow}")["status"] == "waiting"


def test_what_is_over_is_not_cancelled(console_site: ConsoleSite, visitor: Visitor) -> None:
    workflow = console_site.start("broken", "act-2", "x")
    console_site.workflow(workflow, "failed")
    answer = visitor.act(f"/workflows/{workflow}/cancel")
    assert answer.status_code == 409
    assert 'role="alert"' in answer.text
    assert "failed already" in answer.text
    assert console_site.tell(f"workflows/{workflow}")["status"] == "failed"


def test_one_that_is_paused_is_resumed_once(console_site: ConsoleSite, visitor: Visitor) -> None:
    workflow = console_site.start("stubborn", "act-3", "x")
    console_site.workflow(workflow, "paused")
    path = f"/workflows/{workflow}/resume"
    assert f'href="/console{path}"' in visitor.see(f"/workflows/{workflow}")
    form = visitor.fields(path)
    for _ in range(2):
        assert visitor.send(path, form).status_code == 303
    assert audited(console_site, "workflow.resume", workflow) == 1
    console_site.workflow(workflow, "paused")


def test_only_what_is_paused_is_resumed(console_site: ConsoleSite, visitor: Visitor) -> None:
    workflow = waiting(console_site, "patient", "act-4", "x")
    answer = visitor.act(f"/workflows/{workflow}/resume")
    assert answer.status_code == 409
    assert "Nothing was done" in answer.text


def test_a_fork_begins_at_the_step_that_was_clicked(
    console_site: ConsoleSite, visitor: Visitor
) -> None:
    workflow = console_site.start("broken", "act-5", "act-5")
    console_site.workflow(workflow, "failed")
    path = f"/workflows/{workflow}/fork?from_step=1"
    html = visitor.see(path)
    assert "<option selected>1: first</option>" in html
    assert "<option>2: what comes after all of them</option>" in html
    behind = visitor.see(f"/workflows/{workflow}/fork?from_step=2")
    assert "<option selected>2: what comes after all of them</option>" in behind
    form = {**visitor.fields(path), "from_step": "2: what comes after all of them"}
    first, second = visitor.send(path, form), visitor.send(path, form)
    (fork,) = console_site.tell(f"workflows/{workflow}")["forks"]
    assert first.headers["location"] == f"/console/workflows/{fork}?said=forked"
    assert second.headers["location"] == f"/console/workflows/{fork}?said=forked&again=1"
    console_site.workflow(fork, "failed")
    html = visitor.see(f"/workflows/{fork}")
    assert "taken over" in html
    assert f'href="/console/workflows/{workflow}">{workflow}</a>, from step 2 on' in html
    assert f'href="/console/workflows/{fork}">{fork}</a>' in visitor.see(f"/workflows/{workflow}")


@pytest.mark.parametrize(
    "written, status",
    [("", 400), ("x", 400), ("-1", 400), ("1.5", 400), ("٣", 400), ("0", 400), ("99", 409)],
)
def test_a_fork_from_nowhere_is_refused(
    console_site: ConsoleSite, visitor: Visitor, written: str, status: int
) -> None:
    workflow = console_site.start("broken", "act-6", "x")
    console_site.workflow(workflow, "failed")
    answer = visitor.act(f"/workflows/{workflow}/fork", from_step=written)
    assert answer.status_code == status
    assert 'role="alert"' in answer.text
    assert "<option>1: first</option>" in answer.text
    if status == 409:
        assert f"{workflow} cannot be forked: the step must be 1 to 2" in answer.text
    assert console_site.tell(f"workflows/{workflow}")["forks"] == []


def test_a_step_of_a_long_journal_is_named_by_its_number(
    console_site: ConsoleSite, visitor: Visitor
) -> None:
    workflow = waiting(console_site, "stairs", "act-7", 101)
    path = f"/workflows/{workflow}/fork?from_step=100"
    assert 'name="from_step" type="number" value="100"' in visitor.see(path)
    answer = visitor.act(path, from_step="103")
    assert answer.status_code == 409
    assert 'name="from_step" type="number" value="103"' in answer.text
