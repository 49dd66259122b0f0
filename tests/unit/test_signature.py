"""What a function takes and gives: its annotations, and its arguments as JSON."""

from __future__ import annotations

import functools
from collections.abc import Awaitable
from typing import Annotated, Any, Never, NoReturn

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oncekey.core.errors import ConfigurationError, InvalidInput, PayloadTooLarge
from oncekey.durable.engine import MAX_PAYLOAD
from oncekey.durable.signature import (
    Signature,
    pack_arguments,
    result_type_of,
    signature_of,
    unpack_arguments,
)


class Order(msgspec.Struct):
    id: str
    total: float = 0


async def one(ctx: object, order: Order) -> Order:
    raise NotImplementedError


async def several(ctx: Any, order: Order, count: int, note: str | None = "none") -> list[Order]:
    raise NotImplementedError


async def nothing(ctx: Any) -> None:
    raise NotImplementedError


def bare(a, b=2):  # type: ignore[no-untyped-def]
    raise NotImplementedError


async def optional(ctx: Any, count: int = 5) -> int:
    raise NotImplementedError


async def nullable(ctx: Any, count: int | None = 5) -> int:
    raise NotImplementedError


def kinds_of(signature: Signature) -> list[Any]:
    return [each.kind for each in signature.parameters or ()]


# -- reading -----------------------------------------------------------------------------------


def test_annotations_written_as_text_are_types() -> None:
    assert kinds_of(signature_of(one, skip=1)) == [Order]
    assert signature_of(one, skip=1).result is Order
    assert kinds_of(signature_of(several, skip=1)) == [Order, int, str | None]
    assert signature_of(several, skip=1).result == list[Order]
    assert signature_of(nothing, skip=1) == Signature("nothing", (), type(None))


def test_what_is_not_annotated_may_be_anything() -> None:
    assert kinds_of(signature_of(bare)) == [Any, Any]
    assert signature_of(bare).result is Any


def test_classes_of_the_function_around_are_found() -> None:
    class Local(msgspec.Struct):
        id: int

    def step(given: Local, missing: Nowhere) -> list[Local]:  # type: ignore[name-defined]  # noqa: F821
        raise NotImplementedError

    signature = signature_of(step)
    assert kinds_of(signature) == [Local, Any]
    assert signature.result == list[Local]


def test_what_wraps_a_function_has_its_annotations() -> None:
    def traced(function: Any) -> Any:
        @functools.wraps(function)
        def around(*args: Any) -> Any:
            return function(*args)

        return around

    class Callable:
        def __call__(self, order: Order) -> Order:
            raise NotImplementedError

        def method(self, order: Order) -> Order:
            raise NotImplementedError

    for function in (
        functools.partial(one, None),
        functools.partial(functools.partial(traced(one)), None),
        Callable(),
        Callable().method,
    ):
        assert kinds_of(signature_of(function)) == [Order]
        assert result_type_of(function) is Order


def test_constraints_are_kept() -> None:
    def step(count: Annotated[int, msgspec.Meta(gt=0)]) -> None:
        raise NotImplementedError

    with pytest.raises(InvalidInput, match="'count' of step does not fit: Expected `int` >= 1"):
        unpack_arguments(signature_of(step), b"0")


def test_the_result_is_what_an_awaitable_gives() -> None:
    def later() -> Awaitable[Order]:
        raise NotImplementedError

    def never() -> NoReturn:
        raise NotImplementedError

    assert result_type_of(later) is Order
    assert result_type_of(never) is Any
    assert result_type_of(len) is Any
    assert result_type_of(lambda: 1) is Any
    assert result_type_of(one) is result_type_of(one) is Order


def variadic(*items: int) -> None: ...
def by_keyword(order: Order, *, count: int) -> None: ...
def odd(never: Never) -> None: ...
async def alone() -> None: ...


class Opaque:
    __signature__ = "unreadable"

    def __call__(self) -> None: ...


@pytest.mark.parametrize(
    "function, rule",
    [
        (variadic, r"variadic takes \*items: name what it takes one by one"),
        (by_keyword, "by_keyword needs 'count' by keyword: input is given by position"),
        (odd, "the parameter 'never' of odd: .* cannot be read from JSON"),
        (alone, r"alone must take a context first: async def alone\(ctx"),
        (Opaque(), "the parameters of Opaque cannot be found out"),
    ],
)
def test_what_cannot_be_given_from_json_is_refused(function: Any, rule: str) -> None:
    with pytest.raises(ConfigurationError, match=rule):
        signature_of(function, skip=1 if function is alone else 0)


def test_a_keyword_with_a_default_is_left_alone() -> None:
    def step(order: Order, *, loud: bool = False, **others: Any) -> None:
        raise NotImplementedError

    assert kinds_of(signature_of(step)) == [Order]


