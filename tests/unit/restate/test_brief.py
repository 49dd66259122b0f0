"""Whether a call finds an object without state is read from what Restate sends, before and after
an attempt was cut off."""

import pytest

from oncekey.stores.restate.brief import _is_answered, _is_bare, _is_retried

START, INPUT, OUTPUT, SET_STATE, GET_STATE = 0x0000, 0x0400, 0x0401, 0x0403, 0x0407
SIGNAL = 0xFBFF


def message(kind: int, body: bytes = b"") -> bytes:
    return kind.to_bytes(2) + bytes(2) + len(body).to_bytes(4) + body


def field(number: int, value: bytes | int) -> bytes:
    if isinstance(value, int):
        return bytes([number << 3, value])
    return bytes([number << 3 | 2, len(value)]) + value


# Of every call: its id, how it is shown, how many entries there are; behind the state its key, how
# often and for how long it was tried, and a seed.
FIRST = field(1, b"x" * 24) + field(2, b"inv_1") + field(3, 1)
LAST = field(6, b"space.key") + field(7, 0) + field(8, 100) + b"\x49" + bytes(8)
STATE = field(4, field(1, b"record") + field(2, b"value"))
PARTIAL = field(5, 1)


@pytest.mark.parametrize(
    "state, bare", [(b"", True), (STATE, False), (STATE * 2, False), (PARTIAL, False)]
)
def test_a_first_attempt_finds_what_is_sent_along(state: bytes, bare: bool) -> None:
    assert _is_bare(message(START, FIRST + state + LAST) + message(INPUT, b"asked")) is bare


@pytest.mark.parametrize("state", [b"", STATE])
@pytest.mark.parametrize("entry, bare", [(SET_STATE, True), (OUTPUT, True), (GET_STATE, False)])
def test_a_later_attempt_goes_on_as_the_first_began(state: bytes, entry: int, bare: bool) -> None:
    """What the first wrote is among the state by then."""
    sent = message(START, FIRST + state + LAST) + message(INPUT, b"asked") + message(entry, b"...")
    assert _is_bare(sent) is bare


@pytest.mark.parametrize("state, bare", [(b"", True), (STATE, False)])
def test_what_an_operator_says_to_a_call_is_nothing_that_it_did(state: bytes, bare: bool) -> None:
    sent = message(START, FIRST + state + LAST) + message(INPUT, b"asked") + message(SIGNAL, b"...")
    assert _is_bare(sent) is bare
    assert not _is_bare(sent + message(GET_STATE, b"..."))
    assert _is_bare(sent + message(SET_STATE, b"..."))


@pytest.mark.parametrize("told, retried", [(b"", False), (field(7, 0), False), (field(7, 3), True)])
def test_restate_tells_how_often_it_has_called(told: bytes, retried: bool) -> None:
    assert _is_retried(message(START, FIRST + STATE + told) + message(INPUT, b"asked")) is retried


@pytest.mark.parametrize(
    "entry, answered", [(GET_STATE, False), (SET_STATE, False), (OUTPUT, True)]
)
def test_what_has_answered_has_nothing_left_to_do(entry: int, answered: bool) -> None:
    sent = message(START, FIRST + STATE + LAST) + message(INPUT, b"asked") + message(entry, b"...")
    assert _is_answered(sent) is answered


@pytest.mark.parametrize("sent", [b"", b"short", message(INPUT), message(0x0003, FIRST)])
def test_what_begins_in_another_way_is_left_to_the_sdk(sent: bytes) -> None:
    assert not _is_bare(sent)
