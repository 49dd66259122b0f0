"""What every store answers to every request."""

from collections import Counter
from collections.abc import Callable

import pytest

from oncekey.core.errors import LedgerClosed
from oncekey.core.model import Kind, Outcome, State
from oncekey.core.ports import (
    Abandon,
    Found,
    Gone,
    Held,
    Insert,
    Peek,
    Purge,
    Release,
    Replace,
    Take,
)
from tests.fixtures.stores import DAY, DONE, Caller, Place

End = Callable[..., Insert]
RESPONSE = Outcome(
    Kind.RESPONSE,
    201,
    ((b"content-type", b"application/json"), (b"link", b"a"), (b"link", b"\xff\x00b")),
    bytes(range(256)),
)


def held(caller: Caller, key: str, **options: int) -> Insert:
    insert = caller.insert(key, **options)
    assert caller.ask(insert) == Held(1)
    return insert


def settled(caller: Caller, key: str, **options: int) -> Insert:
    insert = held(caller, key, **options)
    assert caller.ask(caller.settle(insert)) is True
    return insert


def lapsed(caller: Caller, key: str, **options: int) -> Insert:
    insert = held(caller, key, **options)
    assert caller.ask(Abandon(insert.id, 1)) is True
    return insert


# -- claiming ----------------------------------------------------------------------------------


def test_a_new_key_is_the_callers(caller: Caller) -> None:
    assert caller.ask(caller.insert("k")) == Held(1)


def test_a_key_in_use_comes_back_whole(caller: Caller) -> None:
    first = caller.insert("schlüssel-ключ", fingerprint=bytes(range(16)), request_id="r-1")
    caller.ask(first)

    found = caller.ask(caller.insert("schlüssel-ключ", request_id="r-2"))

    assert isinstance(found, Found)
    assert not found.lapsed
    record = found.record
    assert record.id == first.id
    assert record.ref == first.operation.ref
    assert record.fingerprint == bytes(range(16))
    assert (record.request_id, record.retention, record.fence) == ("r-1", "interactive", 1)
    assert (record.created_at, record.expires_at) == (first.created_at, first.expires_at)
    assert (record.state, record.outcome, record.completed_at) == (State.IN_PROGRESS, None, None)


def test_a_claim_that_did_go_through_is_known_again(caller: Caller) -> None:
    first = held(caller, "k")
    assert caller.ask(first) == Held(1)


def test_a_claim_of_ours_that_is_settled_is_not_ours_again(caller: Caller) -> None:
    first = settled(caller, "k")
    assert caller.ask(first).record.outcome == DONE


def test_a_number_somebody_else_has_drawn_is_refused(caller: Caller) -> None:
    first = held(caller, "k")
    assert caller.ask(caller.insert("other")._replace(id=first.id)) == Gone()
    assert caller.ask(Peek(None, first.id)).record.ref.key == "k"


def test_the_same_key_elsewhere_is_another_key(caller: Caller) -> None:
    held(caller, "k")
    assert caller.ask(caller.insert("k", namespace="t-other:_tenant:client:a")) == Held(1)


def test_of_many_at_once_one_holds_each_key(caller: Caller) -> None:
    inserts = [caller.insert(f"k-{number % 20}") for number in range(200)]

    answers = caller.ask_all(list(inserts))

    won = Counter(
        insert.operation.ref.key
        for insert, answer in zip(inserts, answers, strict=True)
        if answer == Held(1)
    )
    assert won == {f"k-{number}": 1 for number in range(20)}
    holders = {i.digest: i.id for i, a in zip(inserts, answers, strict=True) if a == Held(1)}
    for insert, answer in zip(inserts, answers, strict=True):
        if isinstance(answer, Found):
            assert answer.record.id == holders[insert.digest]


def test_a_group_of_everything_answers_each_its_own(caller: Caller) -> None:
    to_settle, to_release, to_abandon, to_purge = (held(caller, key) for key in "abcd")
    dead, old = lapsed(caller, "e"), settled(caller, "f", kept=1)
    caller.clock.advance(1)

    answers = caller.ask_all(
        [
            caller.insert("new"),
            Peek(to_purge.digest),
            caller.settle(to_settle),
            Release(to_release.id, 1),
            caller.insert("a"),
            caller.settle(to_abandon, fence=7),
            Abandon(to_abandon.id, 1),
            Take(dead.id, dead.digest, 1),
            Replace(old.id, 1, caller.insert("f")),
            Release(to_settle.id, 9),
        ]
    )

    assert answers[0] == Held(1)
    assert answers[1].record.id == to_purge.id
    assert answers[2:4] == [True, True]
    assert answers[4].record.id == to_settle.id
    assert answers[5:] == [False, True, Held(2), Held(1), False]


