"""A call that Restate makes again does the same as before, whatever has changed meanwhile: what it
would find now, who carries it out, what an operator has said to it."""

import signal
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

import httpx
import pytest

from tests.fixtures.restate_edge import (
    ATTACHING,
    RestateEdges,
    ask,
    code_of,
    effects,
    is_replayed,
    until,
)
from tests.fixtures.restate_server import RestateServer
from tests.fixtures.torn import TornLine

pytestmark = [pytest.mark.restate, pytest.mark.timeout(300)]

FORWARD = "oncekey.Request/forward"
AGAIN, SHORT = "/api/v1/again", "/api/v1/short"
LARGE = "x" * 5000


# So much of the state of an object comes with a call; the rest has to be asked for.
everywhere = pytest.mark.parametrize("server", ["32 MiB", "0 B"], indirect=True)


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest) -> Iterator[RestateServer]:
    made = RestateServer()
    limit = getattr(request, "param", "32 MiB")
    made.nodes[0].add(f'[worker.invoker]\neager-state-size-limit = "{limit}"')
    try:
        made.start()
        yield made
    finally:
        made.close()


@pytest.fixture
def line(tmp_path: Path) -> Iterator[TornLine]:
    with closing(TornLine(tmp_path, often=0)) as made:
        yield made


@pytest.fixture
def edges(server: RestateServer, tmp_path: Path) -> Iterator[RestateEdges]:
    with ExitStack() as ends:
        yield RestateEdges(server, tmp_path, ends)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as made:
        yield made


def outlive_the_record() -> None:
    """Of an answer that has come: the route keeps it for a second."""
    over = time.time() + 1
    until(lambda: time.time() > over)


def told_to_end(edges: RestateEdges, asking: Future[httpx.Response]) -> None:
    """Restate has the call, reaches nobody for it, and is told to cancel it."""
    assert not asking.done()
    until(lambda: len(edges.calls()) == 1)
    edges.patch(edges.calls()[0]["id"], "cancel")


@everywhere
@pytest.mark.parametrize("do", [{}, {"body": LARGE}])
def test_a_record_is_found_wherever_it_has_to_be_looked_for(
    edges: RestateEdges, do: dict[str, str]
) -> None:
    site = edges.open()
    first = ask(site, "k", **do)
    for call in edges.all_calls():
        # So that it is the record that answers.
        edges.patch(call["id"], "purge")
    again = ask(site, "k", **do)
    assert (first.status_code, again.status_code) == (201, 201)
    assert is_replayed(again)
    assert again.content == first.content
    assert ask(site, "k", body={"b": 1}).status_code == 422
    assert len(effects(site, "k")) == 1
    until(lambda: not edges.calls())


@everywhere
def test_what_was_told_to_end_finds_the_record_all_the_same(
    edges: RestateEdges, line: TornLine, pool: ThreadPoolExecutor
) -> None:
    site = edges.open(endpoint=line.endpoint)
    first = ask(site, "k", ATTACHING)
    line.cut()
    other = pool.submit(ask, site, "k", ATTACHING, {"b": 1})
    told_to_end(edges, other)
    line.mend()
    assert other.result().status_code == 422
    assert ask(site, "k", ATTACHING).content == first.content
    assert len(effects(site, "k")) == 1
    until(lambda: not edges.calls())


def test_what_was_told_to_end_goes_on_as_it_began(
    edges: RestateEdges, line: TornLine, pool: ThreadPoolExecutor
) -> None:
    site = edges.open(endpoint=line.endpoint)
    ask(site, "k", SHORT)
    outlive_the_record()
    line.cut()
    asking = pool.submit(ask, site, "k", SHORT)
    told_to_end(edges, asking)
    line.break_at(FORWARD)
    line.until_broken()
    line.mend()
    assert asking.result().status_code == 201
    assert len(effects(site, "k")) == 2
    until(lambda: not edges.calls())


def test_what_broke_off_is_still_in_doubt_when_another_process_goes_on(
    edges: RestateEdges, line: TornLine, pool: ThreadPoolExecutor
) -> None:
    site = edges.open(endpoint=line.endpoint)
    line.break_at(FORWARD)
    pool.submit(ask, site, "k", AGAIN, die="after")
    line.until_broken()
    site.served.stop(signal.SIGKILL)
    line.mend()
    # Asked again now, the service behind would be out of reach, which leaves nothing to write.
    edges.open(endpoint=line.endpoint)
    until(lambda: not edges.calls())
    site.behind.start()
    site = edges.open(endpoint=line.endpoint)
    assert ask(site, "k", AGAIN, body={"b": 1}).status_code == 422
    assert len(effects(site, "k")) == 1


def test_what_was_forgotten_is_not_asked_for_when_another_process_goes_on(
    edges: RestateEdges, line: TornLine, pool: ThreadPoolExecutor
) -> None:
    site = edges.open(endpoint=line.endpoint)
    ask(site, "k", SHORT)
    outlive_the_record()
    site.behind.kill()
    line.break_at(FORWARD, 1)
    pool.submit(ask, site, "k", SHORT)
    line.until_broken()
    site.served.stop(signal.SIGKILL)
    site.behind.start()
    line.mend()
    site = edges.open(endpoint=line.endpoint)
    until(lambda: not edges.calls())
    assert len(effects(site, "k")) == 1
    until(lambda: ask(site, "k", SHORT).status_code == 201)


def test_what_was_answered_is_not_asked_for_when_the_record_is_over(
    edges: RestateEdges, line: TornLine, pool: ThreadPoolExecutor
) -> None:
    site = edges.open(endpoint=line.endpoint)
    ask(site, "k", SHORT)
    line.break_at(FORWARD, 1)
    other = pool.submit(ask, site, "k", SHORT, {"b": 1})
    line.until_broken()
    outlive_the_record()
    line.mend()
    assert (other.result().status_code, code_of(other.result())) == (422, "idempotency-key-reused")
    assert len(effects(site, "k")) == 1
    until(lambda: not edges.calls())
