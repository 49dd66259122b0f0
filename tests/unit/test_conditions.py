"""Conditions on events: what they say, what they refuse, and what they can cost."""

import json
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oncekey.core.errors import ConditionInvalid, ConfigurationError
from oncekey.durable.cel import ConditionTrouble, environment_of
from oncekey.durable.condition_cost import cost_of, tree_of
from oncekey.durable.conditions import (
    LANGUAGE,
    LARGEST,
    Subject,
    compile_condition,
)
from oncekey.durable.engine import MAX_EVENT
from oncekey.durable.values import canonical

ORDER = {
    "id": "o-1",
    "total": 12.5,
    "items": [{"sku": "a", "count": 2}, {"sku": "b", "count": 0}],
    "tags": ["new", "gift"],
    "note": None,
}

text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.integers(0, 3)
    | st.floats(allow_nan=False, allow_infinity=False)
    | text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
    max_leaves=8,
)


def holds(expression: str, data: Any = None, key: str = "k", **headers: str) -> bool:
    subject = Subject(ORDER if data is None else data, key, headers)
    return compile_condition(expression).holds(subject)


@pytest.mark.parametrize(
    "expression, expected",
    [
        ("true", True),
        ("input.id == 'o-1'", True),
        ("input.id == 'o-2'", False),
        ("input.total > 12 && input.total < 13.0", True),
        ("input.items.exists(i, i.sku == 'b' && i.count == 0)", True),
        ("input.items.all(i, i.count > 0)", False),
        ("input.items.exists_one(i, i.count > 0)", True),
        ("'gift' in input.tags", True),
        ("has(input.gone) || input.note == null", True),
        ("key == 'k' && headers['kind'] == 'test'", True),
        ("input.id.matches('^o-[0-9]+$')", True),
        ("input['id'].startsWith('x')", False),
        ("size(input.items) == 2", True),
    ],
)
def test_a_condition_holds_or_does_not(expression: str, expected: bool) -> None:
    assert holds(expression, kind="test") is expected


@given(text, text)
def test_texts_are_compared_as_python_compares_them(one: str, other: str) -> None:
    data = {"one": one, "other": other}
    assert holds("input.one == input.other", data) is (one == other)
    assert holds("input.one.contains(input.other)", data) is (other in one)
    assert holds("input.one.startsWith(input.other)", data) is one.startswith(other)
    assert holds("size(input.one) > size(input.other)", data) is (len(one) > len(other))


@given(st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False))
def test_numbers_are_compared_by_value(whole: int, broken: float) -> None:
    data = {"whole": whole, "broken": broken}
    assert holds("input.whole < input.broken", data) is (whole < broken)
    assert holds("input.whole == input.broken", data) is (whole == broken)


@given(values, values)
def test_data_are_compared_as_json_is_compared_elsewhere(one: Any, other: Any) -> None:
    same = canonical(json.dumps(one).encode()) == canonical(json.dumps(other).encode())
    assert holds("input.one == input.other", {"one": one, "other": other}) is same
    assert holds("input.one == input.other", {"one": one, "other": one})


# -- what is refused when it is registered -----------------------------------------------------


@pytest.mark.parametrize(
    "expression, rule",
    [
        ("", "this is empty"),
        (" \n", "this is empty"),
        ("input.a ==", r"not valid CEL \(line 1, column 11\): Syntax error"),
        ("\n input.a = 1", r"not valid CEL \(line 2, column 10\)"),
        ("order.id == 1", "unknown name 'order.id'; a condition knows input, key and headers"),
        ("input.id", None),
        ("'a'", "must be true or false, and this is STRING"),
        ("1 + 1", "must be true or false, and this is INT"),
        ("key", "must be true or false, and this is STRING"),
        ("headers.a == 1", "no matching overload"),
        ("input.a == '" + "x" * 4096 + "'", "not be longer than 4096 bytes, and this has 4109"),
        ("input.a == '" + "é" * 2048 + "'", "not be longer than 4096 bytes, and this has 4109"),
        ("input.a == '\ud800'", "text that UTF-8 can hold"),
        ("input.l.map(x, x) == []", r"map\(\) is not available: use exists, exists_one or all"),
        ("size(input.l.filter(x, x)) > 1", r"filter\(\) is not available"),
        ("1" + " + 1" * 100 + " > 0", "recursion"),
        ("input.id.matches(input.pattern)", "pattern of matches.. must be written out"),
    ],
)
def test_what_cannot_be_used_is_refused_by_its_rule(expression: str, rule: str | None) -> None:
    if rule is None:
        # Whether this is a boolean, only an event can tell.
        assert compile_condition(expression).largest == LARGEST
        return
    with pytest.raises(ConditionInvalid, match=rule):
        compile_condition(expression)


