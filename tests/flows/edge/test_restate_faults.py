"""Edges, Restate and the service behind fail one by one: nothing is doubled that need not be, and
nobody waits past his time."""

import json
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from oncekey import Ref, Scope
from tests.fixtures.behind import DO
from tests.fixtures.edge_site import EdgeSite, MakeSite, token
from tests.fixtures.restate_edge import (
    ATTACHING,
    ORDERS,
    Asking,
    RestateEdges,
    ask,
    code_of,
    effects,
    is_replayed,
    joining,
    until,
)
from tests.fixtures.restate_shop import open_shop

pytestmark = pytest.mark.restate

ANYWHERE = "http://127.0.0.1:0"
ALICE = "t-acme:shop:user:alice"
SLACK = 3


@pytest.fixture
def two(restate_edges: RestateEdges) -> tuple[EdgeSite, EdgeSite]:
    """Restate calls the first; the other one only asks."""
    return restate_edges.open(), restate_edges.open(endpoint=ANYWHERE)


def test_two_edges_and_many_callers_have_one_effect(two: tuple[EdgeSite, EdgeSite]) -> None:
    lines = {"Idempotency-Key": "k", DO: '{"sleep": 0.5}'}
    clients = [site.client(**lines) for site in two]
    with ThreadPoolExecutor(40) as pool:
        asked = [pool.submit(clients[n % 2].post, ATTACHING, json={}) for n in range(200)]
        answers = [each.result() for each in asked]
    assert {each.status_code for each in answers} == {201}
    assert len({each.content for each in answers}) == 1
    assert [is_replayed(each) for each in answers].count(False) == 1
    assert len(effects(two[0], "k")) == 1


def test_workers_of_one_edge_perform_for_each_other(restate_edges: RestateEdges) -> None:
    """Restate calls any of them, at one address."""
    site = restate_edges.open("[server]\nworkers = 2\n")
    asked = [f"k-{number}" for number in range(20) for _ in range(3)]
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda key: ask(site, key, ATTACHING), asked))
    assert {each.status_code for each in answers} == {201}
    assert [is_replayed(each) for each in answers].count(False) == 20
    assert [len(effects(site, key)) for key in set(asked)] == 20 * [1]


def test_an_edge_learns_what_another_one_asks_for(two: tuple[EdgeSite, EdgeSite]) -> None:
    performing, asking = two
    first = Asking(asking, "k")
    for site in (asking, performing):
        busy = ask(site, "k")
        assert (busy.status_code, code_of(busy)) == (409, "request-in-progress")
        other = ask(site, "k", body={"item": "coffee"})
        assert (other.status_code, code_of(other)) == (422, "idempotency-key-reused")
    assert first.answer().status_code == 201
    # Neither of those that were refused is run when its turn would have come.
    assert [is_replayed(ask(site, "k")) for site in two] == [True, True]
    assert len(effects(asking, "k")) == 1


def test_who_joins_at_another_edge_gets_the_answer(two: tuple[EdgeSite, EdgeSite]) -> None:
    performing, asking = two
    first = Asking(performing, "k", ATTACHING)
    joined = joining(first, lambda: ask(asking, "k", ATTACHING))
    assert (joined.content, is_replayed(joined)) == (first.answer().content, True)
    assert len(effects(asking, "k")) == 1


def test_a_call_goes_on_when_the_edge_that_made_it_is_killed(
    two: tuple[EdgeSite, EdgeSite],
) -> None:
    performing, asking = two
    first = Asking(asking, "k")
    asking.served.stop(signal.SIGKILL)
    first.let_go()
    until(lambda: ask(performing, "k").status_code == 201)
    answer = ask(performing, "k")
    assert is_replayed(answer)
    assert len(effects(performing, "k")) == 1


