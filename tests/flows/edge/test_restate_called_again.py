"""Restate calls again for what an edge had begun when it was killed: it may have been done, so that
its key stays with its request."""

from contextlib import closing

import pytest

from oncekey.stores.restate.ingress import Ingress
from tests.fixtures.restate_edge import (
    Asking,
    RestateEdges,
    ask,
    code_of,
    effects,
    is_replayed,
    until,
)

pytestmark = pytest.mark.restate


def test_what_a_killed_edge_may_have_done_lets_no_other_request_in(
    restate_edges: RestateEdges,
) -> None:
    """Restate calls again, and that fails: the key is kept for what it was used for."""
    restate_edges.die_asking("k", status=503)
    site = restate_edges.open()
    until(lambda: len(effects(site, "k")) == 2)
    until(lambda: not restate_edges.calls())
    other = ask(site, "k", body={"item": "coffee"})
    assert (other.status_code, code_of(other)) == (422, "idempotency-key-reused")
    assert ask(site, "k").status_code == 201
    assert len({each["body"] for each in effects(site, "k")}) == 1


def test_a_call_that_is_made_again_where_nobody_can_do_it_keeps_its_key(
    restate_edges: RestateEdges,
) -> None:
    restate_edges.die_asking("k")
    with closing(restate_edges.keep_ledger()):
        until(lambda: not restate_edges.calls())
    site = restate_edges.open()
    other = ask(site, "k", body={"item": "coffee"})
    assert (other.status_code, code_of(other)) == (422, "idempotency-key-reused")
    assert ask(site, "k").status_code == 201
    assert len({each["body"] for each in effects(site, "k")}) == 1


def test_a_call_that_comes_before_the_edge_is_made_again_when_it_is_there(
    restate_edges: RestateEdges,
) -> None:
    """A process serves its ledger before it has an edge, and Restate does not wait."""
    site = restate_edges.die_asking("k")
    with closing(restate_edges.keep_ledger(has_edge=True)):
        until(lambda: "about to start" in str(restate_edges.calls()[0]["last_failure"]))
    assert len(effects(site, "k")) == 1
    site = restate_edges.open()
    until(lambda: not restate_edges.calls())
    assert len(effects(site, "k")) == 2
    assert is_replayed(ask(site, "k"))


@pytest.mark.anyio
async def test_restate_tells_whether_a_call_is_over(restate_edges: RestateEdges) -> None:
    """By whoever carries it out: tables of a node that is just back may be behind."""
    site = restate_edges.open()
    first = Asking(site, "k")
    id_ = restate_edges.calls()[0]["id"]
    ingress = Ingress([restate_edges.server.ingress])
    assert await ingress.is_under_way(id_, patience=5)
    assert first.answer().status_code == 201
    assert not await ingress.is_under_way(id_, patience=5)
    restate_edges.patch(id_, "purge")
    assert not await ingress.is_under_way(id_, patience=5)
    await ingress.close()
