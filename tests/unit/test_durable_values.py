"""Values of durable work as JSON: round trips, refusals and fingerprints."""

import dataclasses
import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any
from uuid import UUID

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oncekey.core.errors import (
    ConfigurationError,
    InvalidInput,
    PayloadTooLarge,
    ValueUnserialisable,
)
from oncekey.durable.engine import MAX_PAYLOAD
from oncekey.durable.values import (
    canonical,
    decode,
    encode,
    fingerprint_of,
    fingerprint_of_arguments,
)


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Money(pydantic.BaseModel):
    amount: Decimal
    currency: str = pydantic.Field("EUR", alias="currencyCode")

    @pydantic.computed_field  # type: ignore[prop-decorator]
    @property
    def text(self) -> str:
        return f"{self.amount} {self.currency}"


class Strict(pydantic.BaseModel, strict=True, extra="forbid"):
    at: datetime
    tags: set[str]
    raw: bytes = b""
    price: Money | None = None


@pydantic.dataclasses.dataclass
class Checked:
    count: Annotated[int, pydantic.Field(gt=0)]
    raw: bytes = b""


class Line(msgspec.Struct, frozen=True):
    sku: str
    count: int
    price: Money | None = None


@dataclasses.dataclass
class Order:
    id: UUID
    at: datetime
    lines: list[Line]
    total: Decimal
    colour: Colour = Colour.RED
    due: date | None = None
    wait: timedelta = timedelta(0)
    prices: dict[str, Money] = dataclasses.field(default_factory=dict)


