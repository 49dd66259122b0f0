"""Restate that is stopped, killed and cut off: nothing runs twice, nothing stays held, no outcome
is lost, and the store comes back by itself."""

import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Any
from urllib.parse import urlsplit

import pytest

import oncekey
from oncekey import App, ConfigurationError, Context, LedgerClosed, StoreUnavailable
from oncekey.core.audit import AuditEntry, KeepAudit, ListAudit
from oncekey.core.ports import Abandon, Found, Held, Peek, Release, Take
from oncekey.core.waiting import ThreadWaiter
from oncekey.stores.restate import cluster
from tests.fixtures.claimant import preloaded
from tests.fixtures.ports import lasting_port, unused_port
from tests.fixtures.processes import CONTEXT, Start
from tests.fixtures.proxy import Proxy
from tests.fixtures.restate_server import RestateServer
from tests.fixtures.stores import DONE, Caller, Place, until

pytestmark = pytest.mark.restate

# How a call about a key begins on the wire.
ASK = b"POST /restate/call/oncekey.Request/"
IMPATIENT = 0.5


@pytest.fixture
def place(restate_url: str) -> Iterator[Place]:
    opened = Place(restate_url)
    yield opened
    opened.close()


@pytest.fixture
def caller(place: Place) -> Caller:
    """One that is told soon."""
    opened = place.open()
    opened.store.cluster.link.patience = IMPATIENT  # type: ignore[attr-defined]
    return opened


@pytest.fixture
def proxy(restate: RestateServer) -> Iterator[Proxy]:
    port = urlsplit(restate.ingress).port
    assert port is not None
    with closing(Proxy(port)) as opened:
        yield opened


@pytest.fixture
def cut_off(proxy: Proxy, restate: RestateServer, place: Place) -> Iterator[Caller]:
    """A store that asks through the proxy only."""
    ingress = urlsplit(restate.ingress).netloc
    through = Place(place.url.replace(ingress, f"127.0.0.1:{proxy.port}"))
    caller = through.open()
    # Both sides of the test draw from the same numbers.
    caller.numbers = place._numbers
    assert caller.ask(caller.insert("warm")) == Held(1)
    yield caller
    through.close()


def answer_to(caller: Caller, request: Any) -> Any:
    """The answer, also when it is an error."""
    waiter = ThreadWaiter()
    caller.store.submit(request, waiter)
    return waiter.wait()


def told_away(caller: Caller, request: Any) -> bool:
    return isinstance(answer_to(caller, request), StoreUnavailable)


# -- a connection that is cut around a call ----------------------------------------------------


@pytest.mark.parametrize("when", ["before", "after", "between"])
def test_a_claim_whose_answer_is_lost_is_made_once_and_known(
    cut_off: Caller, place: Place, proxy: Proxy, when: Any
) -> None:
    proxy.cut(ASK, when)
    insert = cut_off.insert("k")

    assert cut_off.ask(insert) == Held(1)

    assert proxy.was_cut.is_set()
    found = place.open().ask(Peek(insert.digest))
    assert (found.record.id, found.record.fence, found.lapsed) == (insert.id, 1, False)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_takeover_whose_answer_is_lost_is_made_once(
    cut_off: Caller, proxy: Proxy, when: Any
) -> None:
    insert = cut_off.insert("k")
    cut_off.ask(insert)
    cut_off.ask(Abandon(insert.id, 1))
    proxy.cut(ASK, when)

    assert cut_off.ask(Take(insert.id, insert.digest, 1)) == Held(2)
    assert cut_off.ask(Take(insert.id, insert.digest, 1)).record.fence == 2


@pytest.mark.parametrize("when", ["before", "after"])
def test_an_outcome_whose_answer_is_lost_is_stored_once(
    cut_off: Caller, place: Place, proxy: Proxy, when: Any
) -> None:
    insert = cut_off.insert("k")
    cut_off.ask(insert)
    proxy.cut(ASK, when)

    assert cut_off.ask(cut_off.settle(insert)) is True
    assert place.open().ask(Peek(insert.digest)).record.outcome == DONE


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_release_whose_answer_is_lost_has_happened(
    cut_off: Caller, proxy: Proxy, when: Any
) -> None:
    insert = cut_off.insert("k")
    cut_off.ask(insert)
    proxy.cut(ASK, when)

    assert cut_off.ask(Release(insert.id, 1)) is True
    assert cut_off.ask(cut_off.insert("k")) == Held(1)


# -- a server that is away ---------------------------------------------------------------------


def test_claims_are_refused_while_it_is_away_and_do_not_stay_held(
    caller: Caller, restate: RestateServer
) -> None:
    old = caller.insert("old")
    caller.ask(old)
    restate.kill()
    assert told_away(caller, caller.insert("k"))
    assert told_away(caller, Peek(old.digest))
    restate.start()

    insert = caller.insert("k")
    until(lambda: answer_to(caller, insert) == Held(1))
    assert caller.ask(caller.settle(old)) is True


def test_an_outcome_is_stored_though_its_caller_was_told_it_was_not(
    caller: Caller, restate: RestateServer
) -> None:
    done, dropped = caller.insert("done"), caller.insert("dropped")
    caller.ask_all([done, dropped])
    restate.kill()
    assert told_away(caller, caller.settle(done))
    assert told_away(caller, Release(dropped.id, 1))
    restate.start()

    def peeked(digest: bytes) -> Any:
        answer = answer_to(caller, Peek(digest))
        return answer if isinstance(answer, Found | None) else ...

    until(lambda: getattr(getattr(peeked(done.digest), "record", None), "outcome", None) == DONE)
    until(lambda: peeked(dropped.digest) is None)