def test_another_edge_performs_what_a_killed_one_had_begun(
    two: tuple[EdgeSite, EdgeSite],
) -> None:
    """The route may be asked again; from then on there is one answer."""
    performing, asking = two
    first = Asking(asking, "k", ATTACHING)
    performing.served.stop(signal.SIGKILL)
    first.let_go()
    until(lambda: ask(asking, "k", ATTACHING).status_code == 201)
    answers = {ask(asking, "k", ATTACHING).content for _ in range(2)}
    told = first.answer()
    assert len(answers) == 1
    assert told.status_code == 409 or told.content in answers
    assert len(effects(asking, "k")) == 2


def test_a_restarted_edge_brings_the_answer_of_what_it_had_begun(
    restate_edges: RestateEdges,
) -> None:
    restate_edges.die_asking("k")
    site = restate_edges.open()
    until(lambda: is_replayed(ask(site, "k")))
    assert len(effects(site, "k")) == 2


def test_a_call_that_is_paused_keeps_nobody_waiting(restate_edges: RestateEdges) -> None:
    site = restate_edges.open()
    begun = [Asking(site, "k"), Asking(site, "joining", ATTACHING)]
    site.served.stop(signal.SIGKILL)
    calls = restate_edges.calls()
    assert len(calls) == 2
    for call in calls:
        restate_edges.patch(call["id"], "pause")
    until(lambda: {each["status"] for each in restate_edges.calls()} == {"paused"})

    site = restate_edges.open()
    for key, path in (("k", ORDERS), ("joining", ATTACHING)):
        answer = ask(site, key, path)
        assert (answer.status_code, code_of(answer)) == (409, "request-in-progress")
        assert answer.headers["retry-after"]
        assert ask(site, key, path, body={"b": 1}).status_code == 422
        told = site.client().get(f"{path}/by-idempotency-key/{key}/output")
        assert told.status_code == 202
    for call, each in zip(calls, begun, strict=True):
        each.let_go()
        restate_edges.patch(call["id"], "resume")
    until(lambda: is_replayed(ask(site, "k")))
    assert is_replayed(ask(site, "joining", ATTACHING))


def test_without_restate_nothing_is_run_unless_the_route_says_so(
    restate_edges: RestateEdges,
) -> None:
    site = restate_edges.open()
    assert ask(site, "before").status_code == 201
    restate_edges.server.kill()
    try:
        answer = ask(site, "k")
        assert (answer.status_code, code_of(answer)) == (503, "ledger-unavailable")
        assert answer.headers["retry-after"]
        assert effects(site, "k") == []
        for count in (1, 2):
            assert ask(site, "k", "/api/v1/open").status_code == 201
            assert len(effects(site, "k")) == count
    finally:
        restate_edges.server.start()
    until(lambda: ask(site, "k").status_code == 201)
    assert is_replayed(ask(site, "before"))


def test_an_edge_that_claims_learns_what_another_one_forwards(
    restate_edges: RestateEdges,
) -> None:
    """That the key is busy for longer than the store is waited for does not mean that there is
    none: a route that fails open would run twice."""
    path = "/api/v1/open"
    site = restate_edges.open(timeout="30s")
    claims = restate_edges.open(endpoint=ANYWHERE, timeout="30s")
    # An answer that no envelope carries: the route goes the other way from now on.
    assert ask(claims, "large", path, chunks=["x" * 2000], times=4500).status_code == 409
    asking = Asking(site, "k", path)
    told = ask(claims, "k", path)
    assert (told.status_code, code_of(told)) == (409, "request-in-progress")
    assert ask(claims, "k", path, {"b": 1}).status_code == 422
    assert asking.answer().status_code == 201
    until(lambda: ask(claims, "k", path).content == asking.answer().content)
    assert len(effects(site, "k")) == 1


def test_nobody_waits_for_a_restate_that_has_frozen(restate_edges: RestateEdges) -> None:
    site = restate_edges.open(timeout="1s")
    assert ask(site, "before").status_code == 201
    pid = restate_edges.server.nodes[0].process.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        begun = time.monotonic()
        answer = ask(site, "k")
        took = time.monotonic() - begun
    finally:
        os.kill(pid, signal.SIGCONT)
    assert (answer.status_code, code_of(answer)) == (503, "ledger-unavailable")
    # The service behind has a second, and five to be reached in; Restate five, and two to be asked.
    assert took < 1 + 5 + 5 + 2 + SLACK
    until(lambda: ask(site, "k").status_code == 201)
    assert len(effects(site, "k")) == 1