def test_what_is_not_even_text_is_refused() -> None:
    with pytest.raises(ConditionInvalid, match="must be a CEL expression"):
        compile_condition(5)  # type: ignore[arg-type]


def test_an_expression_is_compiled_once() -> None:
    assert compile_condition("input.a == 1") is compile_condition("input.a == 1")


def test_without_the_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cel_expr_python", None)
    environment_of.cache_clear()
    try:
        with pytest.raises(ConfigurationError, match=r"pip install 'oncekey\[cel\]'"):
            compile_condition("input.never_compiled_before == 1")
    finally:
        environment_of.cache_clear()


# -- trouble: neither true nor false -----------------------------------------------------------


@pytest.mark.parametrize(
    "expression, data, reason",
    [
        ("input.gone == 1", {}, 'Key not found in map : "gone"'),
        ("input.id", {"id": "a"}, "gave STRING, not true or false"),
        ("input.n / 0 == 1", {"n": 1}, "divide by zero"),
        ("input.n > 1", {"n": 2**64}, "out of range"),
        ("input.n > 1", {"n": "a"}, "No matching overloads"),
        ("input.all(i, i > 0)", [1] * 20_000, "Iteration budget exceeded"),
        ("input.id.matches('[')", {"id": "a"}, "invalid regular expression"),
        ("input.id == 'a'", {"id": "\ud800"}, "not JSON"),
        ("input.id == 'a'", {"id": object()}, "not JSON"),
        ("input.id == 'a'", {"id": "a\0b"}, "the character U\\+0000"),
        ("input.id == 'a'", {"id": "a", "a\0": 1}, "the character U\\+0000"),
        ("input.id == 'a'", {"id": "\\\0"}, "the character U\\+0000"),
        ("input.id == 'a'", {"id": "a" * LARGEST}, "at most 327680 bytes"),
    ],
)
def test_an_error_is_trouble_and_never_an_answer(expression: str, data: Any, reason: str) -> None:
    with pytest.raises(ConditionTrouble, match=reason):
        holds(expression, data)


def test_a_backslash_before_u0000_is_just_text() -> None:
    assert holds("input == r'a\\u0000'", "a\\u0000")


def test_an_event_without_an_answer_is_trouble_for_every_condition_and_not_before() -> None:
    subject = Subject({"id": "a\0"}, "k", {})
    for expression in ("true", "input.id == 'a'"):
        with pytest.raises(ConditionTrouble, match=r"U\+0000"):
            compile_condition(expression).holds(subject)


def test_trouble_is_told_in_a_few_words() -> None:
    with pytest.raises(ConditionTrouble) as told:
        holds(f"input.{'x' * 2000} == 1")
    assert len(str(told.value)) == 500


@pytest.mark.parametrize("depth", [150, 5_000])
def test_what_is_nested_too_deeply_does_not_reach_the_library(depth: int) -> None:
    data: Any = 1
    for _ in range(depth):
        data = [data]
    if depth == 150:
        assert holds("input == input", data)
        return
    with pytest.raises(ConditionTrouble, match=r"nested more than 200 deep|not JSON"):
        holds("input == input", data)


def test_many_shallow_things_are_not_deep() -> None:
    assert holds("size(input) == 3000", [[1]] * 3000)


