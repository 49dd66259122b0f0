"""Reading requests of the API: what cannot be used is refused, and the refusal names it."""

from difflib import get_close_matches
from typing import Any

import msgspec
import pytest

from oncekey.api import requests
from oncekey.api.promises import Complete, CompleteByToken, CreatePromise, Reject, Resolve
from oncekey.api.requests import (
    LIMIT,
    MAX_BODY,
    WAIT,
    RequestIncomplete,
    before_in,
    body_of,
    bool_in,
    key_in,
    limit_in,
    query_of,
    read_body,
    seconds_in,
    wait_in,
    word_in,
)
from oncekey.api.workflows import Control, Fork, Start
from oncekey.core.audit import entry_number
from oncekey.core.errors import InvalidInput, KeyInvalid, PayloadTooLarge
from oncekey.core.execution import Status

# -- bodies ------------------------------------------------------------------------------------


def sender(*messages: dict[str, Any]) -> Any:
    left = iter(messages)

    async def receive() -> dict[str, Any]:
        return next(left)

    return receive


@pytest.mark.anyio
async def test_a_body_is_read_whole() -> None:
    pieces = [
        {"type": "http.request", "body": b'{"a"', "more_body": True},
        {"type": "http.request", "more_body": True},
        {"type": "http.request", "body": b":1}"},
    ]
    assert await read_body(sender(*pieces)) == b'{"a":1}'


@pytest.mark.anyio
async def test_half_a_body_is_none() -> None:
    pieces = [
        {"type": "http.request", "body": b"{", "more_body": True},
        {"type": "http.disconnect"},
    ]
    with pytest.raises(RequestIncomplete):
        await read_body(sender(*pieces))


@pytest.mark.anyio
async def test_a_body_is_bounded_while_it_comes() -> None:
    piece = {"type": "http.request", "body": bytes(MAX_BODY), "more_body": True}
    with pytest.raises(PayloadTooLarge, match="larger than"):
        await read_body(sender(piece, piece))


@pytest.mark.parametrize("content", [b"", b"  \n", b"{}", b" {} "])
def test_no_body_is_an_empty_object(content: bytes) -> None:
    assert body_of(content, Start) == Start()


@pytest.mark.parametrize(
    "content, told",
    [
        (b"{", "not JSON"),
        (b"\xff", "not JSON"),
        (b'{"input": "\xff"}', "not JSON"),
        (b'{"input": 1e999}', "not JSON"),
        (b'{"input": NaN}', "not JSON"),
        (b'{"input": "\\ud800"}', "not JSON"),
        (b'{"input": 1} 2', "not JSON"),
        (b"[" * 100_000, "too deeply"),
        (b"[]", "must be a JSON object"),
        (b"null", "must be a JSON object"),
        (b'"text"', "must be a JSON object"),
        (b'{"inputs": 1}', "unknown member 'inputs'; did you mean 'input'"),
        (b'{"zzz": 1}', "unknown member 'zzz'; there are: input, key, on_failed"),
        (b'{"on_failed": "maybe"}', "does not fit"),
        (b'{"key": 5}', "does not fit"),
    ],
)
def test_a_body_that_cannot_be_used_is_refused(content: bytes, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        body_of(content, Start)


def test_a_value_is_kept_as_it_came() -> None:
    body = body_of(b'{"input": {"b": 1.50,  "a": 123456789012345678901234567890}}', Start)
    assert isinstance(body.input, msgspec.Raw)
    assert bytes(body.input) == b'{"b": 1.50,  "a": 123456789012345678901234567890}'


def test_null_is_a_value_and_nothing_is_not() -> None:
    assert bytes(body_of(b'{"result": null}', Complete).result) == b"null"  # type: ignore[arg-type]
    assert body_of(b"{}", Complete).result is msgspec.UNSET
    assert bytes(body_of(b'{"error": null}', Complete).error) == b"null"  # type: ignore[arg-type]
    assert body_of(b"{}", Complete).error is msgspec.UNSET


@pytest.mark.parametrize(
    "kind, content",
    [
        (CreatePromise, b"{}"),
        (CompleteByToken, b'{"result": 1}'),
        (Fork, b'{"from_step": 0}'),
        (Fork, b'{"from_step": 1.5}'),
        (Control, b'{"from_step": 1}'),
        (Resolve, b'{"park": "yes"}'),
        (Resolve, b'{"error": 1}'),
        (Reject, b'{"value": 1}'),
    ],
)
def test_each_body_has_its_own_members(kind: type[msgspec.Struct], content: bytes) -> None:
    with pytest.raises(InvalidInput):
        body_of(content, kind)


# -- the query ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "query, told",
    [
        (b"wat=1s", "did you mean 'wait'"),
        (b"before=x", "there are: wait, limit"),
        (b"wait=1s&wait=2s", "twice"),
        (b"wait=%ff", "cannot be read"),
        (b"wait=\xff", "cannot be read"),
        (b"&".join([b"wait=1"] * 100), "cannot be read"),
    ],
)
def test_a_query_that_cannot_be_used_is_refused(query: bytes, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        query_of(query, (WAIT, LIMIT))


@pytest.mark.parametrize(
    "text, seconds",
    [
        ("30s", 30),
        ("30", 30),
        ("0.5", 0.5),
        ("0", 0),
        ("0s", 0),
        ("500ms", 0.5),
        ("1m", 60),
        ("2m", 60),
        ("9" * 5000 + "s", 60),
        ("9" * 5000, 60),
    ],
)
def test_a_wait_is_bounded(text: str, seconds: float) -> None:
    assert wait_in({"wait": text}, 60.0) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-1s", "1e3", ".", "٣", "nan", "inf", "1s2"])
def test_a_wait_that_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="duration"):
        wait_in({"wait": text}, 60.0)


