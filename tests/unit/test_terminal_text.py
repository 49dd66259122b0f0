"""Text from outside, made fit for a terminal."""

from hypothesis import given
from hypothesis import strategies as st

from oncekey.cli.text import escaped, preview_of


@given(st.text())
def test_nothing_unprintable_is_left(text: str) -> None:
    assert escaped(text).isprintable()


@given(st.text().filter(str.isprintable))
def test_what_is_printable_stays(text: str) -> None:
    assert escaped(text) == text


@given(st.binary(max_size=6000))
def test_a_preview_is_bounded_and_harmless(body: bytes) -> None:
    lines = preview_of(body)
    assert all(line.isprintable() for line in lines)
    assert sum(map(len, lines)) <= 4 * 2000 + 100


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=400))
def test_a_short_text_is_shown_whole(text: str) -> None:
    assert preview_of(text.encode()) == [escaped(text)]


def test_bytes_are_shown_as_numbers() -> None:
    assert preview_of(b"\xff\x00") == ["ff 00"]


def test_a_text_with_one_wrong_byte_is_bytes() -> None:
    assert preview_of(b"abc\xff")[0] == "61 62 63 ff"