text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
    max_leaves=10,
)
moments = st.datetimes(datetime(1970, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
amounts = st.decimals(allow_nan=False, allow_infinity=False, places=2)
money = st.builds(Money, amount=amounts, currencyCode=st.sampled_from(["EUR", "USD"]))
stricts = st.builds(
    Strict,
    at=moments,
    tags=st.sets(text),
    raw=text.map(str.encode),
    price=st.none() | money,
)
lines = st.builds(Line, sku=text, count=st.integers(-(2**63), 2**63), price=st.none() | money)
orders = st.builds(
    Order,
    id=st.uuids(),
    at=moments,
    lines=st.lists(lines, max_size=3),
    total=amounts,
    colour=st.sampled_from(Colour),
    due=st.none() | st.dates(),
    wait=st.timedeltas(timedelta(0), timedelta(days=999)),
    prices=st.dictionaries(text, money, max_size=2),
)


# -- round trips -------------------------------------------------------------------------------


@given(plain)
def test_plain_data_come_back_as_json_says(value: Any) -> None:
    body = encode(value, "it")
    assert json.loads(body) == value
    assert decode(body, Any, "it") == decode(body, None, "it") == value


@given(orders)
def test_a_dataclass_with_everything_in_it_comes_back(order: Order) -> None:
    assert decode(encode(order, "it"), Order, "it") == order
    assert decode(encode([order], "it"), list[Order], "it") == [order]


@given(lines)
def test_a_struct_is_written_as_msgspec_writes_it(line: Line) -> None:
    assert decode(encode(line, "it"), Line, "it") == line
    if line.price is None:
        assert encode(line, "it") == msgspec.json.encode(line)


@given(stricts)
def test_a_model_is_written_and_read_as_pydantic_does(model: Strict) -> None:
    body = encode(model, "it")
    assert json.loads(body) == json.loads(model.model_dump_json(by_alias=True, round_trip=True))
    assert decode(body, Strict, "it") == Strict.model_validate_json(body) == model


@given(st.lists(stricts, max_size=3))
def test_models_come_back_from_within_other_values(models: list[Strict]) -> None:
    value = {"models": models}
    assert decode(encode(value, "it"), dict[str, list[Strict]], "it") == value


def test_the_dataclasses_of_pydantic_are_checked_by_it() -> None:
    checked = Checked(3, b"abc")
    assert decode(encode(checked, "it"), Checked, "it") == checked
    with pytest.raises(InvalidInput, match="greater than 0 - at `count`"):
        decode(b'{"count": 0}', Checked, "it")


@given(st.none() | money | stricts)
def test_a_union_that_only_pydantic_knows_is_read_by_it(model: Money | Strict | None) -> None:
    assert decode(encode(model, "it"), Money | Strict | None, "it") == model


def test_subclasses_of_plain_types_are_what_they_are_made_of() -> None:
    class Name(str):
        __slots__ = ()

    assert encode([Name("a")], "it") == b'["a"]'
    assert type(decode(b'"a"', Name, "it")) is Name


def test_what_asks_for_no_more_than_it_gets_is_given_it() -> None:
    assert decode(b'{"a": 1}', object, "it") == {"a": 1}


def test_a_type_that_cannot_be_hashed_is_a_type() -> None:
    class Note:
        __hash__ = None  # type: ignore[assignment]

    assert decode(b"1", Annotated[int, Note()], "it") == 1


def test_builtins_do_not_bring_pydantic_in() -> None:
    script = (
        "import sys; from oncekey.durable.values import decode, encode;"
        "assert decode(encode({'a': [1, None]}, 'it'), dict, 'it') == {'a': [1, None]};"
        "sys.exit('pydantic' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


# -- refusals ----------------------------------------------------------------------------------


class Loose(pydantic.BaseModel):
    number: Any


class Named(pydantic.BaseModel, ser_json_inf_nan="constants"):
    number: float


class Worded(pydantic.BaseModel, ser_json_inf_nan="strings"):
    number: float


@dataclasses.dataclass
class Holder:
    value: Any


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    "wrap",
    [
        lambda number: number,
        lambda number: [1, (number,)],
        lambda number: {"a": {"b": number}},
        lambda number: {1: number},
        Holder,
        lambda number: Loose(number=number),
        lambda number: Holder([Loose(number=number)]),
        lambda number: Named(number=number),
        lambda number: [Named(number=number)],
    ],
)
def test_what_is_no_number_is_refused_wherever_it_hides(number: float, wrap: Any) -> None:
    with pytest.raises(ValueUnserialisable, match=r"^the result cannot be kept as JSON"):
        encode(wrap(number), "the result")


def test_a_model_may_say_how_it_writes_what_is_no_number() -> None:
    body = encode([Worded(number=math.inf), None], "it")
    assert decode(body, list[Worded | None], "it") == [Worded(number=math.inf), None]


def test_null_and_the_word_null_are_fine() -> None:
    assert encode(None, "it") == b"null"
    assert encode([None, "null", 1.5, {"a": None}], "it") == b'[null,"null",1.5,{"a":null}]'


def circle() -> Any:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    "value, named",
    [
        (object(), "builtins.object"),
        ({"a": [object()]}, "builtins.object"),
        (1j, "builtins.complex"),
        (Holder(sys), "builtins.module"),
        (iter([1]), "builtins.list_iterator"),
        (Loose(number=object()), "object"),
        ([Loose(number=object())], "object"),
        ({(1, 2): 3}, "builtins.tuple"),
        ("\ud800", "surrogates"),
        (circle(), "recursion"),
    ],
)
def test_what_is_not_json_is_refused_by_its_type(value: Any, named: str) -> None:
    with pytest.raises(ValueUnserialisable, match=f"^the result of f cannot be.*{named}"):
        encode(value, "the result of f")


def test_a_value_has_a_largest_size() -> None:
    assert len(encode("x" * (MAX_PAYLOAD - 2), "it")) == MAX_PAYLOAD
    with pytest.raises(PayloadTooLarge, match="the result has 1048577 bytes; 1048576 are allowed"):
        encode("x" * (MAX_PAYLOAD - 1), "the result")


@pytest.mark.parametrize(
    "body, kind, reason",
    [
        (b"{", Any, "truncated"),
        (b"", Any, "truncated"),
        (b"\xff", Any, "malformed"),
        (b"[" * 100_000, Any, "recursion"),
        (b'"a"', int, "Expected `int`, got `str`"),
        (b'{"sku": "a", "count": "b"}', Line, r"Expected `int`, got `str` - at `\$.count`"),
        (b'{"at": 5, "tags": []}', Strict, "valid datetime.* - at `at`"),
        (b'{"x": 1, "y": 2}', Strict, r"Field required - at `at` \(and 3 more\)"),
        (b'[{"amount": "x"}]', list[Money], "valid decimal - at `amount`"),
        (b"1", Iterator[int], "cannot be read from JSON"),
        (b"1", type(None), "Expected `null`, got `int`"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_reason(body: bytes, kind: Any, reason: str) -> None:
    with pytest.raises(InvalidInput, match=f"(?s)^the input does not fit: .*{reason}"):
        decode(body, kind, "the input")


def test_a_refusal_is_short_and_keeps_what_was_given_to_itself() -> None:
    with pytest.raises(InvalidInput) as refused:
        decode(b'{"amount": "s3cret"}', Money, "the input")
    assert "s3cret" not in str(refused.value)
    with pytest.raises(InvalidInput) as refused:
        decode(msgspec.json.encode("x" * 5000), Colour, "the input")
    assert len(str(refused.value)) < 400


def test_a_type_nothing_can_be_read_into_is_a_mistake_in_the_code() -> None:
    with pytest.raises(ConfigurationError, match="cannot be read from JSON"):
        decode(b"1", "Nowhere", "it")


# -- fingerprints ------------------------------------------------------------------------------


@given(st.lists(text, max_size=3), st.lists(text, max_size=3))
def test_a_fingerprint_keeps_its_parts_apart(one: list[str], other: list[str]) -> None:
    assert len(fingerprint_of(*one)) == 16
    assert (fingerprint_of(*one) == fingerprint_of(*other)) == (one == other)
    assert fingerprint_of(*one) == fingerprint_of(*(part.encode() for part in one))


@given(plain)
def test_json_is_canonical_by_value(value: Any) -> None:
    spread = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False).encode()
    assert canonical(json.dumps(value).encode()) == canonical(spread)


def test_one_is_one_however_it_is_written() -> None:
    assert canonical(b'{"b":1,"a":2.0}') == canonical(b' {"a": 2, "b": 1.0e0}')
    assert canonical(b"[1]") != canonical(b"[2]")
    assert canonical(b"not json") != canonical(b'"not json"')


@given(orders, orders)
def test_arguments_have_the_fingerprint_of_their_values(one: Order, other: Order) -> None:
    copy = decode(encode(one, "it"), Order, "it")
    assert fingerprint_of_arguments((one, 1)) == fingerprint_of_arguments((copy, 1))
    if one != other:
        assert fingerprint_of_arguments((one,)) != fingerprint_of_arguments((other,))


def test_what_is_not_json_counts_by_its_type() -> None:
    assert fingerprint_of_arguments((object(), 1)) == fingerprint_of_arguments((object(), 1))
    assert fingerprint_of_arguments((object(), 1)) != fingerprint_of_arguments((object(), 2))
    assert fingerprint_of_arguments((object(),)) != fingerprint_of_arguments((sys,))
    assert fingerprint_of_arguments(({1, "a"},)) == fingerprint_of_arguments(({2, "b"},))
    assert fingerprint_of_arguments((circle(),)) == fingerprint_of_arguments((circle(),))


def test_keys_of_any_kind_count() -> None:
    assert fingerprint_of_arguments(({1: 1, 2: 2},)) == fingerprint_of_arguments(({2: 2, 1: 1},))
    assert fingerprint_of_arguments(({1: 1, 2: 2},)) != fingerprint_of_arguments(({1: 2, 2: 1},))


def test_a_fingerprint_of_arguments_is_the_same_in_every_process() -> None:
    script = (
        "import pydantic; from oncekey.durable.values import fingerprint_of_arguments as f\n"
        "class Tags(pydantic.BaseModel):\n    tags: set[str]\n"
        "words = {'a', 'b', 'c', 'd', 'e'}\n"
        "print(f((words, Tags(tags=words), {'x': frozenset(words)}, object())).hex())"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(printed) == 1
