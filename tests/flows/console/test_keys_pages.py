"""Keys and the overview: found, seen, forgotten once; and what is said of bad questions."""

from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus

import pytest

from tests.fixtures.console_site import ConsoleSite, Visitor
from tests.fixtures.console_story import Story


def test_a_key_is_found_by_whatever_is_known_of_it(
    console_site: ConsoleSite, visitor: Visitor
) -> None:
    console_site.post("/orders", "lost-1", {"item": "tea"})
    (kept,) = console_site.tell("keys", prefix="lost-1")["keys"]
    tenant, project, subject = kept["namespace"].removeprefix("t-").split(":", 2)
    whole = {"tenant": tenant, "project": project, "subject": subject}
    for query in (
        {"id": kept["operation_id"]},
        {"key": "lost-1"},
        {"prefix": "lost-"},
        {"endpoint": "POST /orders", "key": "lost-1"},
        {"tenant": tenant, "prefix": "lost"},
        {"tenant": tenant, "project": project, "prefix": "lost"},
        {**whole, "endpoint": "POST /orders", "key": "lost-1"},
        {"state": "succeeded", "prefix": "lost-1"},
    ):
        page = visitor.see("/keys", **query)
        assert f"/console/keys/{kept['operation_id']}" in page, query
    for query in ({"key": "lost-2"}, {"id": "op_0000000000000001"}, {"id": "../audit"}):
        assert "No such keys." in visitor.see("/keys", **query)


def test_a_bad_question_is_answered_with_the_rule(visitor: Visitor) -> None:
    page = visitor.see("/keys", status=400, project="shop")
    assert "a project is one of a tenant" in page
    assert 'value="shop"' in page
    visitor.see("/keys", status=400, before="yesterday")
    visitor.see("/keys", status=400, state="nonsense")


def test_a_key_shows_its_answer_and_what_happened(
    console_site: ConsoleSite, visitor: Visitor
) -> None:
    console_site.post("/orders", "shown-1", {"item": "jasmine"})
    page = visitor.see(f"/keys/{console_site.operation('shown-1')}")
    for each in ("shown-1", "POST /orders", "201", "jasmine", "claimed", "succeeded", "expires"):
        assert each in page
    visitor.see("/keys/op_0000000000000001", status=404)
    visitor.see("/keys/nonsense", status=404)
    assert "No page of the console has this address." in visitor.see("/nothing", status=404)


def test_the_key_of_a_workflow_and_of_a_promise_lead_to_them(
    console_site: ConsoleSite, visitor: Visitor
) -> None:
    workflow = console_site.start("order", "leading-1", "77")
    console_site.workflow(workflow, "waiting")
    page = visitor.see(f"/keys/{console_site.operation('leading-1')}")
    assert f'href="/console/workflows/{workflow}"' in page
    assert "waiting" in page
    page = visitor.see(f"/keys/{console_site.operation('stripe:ch_77')}")
    assert f"/console/promises/{workflow}%3Apayment" in page
    assert "pending" in page


def test_forgetting_is_done_once_and_noted(console_site: ConsoleSite, visitor: Visitor) -> None:
    console_site.post("/orders", "purged-1", {"item": "tea"})
    path = f"/keys/{console_site.operation('purged-1')}/purge"
    fields = visitor.fields(path)
    first, second = visitor.send(path, fields), visitor.send(path, fields)
    assert first.headers["location"] == "/console/keys?said=purged"
    assert second.headers["location"] == "/console/keys?said=purged&again=1"
    assert "once" in visitor.see("/keys", said="purged", again="1")
    entries = console_site.tell("audit")["entries"]
    mine = [each for each in entries if each["details"].get("key") == "purged-1"]
    assert len(mine) == 1
    answer = console_site.post("/orders", "purged-1", {"item": "coffee"})
    assert answer.status_code == HTTPStatus.CREATED


def test_two_clicks_at_once_are_both_told_that_it_is_done(
    console_site: ConsoleSite, visitor: Visitor
) -> None:
    for number in range(5):
        console_site.post("/orders", f"clicked-{number}", {"item": "tea"})
        path = f"/keys/{console_site.operation(f'clicked-{number}')}/purge"
        fields = visitor.fields(path)
        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(lambda _: visitor.send(path, fields), range(4)))  # noqa: B023
        assert {each.status_code for each in answers} == {HTTPStatus.SEE_OTHER}
        again = [each.headers["location"].endswith("again=1") for each in answers]
        assert sorted(again) == [False, True, True, True]


def test_what_runs_is_forgotten_only_by_force(console_site: ConsoleSite, visitor: Visitor) -> None:
    workflow = console_site.start("order", "running-1", "78")
    console_site.workflow(workflow, "waiting")
    path = f"/keys/{console_site.operation('running-1')}/purge"
    refused = visitor.act(path)
    assert refused.status_code == HTTPStatus.CONFLICT
    assert "Nothing was done" in refused.text
    assert console_site.operation("running-1") in path


@pytest.fixture(scope="module")
def story(console_site: ConsoleSite) -> Story:
    return Story(console_site)


def test_the_overview_tells_what_needs_somebody(
    console_site: ConsoleSite, visitor: Visitor, story: Story
) -> None:
    story.trade(12)
    # What is counted is counted anew after some seconds; the test's own time limit is the only one.
    while console_site.tell("census")["workflows"]["paused"] == 0:
        continue
    page = visitor.see("")
    for each in (story.paused, story.failed):
        assert f"/console/workflows/{each}" in page
    assert "The signature is by none of the secrets" in page
    assert "Mismatches" in page


def test_the_overview_shows_what_runs(console_site: ConsoleSite, visitor: Visitor) -> None:
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(console_site.post, "/waiting/one", "slow-1", {})
        while "slow-1" not in visitor.see(""):
            continue
        console_site.caller.put("/doors/one")
        assert running.result().status_code == HTTPStatus.OK
    assert "slow-1" not in visitor.see("")
