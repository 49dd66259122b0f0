"""Case C: tokens that a handler derives for itself, and what is counted of them."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

import oncekey
from oncekey.core.events import Tally
from oncekey.core.internal import HIT, Internal
from oncekey.core.key import check_key

SIGNALS = st.lists(st.one_of(st.text(min_size=1), st.integers()), min_size=1, max_size=4)


@pytest.fixture
def ledger():  # type: ignore[no-untyped-def]
    with_tally = oncekey.open("memory://", observer=Tally())
    yield with_tally
    with_tally.close()


@given(SIGNALS, SIGNALS)
def test_tokens_are_alike_only_for_the_same_signals(one: list[str], other: list[str]) -> None:
    internal = Internal(None, "feed")  # type: ignore[arg-type]
    same = [(type(each), each) for each in one] == [(type(each), each) for each in other]
    assert (internal.token(*one) == internal.token(*other)) == same
    assert check_key(internal.token(*one))


def test_two_handlers_never_share_a_token() -> None:
    tokens = {Internal(None, name).token("a") for name in ("feed", "import")}  # type: ignore[arg-type]
    assert len(tokens) == 2


@pytest.mark.parametrize("signals", [(), ("",), (None,), (1.5,), (b"x",), (True,)])
def test_what_is_no_signal_is_refused(signals: tuple[object, ...]) -> None:
    with pytest.raises(oncekey.InvalidInput, match="one or more texts or numbers"):
        Internal(None, "feed").token(*signals)  # type: ignore[arg-type]


def test_the_work_is_done_once_and_hits_are_counted(ledger: oncekey.Ledger) -> None:
    internal = Internal(ledger, "feed", retention="webhook")
    done: list[str] = []

    def work(name: str) -> int:
        done.append(name)
        return len(done)

    token = internal.token("file.csv", 7)
    assert [internal.once(token, work, "file.csv") for _ in range(3)] == [1, 1, 1]
    assert done == ["file.csv"]
    assert ledger.observe.counts[HIT] == 2  # type: ignore[attr-defined]


def test_async_work_too(ledger: oncekey.Ledger) -> None:
    internal = Internal(ledger, "feed")
    done: list[int] = []

    async def work() -> str:
        await asyncio.sleep(0)
        done.append(1)
        return "done"

    async def twice() -> list[str]:
        return [await internal.aonce(internal.token("x"), work) for _ in range(2)]

    assert asyncio.run(twice()) == ["done", "done"]
    assert done == [1]
    assert ledger.observe.counts[HIT] == 1  # type: ignore[attr-defined]


def test_a_service_that_keeps_keys_itself_tells_of_its_replays(ledger: oncekey.Ledger) -> None:
    internal = Internal(ledger, "feed")
    token = internal.token("x")
    assert internal.headers(token) == {"Idempotency-Key": token}
    assert internal.note({"Idempotent-Replayed": "true"})
    assert not internal.note({"Content-Type": "text/plain"})
    assert ledger.observe.counts[HIT] == 1  # type: ignore[attr-defined]
