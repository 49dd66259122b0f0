"""A node dies when it has heard half of what a handler did: the handler is called again, does the
same as before, and nothing stays shut for ever."""

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import httpx
import pytest

from oncekey import Ref, Scope
from tests.fixtures.edge_site import EdgeSite
from tests.fixtures.processes import Process, Start
from tests.fixtures.restate_chaos import calls, check_nothing_is_stuck
from tests.fixtures.restate_edge import (
    ATTACHING,
    ORDERS,
    Asking,
    RestateEdges,
    ask,
    code_of,
    effects,
    is_replayed,
    until,
)
from tests.fixtures.restate_server import RestateServer, new_space
from tests.fixtures.storm import call, check, work
from tests.fixtures.torn import TornLine
from tests.fixtures.workers import Crew

pytestmark = [pytest.mark.restate, pytest.mark.timeout(300)]

ALICE = "t-acme:shop:user:alice"
# A retry may ask the service behind again.
AGAIN = "/api/v1/again"
KEYS, TWICE, JOBS = 60, 2, 14


@pytest.fixture
def line(tmp_path: Path) -> Iterator[TornLine]:
    with closing(TornLine(tmp_path)) as made:
        yield made


@pytest.fixture
def server() -> Iterator[RestateServer]:
    """One that nobody else serves."""
    made = RestateServer()
    try:
        made.start()
        yield made
    finally:
        made.close()


def test_a_forwarded_request_has_one_effect_and_one_answer(
    server: RestateServer, line: TornLine, tmp_path: Path
) -> None:
    with ExitStack() as ends:
        edges = RestateEdges(server, tmp_path, ends)
        site = edges.open(endpoint=line.endpoint)
        with ThreadPoolExecutor(8) as pool:
            keys = [f"k{number}" for number in range(KEYS)] * TWICE
            answers = list(pool.map(lambda key: ask(site, key, ATTACHING), keys))
        assert {each.status_code for each in answers} == {201}
        for number in range(KEYS):
            first, again = answers[number], answers[number + KEYS]
            assert first.content == again.content
            assert {is_replayed(first), is_replayed(again)} == {False, True}
            assert len(effects(site, f"k{number}")) == 1
        assert line.by_handler()["oncekey.Request/forward"] > KEYS / 4
        check_nothing_is_stuck(server.admin)


@pytest.mark.parametrize("unheard", [1, 2])
def test_what_was_written_is_the_answer_though_another_process_gives_it(
    server: RestateServer, tmp_path: Path, unheard: int
) -> None:
    """Whoever is called again knows nothing of the first answer but what Restate has of it: what
    was written, and maybe what the handler returned."""
    with ExitStack() as ends, closing(TornLine(tmp_path, often=0)) as line:
        edges = RestateEdges(server, tmp_path, ends)
        site = edges.open(endpoint=line.endpoint)
        line.break_at("oncekey.Request/forward", unheard)
        Asking(site, "k", ATTACHING).let_go()
        line.until_broken()
        site.served.stop(signal.SIGKILL)
        line.mend()
        site = edges.open(endpoint=line.endpoint)
        until(lambda: ask(site, "k", ATTACHING).status_code == 201)
        answers = [ask(site, "k", ATTACHING) for _ in range(3)]
        assert len({each.content for each in answers}) == 1
        assert all(is_replayed(each) for each in answers)
        ledger = edges.open_ledger()
        record = ledger.peek(Ref(Scope(ALICE, "POST /api/v1/orders/{id}/pay"), "k"))
        ledger.close()
        assert record is not None
        assert record.outcome is not None
        assert record.outcome.body == answers[0].content
        assert ask(site, "k", ATTACHING, body={"b": 1}).status_code == 422
        check_nothing_is_stuck(server.admin)


def test_nobody_waits_for_ever_for_an_edge_that_restate_cannot_reach(
    server: RestateServer, tmp_path: Path
) -> None:
    with ExitStack() as ends, closing(TornLine(tmp_path, often=0)) as line:
        edges = RestateEdges(server, tmp_path, ends)
        site = edges.open(endpoint=line.endpoint, timeout="1s")
        before = ask(site, "before")
        line.cut()
        with ThreadPoolExecutor(4) as pool:
            told = list(pool.map(lambda path: ask(site, "k", path), [ORDERS, ATTACHING] * 2))
        for answer in told:
            assert (answer.status_code, code_of(answer)) in {
                (409, "request-in-progress"), (503, "ledger-unavailable")
            }  # fmt: skip
            assert answer.headers["retry-after"]
        assert effects(site, "k") == []
        line.mend()
        for path in (ORDERS, ATTACHING):
            until(lambda path=path: ask(site, "k", path).status_code == 201)
            assert is_replayed(ask(site, "k", path))
        assert ask(site, "before").content == before.content
        # Each path has keys of its own.
        assert len(effects(site, "k")) == 2


@pytest.mark.parametrize("path", [ORDERS, ATTACHING])
def test_a_key_that_is_answered_stays_so_while_restate_can_call_nobody(
    server: RestateServer, tmp_path: Path, path: str
) -> None:
    """A call that nobody hears holds its key as well as one that is carried out."""
    with ExitStack() as ends, closing(TornLine(tmp_path, often=0)) as line:
        edges = RestateEdges(server, tmp_path, ends)
        site = edges.open(endpoint=line.endpoint, timeout="1s")
        done = ask(site, "k", path)
        # Restate's own memory of an answer, which it keeps for minutes.
        edges.patch(edges.all_calls()[0]["id"], "purge")
        line.cut()
        _check_whose_it_is(site, path)
        line.mend()
        until(lambda: ask(site, "k", path).status_code == 201)
        again = ask(site, "k", path)
        assert is_replayed(again)
        assert again.content == done.content
        assert ask(site, "k", path, body={"b": 1}).status_code == 422
        assert len(effects(site, "k")) == 1
        check_nothing_is_stuck(server.admin)


