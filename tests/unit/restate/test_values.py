"""Whatever is asked, answered or kept on Restate comes back from JSON as it was."""

import enum
import types
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oncekey.stores.restate import values
from oncekey.stores.restate.values import numbered, pack, unnumbered, unpack

NUMBERS = st.integers(-(1 << 63), (1 << 63) - 1)
PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    bool: st.booleans(),
    int: NUMBERS,
    float: st.floats(allow_nan=False, allow_infinity=False),
    str: st.text(max_size=8),
    bytes: st.binary(max_size=8),
    None: st.none(),
    type(None): st.none(),
    Any: st.none() | st.text(max_size=3) | NUMBERS,
}
KINDS = {
    f"{module.__name__}.{name}": kind
    for module in values._MODULES
    for name, kind in vars(module).items()
    if isinstance(kind, type) and hasattr(kind, "_fields") and kind.__module__ == module.__name__
}


@cache
def values_of(hint: Any) -> st.SearchStrategy[Any]:
    if hint in PLAIN:
        return PLAIN[hint]
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in {Union, types.UnionType}:
        return st.one_of(*map(values_of, arguments))
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin is list:
        return st.lists(values_of(arguments[0]), max_size=2)
    if origin is tuple:
        if arguments[1:] == (...,):
            return st.lists(values_of(arguments[0]), max_size=2).map(tuple)
        return st.tuples(*map(values_of, arguments))
    if issubclass(hint, enum.Enum):
        return st.sampled_from(hint)
    return st.builds(hint, *(values_of(each) for each in get_type_hints(hint).values()))


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=8)
@given(data=st.data())
def test_every_value_comes_back_as_it_was(name: str, data: st.DataObject) -> None:
    value = data.draw(values_of(KINDS[name]))
    again = unpack(pack(value))
    assert (type(again), again) == (type(value), value)
    assert unnumbered(numbered(7, [value, None])) == [value, None]


@pytest.mark.parametrize(
    "value", [None, True, 1 << 62, "ключ", b"\x00\xff", [], [[b""], {"a": 1.5}], {"b": [1, None]}]
)
def test_plain_values_come_back_as_they_were(value: Any) -> None:
    assert unpack(pack(value)) == value


@given(st.integers(0, (1 << 63) - 1), st.integers(0, (1 << 63) - 1))
def test_numbered_values_sort_as_their_numbers(one: int, other: int) -> None:
    assert (numbered(one, "x") < numbered(other, "x")) == (one < other)


@pytest.mark.parametrize(
    "data, told",
    [
        (b"", "truncated"),
        (b"{}", "Expected `array`"),
        (b"[]", "length 2"),
        (b'["",', "malformed|truncated"),
        (b'["Nothing",[]]', "'Nothing' is not a value"),
        (b'["lru_cache",[]]', "'lru_cache' is not a value"),
        (b'["Held",["a"]]', "Expected `int`"),
        (b'["b",1]', "Expected `bytes`"),
    ],
)
def test_anything_else_is_refused(data: bytes, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        unpack(data)


def test_names_are_not_used_twice() -> None:
    names = [name.rpartition(".")[2] for name in KINDS]
    assert len(names) == len(set(names))