def test_nobody_was_silent_while_it_was_away(place: Place, restate: RestateServer) -> None:
    lease = {"lease": 1.0, "heartbeat": 0.2}
    holder, judge = place.open(**lease), place.open(**lease)
    insert = holder.insert("k")
    holder.ask(insert)
    # Long enough to be silent, as far as the clock is concerned.
    restate.restart()
    restate.restart()
    heard: set[int] = set()

    def has_beaten_again() -> bool:
        answer = answer_to(judge, Peek(insert.digest))
        assert not getattr(answer, "lapsed", False)
        silences = judge.store.run(lambda cluster: cluster.owners("silences", None))  # type: ignore[attr-defined]
        heard.update(int(owner) for owner, silence in silences.items() if silence == 0)
        return heard >= {holder.store.owner, judge.store.owner}  # type: ignore[attr-defined]

    until(has_beaten_again)
    assert holder.ask(holder.settle(insert)) is True


def test_a_store_cannot_be_opened_while_it_is_away_and_leaves_nothing_behind(
    place: Place, restate: RestateServer
) -> None:
    threads = threading.active_count()
    restate.stop()
    with pytest.raises(StoreUnavailable, match="did not answer"):
        place.open()
    assert threading.active_count() == threads
    restate.start()
    caller = place.open()
    assert caller.ask(caller.insert("k")) == Held(1)


def test_a_store_can_be_closed_while_it_is_away(place: Place, restate: RestateServer) -> None:
    caller, threads = place.open(), threading.active_count()
    restate.stop()
    caller.store.close()
    assert threading.active_count() == threads - 1
    with pytest.raises(LedgerClosed):
        caller.ask(caller.insert("k"))


# -- closing while requests are under way ------------------------------------------------------


def test_what_is_under_way_is_carried_out_before_the_end(place: Place) -> None:
    first, second = place.open(), place.open()
    entries = [AuditEntry(number, 7, "a", "b", "c", None, "{}") for number in range(50)]
    for entry in entries:
        first.store.submit(KeepAudit(entry), ThreadWaiter())
    first.store.close()
    assert len(second.ask(ListAudit())) == 50


def test_every_caller_is_answered_when_a_store_is_closed_under_it(place: Place) -> None:
    caller = place.open()
    insert = caller.insert("k")
    caller.ask(insert)
    answers: list[Any] = []
    begun = threading.Barrier(5)

    def ask() -> None:
        begun.wait()
        while True:
            try:
                answer = answer_to(caller, Peek(insert.digest))
            except LedgerClosed as error:
                answer = error
            answers.append(answer)
            if isinstance(answer, LedgerClosed):
                return

    def administer() -> None:
        begun.wait()
        with suppress(LedgerClosed):
            while True:
                caller.store.retention()

    threads = [threading.Thread(target=work) for work in (ask, ask, ask, administer)]
    for thread in threads:
        thread.start()
    begun.wait()
    until(lambda: len(answers) > 10)
    caller.store.close()
    for thread in threads:
        thread.join()
    assert {type(answer) for answer in answers} == {Found, LedgerClosed}


# -- a process that serves, and forks ----------------------------------------------------------


@pytest.fixture(scope="module")
def lonely() -> Iterator[RestateServer]:
    """A server for which nobody serves but the processes of a test."""
    server = RestateServer()
    try:
        server.start()
        yield server
    finally:
        server.close()


def test_a_child_goes_on_alone_when_the_parent_that_served_is_killed(
    lonely: RestateServer, start: Start
) -> None:
    ours, childs = CONTEXT.Pipe()
    options = {"lease": 1.5, "heartbeat": 0.3}
    parent = start(preloaded, lonely.url(), childs, options)
    childs.close()
    assert ours.recv() > 0
    ours.send(("begin", ["k"], {}))
    assert ours.recv() == "Proceed"

    parent.kill()

    # Told once somebody serves again; nothing waits on a line that the child holds open.
    ours.send(("settle", ["k"], {}))
    assert ours.recv() == "settled"
    ours.send(("begin", ["other"], {}))
    assert ours.recv() == "Proceed"
    ours.close()


def test_who_could_not_come_in_keeps_no_address_for_himself(
    lonely: RestateServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when nobody leads yet: whoever asks for it hears of the cluster, and may try again."""
    monkeypatch.setattr(cluster, "PATIENCE", IMPATIENT)
    url = lonely.url(endpoint=f"http://127.0.0.1:{lasting_port()}")
    nowhere = url.replace(urlsplit(lonely.ingress).netloc, f"127.0.0.1:{unused_port()}")
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="did not answer"):
            oncekey.open(nowhere)
    oncekey.open(url).close()


def greeter() -> App:
    app = App()

    @app.workflow
    async def greet(ctx: Context, name: str) -> str:
        return f"hello {name}"

    return app


@pytest.mark.anyio
async def test_workers_of_any_server_listen_at_one_address_if_told_so(
    lonely: RestateServer,
) -> None:
    url = lonely.url(endpoint=f"http://127.0.0.1:{lasting_port()}")
    one, other, third = greeter(), greeter(), greeter()
    async with one.open(f"{url}&shares=yes"):
        async with other.open(f"{url}&shares=yes"):
            for number, app in enumerate([one, other] * 3):
                handle = await app.start("greet", "you", key=f"k{number}")
                assert await handle.result(timeout=60) == "hello you"
            with pytest.raises(ConfigurationError, match="Address already in use"):
                async with third.open(url):
                    pass
        handle = await one.start("greet", "me", key="last")
        assert await handle.result(timeout=60) == "hello me"