def test_a_key_stays_with_the_request_that_broke_off_while_restate_can_call_nobody(
    server: RestateServer, tmp_path: Path
) -> None:
    with ExitStack() as ends, closing(TornLine(tmp_path, often=0)) as line:
        edges = RestateEdges(server, tmp_path, ends)
        site = edges.open(endpoint=line.endpoint, timeout="1s")
        assert ask(site, "k", AGAIN, die="after").status_code == 502
        site.behind.join()
        site.behind.start()
        line.cut()
        _check_whose_it_is(site, AGAIN)
        line.mend()
        until(lambda: not edges.calls())
        assert ask(site, "k", AGAIN, body={"b": 1}).status_code == 422
        assert ask(site, "k", AGAIN).status_code == 201
        assert len({each["body"] for each in effects(site, "k")}) == 1


def _check_whose_it_is(site: EdgeSite, path: str) -> None:
    """All ask at once, so that any of them may be the one whose call waits to be heard."""
    with ThreadPoolExecutor(4) as pool:
        bodies = [{"b": 1}, {"b": 1}, None, None]
        told = list(pool.map(lambda body: ask(site, "k", path, body), bodies))
    codes = [(each.status_code, code_of(each)) for each in told]
    assert codes[:2] == [(422, "idempotency-key-reused")] * 2
    assert codes[2:] == [(503, "ledger-unavailable")] * 2
    assert all(each.headers["retry-after"] for each in told[2:])
    assert ask(site, "k", path, body={"b": 1}).status_code == 422


def test_workflows_end_once(
    server: RestateServer, line: TornLine, start: Start, tmp_path: Path
) -> None:
    space = new_space()
    options = {"lease": 30.0, "heartbeat": 5.0, "concurrency": 1000, "resident": 1000}
    url = server.url(space=space, endpoint=line.endpoint)
    worker: Process = start(work, url, tmp_path, options)
    assert worker.hear() == "open"
    client = start(call, server.url(space=space), tmp_path, 1, JOBS, 10)
    count, wrong = client.hear()
    assert (count, wrong) == (JOBS, [])
    check(server.url(space=space), tmp_path)
    torn = line.by_handler()
    assert {"oncekey.Execution/advance", "oncekey.Execution/create"} <= set(torn), torn
    assert torn.total() > JOBS
    check_nothing_is_stuck(server.admin)


RUN = "oncekey.torn.workflow.steps/run"
# What Restate hears of a call for a workflow that goes on: that somebody is to look after it again,
# what the call returns, and that it is all.
UNHEARD = pytest.mark.parametrize("unheard", [1, 2])


@pytest.fixture
def broken(tmp_path: Path) -> Iterator[TornLine]:
    """Once, where it is told to."""
    with closing(TornLine(tmp_path, often=0)) as made:
        yield made


@pytest.fixture
def crew(server: RestateServer, broken: TornLine, tmp_path: Path) -> Iterator[Crew]:
    url = server.url(space="torn", endpoint=broken.endpoint)
    with closing(Crew(url, tmp_path, lease=1.5, heartbeat=0.4)) as made:
        yield made


@pytest.mark.parametrize("is_looked_after", [True, False])
def test_a_workflow_whose_process_died_while_it_answered_goes_on_elsewhere(
    server: RestateServer, broken: TornLine, crew: Crew, *, is_looked_after: bool
) -> None:
    """Restate holds on to an address from which it heard something, and nobody comes back to it.
    When it died as well, it may know of no more than that."""
    doomed = crew.hire()
    broken.break_at(RUN)
    execution = doomed.ask("start", "steps", ["one", "held", "two"])
    crew.until_marked(execution, "held")
    broken.until_broken()
    doomed.kill()
    if not is_looked_after:
        _end_calls(server, "pinned_deployment_id IS NULL")
    crew.url = server.url(space="torn")
    heir = crew.hire()
    crew.open("held")
    assert heir.ask("result", execution) == ["one", "held", "two"]
    check_nothing_is_stuck(server.admin)


@UNHEARD
def test_a_call_that_is_made_again_ends_though_there_is_nothing_to_look_after_any_more(
    server: RestateServer, broken: TornLine, crew: Crew, unheard: int
) -> None:
    worker = crew.hire()
    broken.break_at(RUN, unheard)
    execution = worker.ask("start", "steps", ["one", "held", "two"])
    crew.until_marked(execution, "held")
    broken.until_broken()
    crew.open("held")
    # Later than everything else that Restate tries again: the workflow ends before.
    until(lambda: _attempts(server) > 6)
    broken.mend()
    assert worker.ask("result", execution) == ["one", "held", "two"]
    check_nothing_is_stuck(server.admin)


def _end_calls(server: RestateServer, where: str) -> None:
    wanted = {"query": f"SELECT id FROM sys_invocation WHERE target = '{RUN}' AND {where}"}
    lines = {"accept": "application/json"}
    reply = httpx.post(f"{server.admin}/query", json=wanted, headers=lines)
    [row] = reply.raise_for_status().json()["rows"]
    httpx.patch(f"{server.admin}/invocations/{row['id']}/kill").raise_for_status()


def _attempts(server: RestateServer) -> int:
    found = calls(server.admin, "backing-off")
    return max((each["retry_count"] for each in found if each["target"] == RUN), default=0)