# -- settling ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "outcome",
    [RESPONSE, Outcome(Kind.RESPONSE, 204), DONE, Outcome(Kind.ERROR, 409, (), b"no")],
    ids=["response", "empty", "value", "error"],
)
def test_an_outcome_is_kept_byte_for_byte(caller: Caller, outcome: Outcome) -> None:
    insert = held(caller, "k")
    caller.clock.advance(5)

    assert caller.ask(caller.settle(insert, outcome=outcome)) is True

    for found in (caller.ask(Peek(insert.digest)), caller.ask(caller.insert("k"))):
        assert found.record.outcome == outcome
        assert found.record.state is outcome.state
        assert found.record.completed_at == insert.created_at + 5
        assert found.record.expires_at == insert.expires_at + 5
        assert not found.lapsed


def test_many_outcomes_at_once_do_not_mix(caller: Caller) -> None:
    inserts = [held(caller, f"k-{number}") for number in range(40)]
    outcomes = [
        Outcome(Kind.RESPONSE, 200, ((b"n", b"%d" % n),) * (n % 3), bytes([n]) * (n * 7 % 50))
        for n in range(40)
    ]
    settles = [caller.settle(i, outcome=o) for i, o in zip(inserts, outcomes, strict=True)]

    assert caller.ask_all(list(settles)) == [True] * 40

    found = caller.ask_all([Peek(insert.digest) for insert in inserts])
    assert [each.record.outcome for each in found] == outcomes


def test_a_large_body_is_kept(caller: Caller) -> None:
    insert = held(caller, "k")
    outcome = RESPONSE._replace(body=bytes(range(256)) * 4096)
    assert caller.ask(caller.settle(insert, outcome=outcome)) is True
    assert caller.ask(Peek(insert.digest)).record.outcome == outcome


def test_an_outcome_needs_the_fence_that_holds(caller: Caller) -> None:
    insert = held(caller, "k")
    assert caller.ask(caller.settle(insert, fence=2)) is False
    assert caller.ask(Peek(insert.digest)).record.outcome is None


def test_an_outcome_needs_a_claim(caller: Caller) -> None:
    assert caller.ask(caller.settle(caller.insert("k"))) is False


def test_an_outcome_that_did_go_through_is_known_again_and_stays(caller: Caller) -> None:
    insert = settled(caller, "k")
    assert caller.ask(caller.settle(insert, outcome=RESPONSE)) is True
    assert caller.ask(Peek(insert.digest)).record.outcome == DONE


# -- letting go --------------------------------------------------------------------------------


def test_a_released_key_is_new(caller: Caller) -> None:
    insert = held(caller, "k")
    assert caller.ask(Release(insert.id, 1)) is True
    assert caller.ask(Peek(insert.digest)) is None
    held(caller, "k")


@pytest.mark.parametrize("letting_go", [Release, Abandon])
def test_letting_go_needs_the_fence_and_no_outcome(
    caller: Caller, letting_go: type[Release] | type[Abandon]
) -> None:
    insert = held(caller, "k")
    assert caller.ask(letting_go(insert.id, 2)) is False
    caller.ask(caller.settle(insert))
    assert caller.ask(letting_go(insert.id, 1)) is False
    assert caller.ask(Peek(insert.digest)).record.outcome == DONE


def test_a_purged_key_is_new_and_its_outcome_is_gone(caller: Caller) -> None:
    insert = settled(caller, "k")
    assert caller.ask(Purge(insert.digest)) is True
    assert caller.ask(Purge(insert.digest)) is False
    again = held(caller, "k")
    assert caller.ask(Peek(again.digest)).record.outcome is None
    assert caller.ask(caller.settle(insert)) is False


# -- takeover ----------------------------------------------------------------------------------


def test_an_abandoned_claim_is_taken_over_with_the_next_fence(caller: Caller) -> None:
    insert = lapsed(caller, "k")
    assert caller.ask(Peek(insert.digest)).lapsed

    assert caller.ask(Take(insert.id, insert.digest, 1)) == Held(2)

    found = caller.ask(Peek(insert.digest))
    assert (found.record.fence, found.record.id, found.lapsed) == (2, insert.id, False)