def test_a_purged_key_runs_at_once(restate_edges: RestateEdges) -> None:
    site = restate_edges.open()
    ref = Ref(Scope(ALICE, f"POST {ORDERS}"), "k")
    with_body = {"item": "coffee"}
    ledger = restate_edges.open_ledger()
    try:
        for _ in range(3):
            first = ask(site, "k")
            assert (first.status_code, is_replayed(first)) == (201, False)
            assert is_replayed(ask(site, "k"))
            assert ask(site, "k", body=with_body).status_code == 422
            assert ledger.purge(ref)
        assert not ledger.purge(ref)
        assert ledger.peek(ref) is None
        assert not is_replayed(ask(site, "k", body=with_body))
    finally:
        ledger.close()


def test_no_credential_is_kept_by_restate(restate_edges: RestateEdges) -> None:
    site = restate_edges.open()
    bearer = token()
    lines = {
        "Authorization": f"Bearer {bearer}",
        "Cookie": "session=of-the-client",
        "X-Secret": "not-listed",
        "Idempotency-Key": "k",
        "X-Request-Id": "listed",
    }
    told = {"hold": "k", "headers": [["set-cookie", "session=of-the-service"]]}
    answers: list[httpx.Response] = []

    def work() -> None:
        client = site.client(bearer)
        answers.append(
            client.post(ORDERS, json={}, headers={**lines, DO: json.dumps(told)}, timeout=60)
        )

    with ThreadPoolExecutor(1) as pool:
        under_way = pool.submit(work)
        until(lambda: len(effects(site, "k")) == 1)
        journal = str(restate_edges.query("SELECT raw FROM sys_journal"))
        site.behind.let_go("k")
        under_way.result()
    assert b"listed".hex() in journal
    for secret in (bearer, "of-the-client", "not-listed"):
        assert secret.encode().hex() not in journal
    assert answers[0].headers["set-cookie"] == "session=of-the-service"
    seen = dict(effects(site, "k")[0]["headers"])
    assert {"authorization", "cookie", "x-secret"}.isdisjoint(seen)
    assert b"of-the-service" not in kept_answer(restate_edges)


def kept_answer(edges: RestateEdges) -> bytes:
    """What Restate would answer to whoever called as the edge does."""
    (call,) = edges.all_calls()
    reply = httpx.get(f"{edges.server.ingress}/restate/invocation/{call['id']}/output")
    assert reply.status_code == 200
    return reply.content


def test_where_somebody_else_serves_the_ledger_the_edge_asks_by_itself(
    edge_site: MakeSite, restate_url: str
) -> None:
    """A process without an edge can keep keys, and knows no service to ask."""
    site = edge_site(f'[restate]\nheaders = ["{DO}"]', environ={"ONCEKEY_STORE__URL": restate_url})
    first = Asking(site, "k")
    assert ask(site, "k").status_code == 409
    answer = first.answer()
    again = ask(site, "k")
    assert (again.content, is_replayed(again)) == (answer.content, True)
    assert len(effects(site, "k")) == 1


def test_a_route_that_refuses_is_never_asked_again(restate_edges: RestateEdges) -> None:
    restate_edges.die_asking("k", "/api/v1/refusing")
    site = restate_edges.open()
    until(lambda: code_of(ask(site, "k", "/api/v1/refusing")) == "outcome-unknown")
    assert len(effects(site, "k")) == 1