# -- cost --------------------------------------------------------------------------------------


def chain(inner: str, step: str, first: str, count: int) -> str:
    """Variables v0, v1, …, each bound to `step` of the one before it."""
    expression = inner.format(v=f"v{count - 1}")
    for number in reversed(range(count)):
        value = step.format(v=f"v{number - 1}") if number else first
        expression = f"[{value}].all(v{number}, {expression})"
    return expression


@pytest.mark.parametrize(
    "expression",
    [
        chain("{v} != ''", "{v} + {v}", "input.s", 14),
        chain("size({v}) > 0", "{v} + {v}", "[1]", 20),
        chain("{v} == {v}", "[{v}, {v}]", "[1]", 20),
        chain("{v} == {v}", "{{'a': {v}, 'b': {v}}}", "{'a': 1}", 20),
        "input.l.all(x, input.l.all(y, input == input))",
        "input.l.all(x, x.all(y, x == x))",
        "input.l.all(x, !input.s.contains(input.t))",
        "!input.s.matches('(x?){1000}y')",
        r"input.l.all(x, !x.matches('\\pL'))",
    ],
)
def test_what_could_take_all_memory_or_minutes_is_refused(expression: str) -> None:
    with pytest.raises(ConditionInvalid, match="could take too long"):
        compile_condition(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "input.a == 'x' && input.b == key",
        "input.items.exists(i, i.sku == input.wanted)",
        "input.items.exists(i, i.tags.exists(t, t == i.main))",
        "input.items.exists_one(i, i.price * i.count + i.tax > 100.0)",
        "input.items.all(i, i.name.contains('foo'))",
        "[input.a, input.b].exists(x, x == 'foo')",
        "input.id.matches('^ORD-[0-9]+$')",
        "timestamp(input.at) > timestamp('2024-01-01T00:00:00Z')",
        " && ".join(["input.a == input.b"] * 60),
    ],
)
def test_what_is_asked_of_events_in_practice_is_asked_of_the_largest(expression: str) -> None:
    assert compile_condition(expression).largest == LARGEST


def test_the_largest_event_may_have_a_key_and_headers() -> None:
    data = {"a": "x" * (MAX_EVENT - len(b'{"a":""}'))}
    assert holds("headers.b == key", data, "k" * 200, b="k" * 200)


def test_what_grows_faster_than_the_event_is_asked_of_smaller_ones() -> None:
    condition = compile_condition("input.wanted.all(w, w in input.offered)")
    assert condition.holds(Subject({"wanted": [1, 2], "offered": [2, 1]}, "k", {}))
    with pytest.raises(ConditionTrouble, match="put to events of at most 5120 bytes, and this"):
        condition.holds(Subject({"wanted": [1, 2], "offered": [1] * 3000}, "k", {}))


@given(st.integers(1, 12), st.integers(100, MAX_EVENT))
def test_the_bound_knows_that_doubling_is_exponential(count: int, event: int) -> None:
    program = environment_of(LANGUAGE.variables).compile(
        chain("{v} != ''", "{v} + {v}", "input.s", count)
    )
    assert cost_of(tree_of(program.serialize()), event) >= event * (2 ** (count - 1) - 1)


@given(st.integers(1, MAX_EVENT // 2))
def test_the_bound_knows_that_elements_are_no_larger_than_their_list(event: int) -> None:
    program = environment_of(LANGUAGE.variables).compile("input.l.exists(i, i.a == input.b)")
    tree = tree_of(program.serialize())
    assert event <= cost_of(tree, event) <= 50 * event
    assert cost_of(tree, event) <= cost_of(tree, 2 * event)


def test_one_event_is_put_to_many_conditions() -> None:
    # Together they cost far more than one evaluation may: the subject is made ready anew between.
    subject = Subject({"s": "x" * 100_000}, "k", {})
    condition = compile_condition("input.s + 'y' != input.s")
    assert all(condition.holds(subject) for _ in range(200))
    assert not compile_condition("input.s == 'x'").holds(subject)
