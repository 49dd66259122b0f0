"""Any expression: compiled, or refused with its reason; put to anything, an answer or trouble."""

from contextlib import suppress
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from oncekey.core.errors import ConditionInvalid
from oncekey.durable.cel import ConditionTrouble
from oncekey.durable.conditions import Subject, compile_condition
from oncekey.durable.expressions import compile_expression
from tests.fixtures.fuzzing import fuzz

VARIABLES = (("body", "dyn"), ("headers", "map<string,string>"), ("key", "string"))
GOOD = [
    "input.order_id == 'a'",
    "input.items.exists(i, i.cents > 100) && key.startsWith('order')",
    "has(input.a) ? input.a == 1 : headers['x-event'] == 'push'",
    "input.a.b.c in [1, 2, 3] || size(input.list) > 3u",
    "input.name.matches('^[a-z]+$') && timestamp(input.at) < timestamp('2026-01-01T00:00:00Z')",
    '"stripe:" + body.data.object.id',
    "string(body.number) + ':' + headers['x-id']",
    "{'a': body.a, 'b': [1, 2.5, true, null]}",
]
words = st.sampled_from(
    "input key headers body . a ( ) [ ] { } , : ? == != < >= && || ! + - * / % in has size exists "
    "all exists_one map filter matches string int uint double bytes b'a' 'a' \"\\u0000\" 1 0 -1 1u "
    "9e999 "
    "9223372036854775807 null true timestamp duration '1s' dyn type r'\\' ''' // \n .?".split(" ")
)
built = st.lists(words, max_size=14).map(" ".join)
deep = st.builds(
    lambda left, right, count: left * count + "input.a" + right * count,
    st.sampled_from(["(", "!", "[", "-", "input.a.all(x, ", "input.a.exists(x, "]),
    st.sampled_from([")", "]", "", ".a", "[0]"]),
    st.integers(0, 200),
)
long = st.builds(
    lambda part, glue, count: glue.join([part] * count),
    st.sampled_from(["input.a == 1", "'a'", "input.a.matches('(a+)+$')", "key", "x"]),
    st.sampled_from([" && ", " || ", " + ", " ? "]),
    st.integers(1, 400),
)


@st.composite
def altered(draw: st.DrawFn) -> str:
    text = draw(st.sampled_from(GOOD))
    at, new = draw(st.integers(0, len(text))), draw(words | st.text(max_size=2))
    return text[:at] + new + text[at + draw(st.integers(0, 5)) :]


texts = st.sampled_from(GOOD) | altered() | built | deep | long | st.text(max_size=60)
members = st.sampled_from(
    ["a", "b", "order_id", "items", "list", "name", "at", "data", "object", "id"]
)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(members, inner, max_size=5),
    max_leaves=12,
)


@fuzz(80)
@given(texts, values, st.text(max_size=9))
def test_a_condition_holds_or_not_or_is_trouble(text: str, data: Any, key: str) -> None:
    with suppress(ConditionInvalid, ConditionTrouble):
        assert compile_condition(text).holds(Subject(data, key, {"x-event": key})) in {True, False}


@fuzz(80)
@given(texts, values, st.text(max_size=9))
def test_an_expression_gives_what_it_says_or_is_trouble(text: str, data: Any, key: str) -> None:
    given_ = {"body": data, "headers": {"x-id": key}, "key": key}
    with suppress(ConditionInvalid, ConditionTrouble):
        assert isinstance(compile_expression(text, VARIABLES).text(given_), str)
    with suppress(ConditionInvalid, ConditionTrouble):
        compile_expression(text, VARIABLES, "json").value(given_)