@pytest.mark.parametrize("path, retried, asked", [(ORDERS, 409, 1), ("/api/v1/again", 201, 2)])
def test_what_an_edge_that_stops_does_not_wait_for_is_in_doubt(
    restate_edges: RestateEdges, path: str, retried: int, asked: int
) -> None:
    """A stop in good order is no crash: what the route says of a service that broke off holds."""
    site = restate_edges.open("[server]\ngrace = '1s'\n", timeout="60s")
    under_way = Asking(site, "k", path)
    site.served.stop(signal.SIGTERM)
    assert code_of(under_way.answer()) == "request-in-progress"
    site = restate_edges.open()
    answer = ask(site, "k", path)
    assert answer.status_code == retried
    assert retried == 201 or code_of(answer) == "outcome-unknown"
    assert len(effects(site, "k")) == asked


def test_what_is_asked_when_restate_is_killed_is_not_asked_twice(
    restate_edges: RestateEdges,
) -> None:
    """Restate calls again for what it had begun; the process that does it already goes on."""
    site = restate_edges.open()
    asking = [Asking(site, f"k-{n}", ATTACHING) for n in range(3)]
    restate_edges.server.restart()
    until(lambda: len(restate_edges.calls()) == 3)
    answers = [each.answer() for each in asking]
    for number, answer in enumerate(answers):
        assert answer.status_code == 201
        assert not is_replayed(answer)
        assert ask(site, f"k-{number}", ATTACHING).content == answer.content
        assert len(effects(site, f"k-{number}")) == 1


def test_a_service_that_cannot_be_reached_leaves_nothing_behind(
    restate_edges: RestateEdges,
) -> None:
    site = restate_edges.open()
    site.behind.kill()
    for _ in range(2):
        answer = ask(site, "k")
        assert (answer.status_code, code_of(answer)) == (502, "upstream-unreachable")
        assert answer.headers["retry-after"]
    assert site.client().get(f"{ORDERS}/by-idempotency-key/k/output").status_code == 404
    site.behind.start()
    assert [is_replayed(ask(site, "k")) for _ in range(2)] == [False, True]
    assert len(effects(site, "k")) == 1


def test_a_service_that_breaks_off_is_asked_again_only_where_the_route_says_so(
    restate_edges: RestateEdges,
) -> None:
    site = restate_edges.open(timeout="1s")
    late = ask(site, "late", sleep=3)
    assert (late.status_code, code_of(late)) == (504, "upstream-timeout")
    again = ask(site, "late", sleep=3)
    assert (again.status_code, code_of(again)) == (409, "outcome-unknown")
    assert again.headers["x-operation-id"] == late.headers["x-operation-id"]
    assert len(effects(site, "late")) == 1
    broken = ask(site, "again", "/api/v1/again", sleep=3)
    assert (broken.status_code, code_of(broken)) == (504, "upstream-timeout")
    # It may have had an effect, so the key is its own still.
    assert ask(site, "again", "/api/v1/again", body={"item": "coffee"}).status_code == 422
    retried = ask(site, "again", "/api/v1/again")
    assert (retried.status_code, is_replayed(retried)) == (201, False)
    assert retried.headers["x-operation-id"] == broken.headers["x-operation-id"]
    assert is_replayed(ask(site, "again", "/api/v1/again"))
    assert len(effects(site, "again")) == 2


def test_ledger_and_service_may_both_be_on_restate(restate_edges: RestateEdges) -> None:
    ingress, admin = (restate_edges.server.nodes[0].addresses[n] for n in ("ingress", "admin"))
    more = (
        f'[upstreams.shop]\nurl = "restate://{ingress}/Shop/order?admin={admin}"\n'
        '[[routes]]\npath = "/shop"\nupstream = "shop"\npolicy = "REQUIRED_A"\n'
    )
    with open_shop(restate_edges.server.admin) as shop:
        site = restate_edges.open(more)
        first, again = (ask(site, "k", "/shop") for _ in range(2))
        assert (first.status_code, again.content) == (200, first.content)
        assert [is_replayed(first), is_replayed(again)] == [False, True]
        assert ask(site, "k", "/shop", body={"item": "coffee"}).status_code == 422
        assert len(shop.seen) == 1
