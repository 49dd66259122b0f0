"""Columns in front of a value, and literals of SQL that can only be what they are."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oncekey.stores.restate.columns import _plain, begins, is_same, joined, last
from oncekey.stores.restate.link import text

LITERAL = re.compile(r"'[A-Za-z0-9_.:~%-]*'|CAST\(decode\('[0-9a-f]*', 'hex'\) AS VARCHAR\)")
NASTY = ["'", "''", "\\", "';--", "%", "_", "\x1f", "\x00", "é", "’", 'a"b', "\ud800", "\n"]


@given(st.text())
def test_a_literal_never_ends_early(value: str) -> None:
    assert LITERAL.fullmatch(text(value))


@pytest.mark.parametrize("value", NASTY)
def test_nor_does_one_that_was_made_to(value: str) -> None:
    assert LITERAL.fullmatch(text(value))


@given(st.lists(st.text(), min_size=1), st.text())
def test_what_stands_behind_the_columns_is_found_whatever_they_hold(
    columns: list[str], value: str
) -> None:
    kept = _plain(value)
    data = joined(*columns) + kept
    assert last(data) == kept
    assert data.count(b"\x1f") == len(columns)


@given(st.text(max_size=4), st.text(max_size=4))
def test_a_text_begins_with_another_as_both_are_written(one: str, other: str) -> None:
    assert _plain(one).startswith(_plain(other)) == one.startswith(other)


def test_conditions_name_their_column() -> None:
    assert is_same(2, "acme") == "split_part(value_utf8, chr(31), 2) = 'acme'"
    assert begins(4, "k%") == "starts_with(split_part(value_utf8, chr(31), 4), 'k%')"
