"""What a request does to the record of one key, beside what it does in the oracle."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oncekey.core.model import Kind, Operation, Outcome, Record, Ref
from oncekey.core.ports import (
    Abandon,
    Found,
    Gone,
    Held,
    Insert,
    Peek,
    Release,
    Replace,
    Settle,
    Take,
)
from oncekey.core.scope import Scope
from oncekey.stores.memory.store import MemoryStore
from oncekey.stores.restate.record import is_apart, is_large, unwritten, without_body, written
from oncekey.stores.restate.request import change_of
from tests.fixtures.frozen import FrozenClock
from tests.fixtures.stores import Caller

OURS, THEIRS, NOBODY = 1, 2, 0
REF = Ref(Scope("t-acme:web:user:1", "POST /orders"), "k")
DONE = Outcome(Kind.VALUE, body=b"1")


def insert_of(number: int, *, now: int = 0, kept: int = 5) -> Insert:
    return Insert(number, REF.digest, Operation(REF), now, now + kept)


NUMBERS, FENCES, TIMES = st.integers(1, 3), st.integers(1, 3), st.integers(0, 9)
INSERTS = st.builds(insert_of, NUMBERS, now=TIMES, kept=TIMES)
REQUESTS = st.one_of(
    INSERTS,
    st.builds(Replace, NUMBERS, FENCES, INSERTS),
    st.builds(Take, NUMBERS, st.just(REF.digest), FENCES),
    st.builds(Settle, NUMBERS, FENCES, st.just(DONE), TIMES, TIMES),
    st.builds(Release, NUMBERS, FENCES),
    st.builds(Abandon, NUMBERS, FENCES),
)


def found(record: Record) -> Found:
    return Found(record, record.outcome is None and record.owner == NOBODY)


@settings(max_examples=300)
@given(st.lists(REQUESTS, max_size=12))
def test_it_does_what_the_oracle_does(requests: list[Any]) -> None:
    oracle = Caller(MemoryStore(), FrozenClock(), ())
    record = None
    for request in requests:
        change = change_of(record, request, OURS)
        record, answer = change
        told = found(answer) if isinstance(answer, Record) else answer
        assert told == oracle.ask(request), request
        assert oracle.ask(Peek(REF.digest)) == (None if record is None else found(record))


def claimed(owner: int = THEIRS) -> Record:
    record = change_of(None, insert_of(7), owner).record
    assert record is not None
    return record


def test_what_another_holds_is_neither_taken_nor_replaced() -> None:
    record, new = claimed(), insert_of(8, now=5)
    for request in (Take(7, REF.digest, 1), Replace(7, 1, new), new):
        assert change_of(record, request, OURS) == (record, record)


def test_what_was_held_by_one_who_is_gone_is_taken_and_replaced() -> None:
    record, new = claimed(), insert_of(8, now=5)
    taken = change_of(record, Take(7, REF.digest, 1), OURS, gone=THEIRS)
    assert taken == (record._replace(owner=OURS, fence=2), Held(2))
    assert change_of(record, Replace(7, 1, new), OURS, gone=THEIRS).answer == Held(1)
    early = Replace(7, 1, insert_of(8, now=4))
    assert change_of(record, early, OURS, gone=THEIRS) == (record, record)


def test_who_is_gone_says_nothing_of_who_holds_it_now() -> None:
    record = claimed(owner=3)
    for request in (Take(7, REF.digest, 1), Replace(7, 1, insert_of(8, now=5))):
        assert change_of(record, request, OURS, gone=THEIRS) == (record, record)


def test_a_take_counts_once() -> None:
    record, answer = change_of(claimed(NOBODY), Take(7, REF.digest, 1), OURS)
    assert answer == Held(2)
    assert change_of(record, Take(7, REF.digest, 1), OURS) == (record, record)
    assert change_of(None, Take(7, REF.digest, 1), OURS) == (None, Gone())


@pytest.mark.parametrize("size", [0, 4096, 4097, 100_000])
def test_a_record_is_read_as_it_was_written(size: int) -> None:
    body = b"x" * size
    record = claimed()._replace(
        completed_at=3, outcome=Outcome(Kind.RESPONSE, 201, ((b"a", b"\xff"),), body)
    )
    data = written(record)
    assert is_apart(data) == is_large(record) == (size > 4096)
    assert len(data) < 10_000
    read = unwritten(data)
    assert read == (without_body(record) if is_apart(data) else record)


def test_records_sort_by_their_numbers_whatever_they_hold() -> None:
    records = [claimed()._replace(id=number) for number in (0, 9, 10, 255, 256, (1 << 63) - 1)]
    assert sorted(records, key=written) == records