def test_without_a_wait_nobody_waits() -> None:
    assert wait_in({}, 60.0) == 0


@pytest.mark.parametrize("text, limit", [("1", 1), ("200", 200), ("201", 200), ("999999999", 200)])
def test_a_page_is_bounded(text: str, limit: int) -> None:
    assert limit_in({"limit": text}) == limit


@pytest.mark.parametrize("text", ["", "0", "-1", "1.0", "x", "9" * 5000, "²"])
def test_a_limit_that_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="limit"):
        limit_in({"limit": text})


def test_words_are_those_of_the_answers() -> None:
    assert word_in({"status": "failed"}, "status", Status) is Status.FAILED
    assert word_in({}, "status", Status) is None
    with pytest.raises(InvalidInput, match="did you mean 'failed'"):
        word_in({"status": "faild"}, "status", Status)
    with pytest.raises(InvalidInput, match="there are: ready, running"):
        word_in({"status": "0"}, "status", Status)


def test_yes_and_no() -> None:
    assert [bool_in({"park": text}, "park") for text in ("true", "false")] == [True, False]
    assert bool_in({}, "park") is None
    with pytest.raises(InvalidInput, match="park"):
        bool_in({"park": "1"}, "park")


# -- times and keys ----------------------------------------------------------------------------


@pytest.mark.parametrize("given, seconds", [("24h", 86400), (1.5, 1.5), (3, 3), (None, None)])
def test_lengths_of_time(given: Any, seconds: float | None) -> None:
    assert seconds_in("timeout", given) == seconds


@pytest.mark.parametrize("given", [0, -1, 1e30, "x", "99999d", float("inf"), float("nan")])
def test_a_length_of_time_is_bounded(given: Any) -> None:
    with pytest.raises(InvalidInput):
        seconds_in("timeout", given)


def test_a_key_has_the_grammar_of_the_ledger() -> None:
    assert key_in([]) is None
    assert key_in([b'"k-1"']) == key_in([b" k-1 "]) == "k-1"
    for lines in ([b"a", b"a"], [b""], [b"a b"], [b"t-x"], [b"\xff"], [b"x" * 256]):
        with pytest.raises(KeyInvalid):
            key_in(lines)


def test_a_page_begins_where_before_says() -> None:
    assert before_in({}, entry_number, "no entry") is None
    assert before_in({"before": "au_000000000000000a"}, entry_number, "no entry") == 10
    # Zero is a place as good as any other.
    assert before_in({"before": "au_0000000000000000"}, entry_number, "no entry") == 0
    with pytest.raises(InvalidInput, match="before is no entry; send the next_before of the page"):
        before_in({"before": "ak_000000000000000a"}, entry_number, "no entry")


def test_a_name_is_compared_in_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A caller may have made up one of a megabyte."""
    compared: list[int] = []

    def counted(word: str, *more: Any) -> list[str]:
        compared.append(len(word))
        return get_close_matches(word, *more)

    monkeypatch.setattr(requests, "get_close_matches", counted)
    with pytest.raises(InvalidInput, match="unknown member 'xx"):
        body_of(b'{"%s": 1}' % (b"x" * 1_000_000), CreatePromise)
    assert compared == [100]