# -- arguments ---------------------------------------------------------------------------------

orders = st.builds(Order, st.text(st.characters(exclude_categories=["Cs"])), st.floats(0, 1e9))


@given(orders, st.integers(), st.none() | st.text(st.characters(exclude_categories=["Cs"])))
def test_arguments_come_back(order: Order, count: int, note: str | None) -> None:
    single, many = signature_of(one, skip=1), signature_of(several, skip=1)
    assert unpack_arguments(single, pack_arguments(single, (order,))) == (order,)
    args = (order, count, note)
    assert unpack_arguments(many, pack_arguments(many, args)) == args


def test_one_parameter_is_the_input_itself_and_several_are_an_array() -> None:
    assert pack_arguments(signature_of(one, skip=1), (Order("a"),)) == b'{"id":"a","total":0}'
    several_ = signature_of(several, skip=1)
    assert pack_arguments(several_, (Order("a"), 2)) == b'[{"id":"a","total":0},2,"none"]'
    assert unpack_arguments(several_, b'[{"id": "a"}, 2]') == (Order("a"), 2)
    assert pack_arguments(signature_of(nothing, skip=1), ()) == b"null"
    assert unpack_arguments(signature_of(nothing, skip=1), b" null ") == ()


def test_a_default_is_written_down_and_null_stands_for_one_where_it_fits_nothing_else() -> None:
    assert pack_arguments(signature_of(optional, skip=1), ()) == b"5"
    assert unpack_arguments(signature_of(optional, skip=1), b"null") == ()
    assert unpack_arguments(signature_of(nullable, skip=1), b"null") == (None,)
    assert pack_arguments(signature_of(nullable, skip=1), (None,)) == b"null"


def test_a_dict_is_as_good_as_what_it_is_read_into() -> None:
    signature = signature_of(one, skip=1)
    assert pack_arguments(signature, ({"id": "a"},)) == b'{"id":"a"}'


@pytest.mark.parametrize(
    "function, args, rule",
    [
        (one, (), r"one takes \[order\], and was given 0 arguments"),
        (one, (Order("a"), 1), r"one takes \[order\], and was given 2 arguments"),
        (several, (Order("a"),), r"several takes \[order, count, note\], and was given 1"),
        (nothing, (1,), "nothing takes no input, and was given 1 arguments"),
        (one, (1,), "the parameter 'order' of one does not fit: Expected `object`, got `int`"),
        (several, (Order("a"), "2"), "the parameter 'count' of several does not fit: Expected"),
        (bare, (object(),), "the parameter 'a' of bare cannot be kept as JSON"),
    ],
)
def test_wrong_arguments_are_refused_where_they_are_given(
    function: Any, args: tuple[Any, ...], rule: str
) -> None:
    with pytest.raises(InvalidInput, match=rule):
        pack_arguments(signature_of(function, skip=0 if function is bare else 1), args)


@pytest.mark.parametrize(
    "function, body, rule",
    [
        (one, b"5", "the parameter 'order' of one does not fit: Expected `object`, got `int`"),
        (one, b"null", "the parameter 'order' of one does not fit: Expected `object`, got `null`"),
        (one, b"{", "the parameter 'order' of one does not fit: Input data was truncated"),
        (several, b'{"order": 1}', r"several must be an array: \[order, count, note\]"),
        (several, b"[]", r"several takes \[order, count, note\], and was given 0 arguments"),
        (several, b"[1,2,3,4]", r"several takes \[order, count, note\], and was given 4"),
        (several, b'[{"id":"a"},"b"]', "the parameter 'count' of several does not fit"),
        (nothing, b"{}", "nothing takes no input; give null"),
        (optional, b'"a"', "the parameter 'count' of optional does not fit"),
    ],
)
def test_wrong_input_is_refused(function: Any, body: bytes, rule: str) -> None:
    with pytest.raises(InvalidInput, match=rule):
        unpack_arguments(signature_of(function, skip=1), body)


def test_arguments_that_are_too_large_together_are_refused() -> None:
    half = "x" * (MAX_PAYLOAD // 2)
    with pytest.raises(PayloadTooLarge, match="the input of bare has"):
        pack_arguments(signature_of(bare), (half, half))


def test_of_a_function_that_is_not_here_anything_goes() -> None:
    anything = Signature.anything()
    assert pack_arguments(anything, ()) == b"null"
    assert pack_arguments(anything, (1,)) == b"1"
    assert pack_arguments(anything, (1, "a")) == b'[1,"a"]'
    assert unpack_arguments(anything, b'{"a": 1}') == ({"a": 1},)
