"""Keys of outgoing calls: the same at every attempt, another for every call."""

import threading
import uuid

from hypothesis import given
from hypothesis import strategies as st

from oncekey.core.outgoing import Outgoing

SITE = "POST https://api.example.com/charges"


def keys(calls: Outgoing, *made: tuple[str, bytes]) -> list[str]:
    return [calls.key(calls.place(site, digest)) for site, digest in made]


def test_every_attempt_has_the_same_keys() -> None:
    made = [(SITE, b"a"), (SITE, b"b"), ("POST https://x/y", b"a"), (SITE, b"a")]
    first, second = keys(Outgoing(b"seed"), *made), keys(Outgoing(b"seed"), *made)
    assert first == second
    assert len(set(first)) == 4
    assert not set(first) & set(keys(Outgoing(b"other"), *made))


def test_a_call_without_an_answer_that_is_made_again_is_the_same_call() -> None:
    """So an attempt that had to repeat one counts like an attempt that had not."""
    calls = Outgoing(b"seed")
    first = calls.place(SITE, b"a")
    calls.lost(first)
    assert calls.place(SITE, b"a") == first
    assert calls.place(SITE, b"a").number == 2
    calls.lost(first)
    assert calls.place(SITE, b"other body").number == 3
    assert calls.place(SITE, b"a") == first


def test_two_at_the_same_time_are_two_calls() -> None:
    calls = Outgoing(b"seed")
    assert [calls.place(SITE, b"a").number for _ in range(3)] == [1, 2, 3]


def test_several_lost_calls_come_back_in_their_order() -> None:
    calls = Outgoing(b"seed")
    first, second = calls.place(SITE, b"a"), calls.place(SITE, b"a")
    calls.lost(second)
    calls.lost(first)
    assert [calls.place(SITE, b"a"), calls.place(SITE, b"a")] == [first, second]


def test_a_library_that_draws_keys_tells_its_retries_apart() -> None:
    calls = Outgoing(b"seed")
    first = calls.place(SITE, b"a", "drawn-1")
    calls.lost(first)
    assert calls.place(SITE, b"a", "drawn-1") == first
    # Its retry was answered, so the next one is another call.
    assert calls.place(SITE, b"a", "drawn-2").number == 2


def test_threads_of_one_operation_count_together() -> None:
    calls = Outgoing(b"seed")
    found: list[int] = []
    gate = threading.Barrier(4)

    def call() -> None:
        gate.wait()
        found.extend(calls.place(SITE, b"a").number for _ in range(50))

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == list(range(1, 201))


@given(st.binary(max_size=64), st.text(max_size=64), st.integers(1, 1000))
def test_keys_have_the_shape_of_random_ones(seed: bytes, site: str, number: int) -> None:
    calls = Outgoing(seed)
    place = calls.place(site, b"")._replace(number=number)
    key = calls.key(place)
    assert uuid.UUID(key).version == 4
    assert calls.key(place, b"secret") != key


@given(
    st.tuples(st.binary(max_size=8), st.text(max_size=8), st.integers(1, 20)),
    st.tuples(st.binary(max_size=8), st.text(max_size=8), st.integers(1, 20)),
)
def test_no_two_calls_share_a_key(one: tuple[bytes, str, int], two: tuple[bytes, str, int]) -> None:
    def key(seed: bytes, site: str, number: int) -> str:
        calls = Outgoing(seed)
        return calls.key(calls.place(site, b"")._replace(number=number))

    assert (key(*one) == key(*two)) == (one == two)
