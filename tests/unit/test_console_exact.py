"""JSON of others, as pages show it: laid out anew, and otherwise as it was written."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oncekey.console.exact import read, written
from oncekey.console.rendering import laid_out, pretty

_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
NUMBERS = ["1e400", "-1E-400", "1.10", "-0", "0", "7", "9" * 5000, "12345678901234567890.123"]


@given(_VALUES)
def test_values_are_laid_out_as_json_is(value: Any) -> None:
    text = json.dumps(value).replace("Infinity", "1e999")
    wanted = json.dumps(value, indent=2, ensure_ascii=False).replace("Infinity", "1e999")
    assert written(read(text)) == wanted
    one_line = json.dumps(value, ensure_ascii=False).replace("Infinity", "1e999")
    assert written(read(text), None) == one_line


@pytest.mark.parametrize("number", NUMBERS)
def test_numbers_keep_their_digits(number: str) -> None:
    assert laid_out(read(f"[{number}]")) == pretty(f"[{number}]") == f"[\n  {number}\n]"
    assert float(read(number)) == float(number)


def test_of_members_of_one_name_all_are_shown() -> None:
    text = '{"a": 1, "b": {"c": [], "c": {}}, "a": 2}'
    assert written(read(text), None) == text
    assert laid_out(read(text)) == pretty(text)
    assert read(text)["a"] == 2


@pytest.mark.parametrize("text", ["", "a text", '{"half":', "NaN", '"\\ud800"', "\ud800", "[1] 2"])
def test_what_is_not_quite_json_is_shown_as_it_is(text: str) -> None:
    assert pretty(text) == text


def test_what_is_nested_deeply_is_shown_as_it_is() -> None:
    text = "[" * 5000 + "]" * 5000
    assert pretty(text) == text
    with pytest.raises(RecursionError):
        read("[" * 100_000)