def test_a_late_writer_changes_nothing(caller: Caller) -> None:
    insert = lapsed(caller, "k")
    caller.ask(Take(insert.id, insert.digest, 1))

    assert caller.ask(caller.settle(insert, outcome=RESPONSE)) is False
    assert caller.ask(Release(insert.id, 1)) is False
    assert caller.ask(Abandon(insert.id, 1)) is False

    assert caller.ask(caller.settle(insert, fence=2)) is True
    assert caller.ask(caller.settle(insert, outcome=RESPONSE)) is False
    assert caller.ask(Peek(insert.digest)).record.outcome == DONE


def test_of_many_takers_one_gets_it(caller: Caller) -> None:
    insert = lapsed(caller, "k")
    answers = caller.ask_all([Take(insert.id, insert.digest, 1) for _ in range(20)])
    others = [answer for answer in answers if answer != Held(2)]
    assert len(others) == 19
    assert all(isinstance(answer, Found) and not answer.lapsed for answer in others)


def test_a_claim_whose_holder_lives_is_not_taken(caller: Caller) -> None:
    insert = held(caller, "k")
    answer = caller.ask(Take(insert.id, insert.digest, 1))
    assert (answer.record.fence, answer.lapsed) == (1, False)
    assert caller.ask(caller.settle(insert)) is True


def test_a_settled_claim_is_not_taken(caller: Caller) -> None:
    insert = settled(caller, "k")
    assert caller.ask(Take(insert.id, insert.digest, 1)).record.outcome == DONE


def test_a_claim_that_is_gone_is_not_taken(caller: Caller) -> None:
    insert = lapsed(caller, "k")
    caller.ask(Purge(insert.digest))
    assert caller.ask(Take(insert.id, insert.digest, 1)) == Gone()
    successor = held(caller, "k")
    assert caller.ask(Take(insert.id, insert.digest, 1)).record.id == successor.id


# -- expiry ------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", [settled, lapsed])
def test_an_expired_record_makes_place_to_the_millisecond(caller: Caller, end: End) -> None:
    old = end(caller, "k", kept=1000)

    caller.clock.advance(999)
    kept = caller.ask(Replace(old.id, 1, caller.insert("k")))
    caller.clock.advance(1)
    new = caller.insert("k")
    replaced = caller.ask(Replace(old.id, 1, new))

    assert kept.record.id == old.id
    assert replaced == Held(1)
    found = caller.ask(Peek(new.digest))
    assert (found.record.id, found.record.outcome) == (new.id, None)
    assert caller.ask(Peek(None, old.id)) is None


def test_only_the_record_that_was_seen_is_replaced(caller: Caller) -> None:
    old = lapsed(caller, "k", kept=1)
    caller.ask(Take(old.id, old.digest, 1))
    caller.clock.advance(1)
    assert caller.ask(Replace(old.id, 1, caller.insert("k"))).record.fence == 2


def test_a_claim_whose_holder_lives_is_not_replaced(caller: Caller) -> None:
    old = held(caller, "k", kept=1)
    caller.clock.advance(1)
    assert caller.ask(Replace(old.id, 1, caller.insert("k"))).record.id == old.id
    assert caller.ask(caller.settle(old)) is True


def test_a_settle_meanwhile_keeps_an_expired_claim(caller: Caller) -> None:
    old = lapsed(caller, "k", kept=1)
    caller.clock.advance(1)
    assert caller.ask(caller.settle(old)._replace(expires_at=caller.clock.now() + DAY)) is True
    assert caller.ask(Replace(old.id, 1, caller.insert("k"))).record.outcome == DONE


# -- reading and closing -----------------------------------------------------------------------


def test_a_record_is_found_by_key_and_by_number(caller: Caller) -> None:
    insert = held(caller, "k")
    assert caller.ask(Peek(insert.digest)) == caller.ask(Peek(None, insert.id))
    assert caller.ask(Peek(caller.insert("other").digest)) is None
    assert caller.ask(Peek(None, insert.id + 1)) is None


def test_a_closed_store_says_so(place: Place) -> None:
    caller = place.open()
    caller.store.close()
    with pytest.raises(LedgerClosed):
        caller.ask(caller.insert("k"))
