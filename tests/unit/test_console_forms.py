"""What is read of a form and of a cookie, and how numbers are drawn and said."""

from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from starlette.datastructures import Headers

from oncekey.console.fields import Unreadable, value_in
from oncekey.console.guard import Refusals, comes_from_here, cookie_of, is_secure, token_in
from oncekey.console.plots import HEIGHT, WIDTH, bar_of, line_of
from oncekey.console.wording import number_of, span_of


@pytest.mark.parametrize(
    "kind, text, value",
    [
        ("JSON", '{"a": [1, null]}', {"a": [1, None]}),
        ("JSON", "  17 ", 17),
        ("text", '{"a"', '{"a"'),
        ("text", "", ""),
        ("number", " 1.5 ", 1.5),
        ("number", "12", 12),
        ("true", "ignored", True),
        ("false", "", False),
        ("null", "", None),
    ],
)
def test_a_value_is_what_its_kind_says(kind: str, text: str, value: Any) -> None:
    given = value_in({"kind": kind, "value": text})
    assert msgspec.json.decode(msgspec.json.encode(given)) == value


@pytest.mark.parametrize("text", ["12345678901234567890.1230", "1.10", "-0", "1E+3"])
def test_a_number_is_passed_on_as_it_is_written(text: str) -> None:
    for kind in ("JSON", "number"):
        assert msgspec.json.encode(value_in({"kind": kind, "value": text})) == text.encode()


@pytest.mark.parametrize(
    "kind, text",
    [
        ("JSON", ""),
        ("JSON", "{"),
        ("JSON", "NaN"),
        ("JSON", "[" * 100_000),
        ("number", "twelve"),
        ("number", "true"),
        ("number", ""),
        ("number", "[" * 100_000),
        ("pickle", "x"),
    ],
)
def test_what_cannot_be_read_is_refused(kind: str, text: str) -> None:
    with pytest.raises(Unreadable):
        value_in({"kind": kind, "value": text})


def headers(*lines: tuple[str, str]) -> Headers:
    return Headers(raw=[(name.encode(), value.encode()) for name, value in lines])


def test_a_session_is_read_from_its_cookie_alone() -> None:
    assert token_in(headers(("cookie", "a=b; oncekey_console=abc-_1; c=d"))) == "abc-_1"
    assert token_in(headers(("cookie", "a=b"))) is None
    assert token_in(headers()) is None


@pytest.mark.parametrize(
    "other",
    ['prefs={"a": 1}', "a=b c d", 'a="open', "nämlich=1", "flag", "[x]=1", "a=1,2", "=", ""],
)
def test_cookies_of_the_app_beside_it_are_passed_over(other: str) -> None:
    for line in (f"{other}; oncekey_console=abc", f"oncekey_console=abc; {other}"):
        assert token_in(headers(("cookie", line))) == "abc"
    assert token_in(headers(("cookie", f"{other}; not_oncekey_console=abc"))) is None


def test_of_two_sessions_neither_counts() -> None:
    twice = "oncekey_console=mine; oncekey_console=theirs"
    assert token_in(headers(("cookie", twice))) is None
    lines = (("cookie", "oncekey_console=mine"), ("cookie", "oncekey_console=theirs"))
    assert token_in(headers(*lines)) is None


@given(st.text(max_size=200))
def test_no_cookie_breaks_it(text: str) -> None:
    line = text.encode("utf-8", "surrogatepass")
    found = token_in(Headers(raw=[(b"cookie", b"oncekey_console=" + line)]))
    assert found is None or isinstance(found, str)


def test_cookies_are_for_tls_where_the_browser_speaks_it() -> None:
    assert is_secure("https", headers())
    assert is_secure("http", headers(("origin", "https://ops.example.com")))
    assert not is_secure("http", headers(("origin", "http://127.0.0.1:8700")))
    assert "; Secure" in cookie_of("t", secure=True)
    assert "Secure" not in cookie_of("t", secure=False)


@pytest.mark.parametrize(
    "lines, ours",
    [
        ([("sec-fetch-site", "same-origin")], True),
        ([("sec-fetch-site", "same-origin"), ("origin", "https://elsewhere")], True),
        ([("sec-fetch-site", "cross-site")], False),
        ([("sec-fetch-site", "none")], False),
        ([("origin", "http://here:8700"), ("host", "here:8700")], True),
        ([("origin", "http://here:8701"), ("host", "here:8700")], False),
        ([("origin", "null"), ("host", "here")], False),
        ([("host", "here")], True),
        ([("origin", "http://["), ("host", "here")], False),
        ([("origin", "null"), ("host", "")], False),
        ([("sec-fetch-site", "same-origin"), ("sec-fetch-mode", "navigate")], True),
        ([("sec-fetch-site", "same-origin"), ("sec-fetch-mode", "cors")], False),
        ([("host", "here"), ("sec-fetch-mode", "same-origin")], False),
    ],
)
def test_a_form_says_where_it_comes_from(lines: list[tuple[str, str]], ours: bool) -> None:
    assert comes_from_here(headers(*lines)) is ours


def test_refusals_are_told_so_often_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    now = [0]
    refusals = Refusals(lambda: now[0])
    for _ in range(Refusals.MOST + 5):
        refusals.note("10.0.0.1")
    assert len(caplog.records) == Refusals.MOST
    now[0] = 60_000
    refusals.note(None)
    *_, counted, last = [each.getMessage() for each in caplog.records]
    assert counted == "sign-ins to the console were refused, 5 more"
    assert last == "a sign-in to the console was refused, from an unknown address"


@example([2.2250738585072014e-308])
@given(st.lists(st.floats(0, 1e12)))
def test_a_line_stays_in_its_picture(values: list[float]) -> None:
    line = line_of(values)
    for point in line.points.split():
        x, y = map(float, point.split(","))
        assert 0 <= x <= WIDTH + 0.1
        assert 0 <= y <= HEIGHT


@given(*[st.floats(0, 1e12)] * 4)
def test_a_bar_is_seen_and_stays_in_its_picture(a: float, b: float, c: float, d: float) -> None:
    first, start, end, last = sorted((a, b, c, d))
    x, width = bar_of(start, end, first, last)
    assert x >= 0
    assert width >= 4
    assert x + width <= 1000.2


@pytest.mark.parametrize(
    "value, said",
    [(0, "0"), (0.5, "0.5"), (14.45, "14.4"), (100.0, "100"), (45_123.4, "45123"), (10.0, "10")],
)
def test_numbers_are_said_shortly(value: float, said: str) -> None:
    assert number_of(value) == said


@pytest.mark.parametrize(
    "milliseconds, said",
    [(None, "–"), (3, "3 ms"), (1500, "1.5 s"), (180_000, "3.0 min"), (90_000_000, "25.0 h")],
)
def test_spans_are_said_as_people_say_them(milliseconds: float | None, said: str) -> None:
    assert span_of(milliseconds) == said
