"""Expressions that answer a text or any JSON: what they give, refuse, and can cost."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oncekey.core.errors import ConditionInvalid
from oncekey.durable.cel import ConditionTrouble
from oncekey.durable.expressions import LARGEST, compile_expression

VARIABLES = (
    ("body", "dyn"),
    ("headers", "map<string,string>"),
    ("identifier", "string"),
    ("provider", "string"),
)
EVENT = {
    "id": "evt_1",
    "n": 7,
    "data": {"object": {"id": "pi_1", "metadata": {"order": "o-1"}}},
    "items": [{"sku": "a"}, {"sku": "b"}],
}

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(-1e9, 1e9) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=8,
)


def subject(body: Any = None, **headers: str) -> dict[str, Any]:
    body = EVENT if body is None else body
    return {"body": body, "headers": headers, "identifier": "evt_1", "provider": "stripe"}


def text_of(expression: str, body: Any = None, **headers: str) -> str:
    return compile_expression(expression, VARIABLES).text(subject(body, **headers))


def value_of(expression: str, body: Any = None) -> Any:
    return compile_expression(expression, VARIABLES, "json").value(subject(body))


@pytest.mark.parametrize(
    "expression, expected",
    [
        ("'fixed'", "fixed"),
        ("'stripe:' + body.data.object.id", "stripe:pi_1"),
        ("provider + '-' + identifier", "stripe-evt_1"),
        ("'github.' + headers['x-github-event']", "github.push"),
        ("body.id", "evt_1"),
        ("'n:' + string(body.n)", "n:7"),
        ("has(body.data.object.metadata.order) ? body.data.object.metadata.order : body.id", "o-1"),
        ("body.items[1].sku", "b"),
    ],
)
def test_a_text_comes_out(expression: str, expected: str) -> None:
    assert text_of(expression, **{"x-github-event": "push"}) == expected


@given(texts)
def test_texts_come_out_as_they_went_in(text: str) -> None:
    assert text_of("'k:' + body.id", {"id": text}) == f"k:{text}"


@given(values)
def test_any_json_comes_out_as_it_went_in(value: Any) -> None:
    assert value_of("body", {"inner": value}) == {"inner": value}


@pytest.mark.parametrize(
    "expression, expected",
    [
        ("{'id': body.id, 'n': body.n + 1}", {"id": "evt_1", "n": 8}),
        ("[body.id, 1.5, true, null]", ["evt_1", 1.5, True, None]),
        ("body.n == 7", True),
        ("body.data.object", EVENT["data"]["object"]),  # type: ignore[index]
    ],
)
def test_json_is_made(expression: str, expected: Any) -> None:
    assert value_of(expression) == expected


@pytest.mark.parametrize(
    "expression, rule",
    [
        ("", "an expression must be a CEL expression, and this is empty"),
        ("body.id +", r"the expression is not valid CEL \(line 1, column 10\)"),
        ("event.id", "knows body, headers, identifier and provider"),
        ("1 + 1", "must give a text, and this is INT; make it one with string"),
        ("body.n == 7", "must give a text, and this is BOOL"),
        ("[body.id]", "must give a text, and this is LIST"),
        ("'" + "x" * 4096 + "'", "not be longer than 4096 bytes"),
        ("body.items.map(i, i.sku)[0]", r"map\(\) is not available"),
        ("body.id.matches(body.p) ? 'a' : 'b'", "pattern of matches"),
    ],
)
def test_what_cannot_be_used_is_refused_by_its_rule(expression: str, rule: str) -> None:
    with pytest.raises(ConditionInvalid, match=rule):
        compile_expression(expression, VARIABLES)


@pytest.mark.parametrize(
    "expression, body, reason",
    [
        ("body.gone", {}, 'Key not found in map : "gone"'),
        ("body.n", {"n": 1}, "gave INT, not a text"),
        ("body.n", {"n": None}, "gave NULL, not a text|gave NULL_TYPE, not a text"),
        ("'a' + body.n", {"n": 1}, "No matching overloads"),
        ("body.id", {"id": "a\0b"}, r"the delivery holds the character U\+0000"),
        ("body.id", {"id": "a", "n": 2**70}, "out of range"),
        ("body.id", {"id": "a", "long": "a" * LARGEST}, "put to deliveries of at most"),
        ("headers['gone']", {}, "Key not found"),
    ],
)
def test_an_error_is_trouble_and_never_a_text(expression: str, body: Any, reason: str) -> None:
    with pytest.raises(ConditionTrouble, match=reason):
        text_of(expression, body)


@pytest.mark.parametrize(
    "expression",
    ["b'abc'", "[timestamp('2024-01-01T00:00:00Z')]", "1.0 / 0.0", "{1: 2}", "type(1)", "[[b'a']]"],
)
def test_what_json_cannot_hold_is_trouble(expression: str) -> None:
    with pytest.raises(ConditionTrouble, match="which JSON cannot hold"):
        value_of(expression)


def test_what_is_nested_too_deeply_does_not_reach_the_library() -> None:
    body: Any = "x"
    for _ in range(300):
        body = [body]
    with pytest.raises(ConditionTrouble, match="the delivery is nested more than 200 deep"):
        text_of("'a'", {"b": body})


def test_what_is_written_in_practice_is_asked_of_the_largest() -> None:
    for expression in ("'stripe:' + body.data.object.id", "provider + ':' + identifier"):
        assert compile_expression(expression, VARIABLES).largest >= LARGEST // 2
    assert compile_expression("'stripe:' + body.id", VARIABLES).largest == LARGEST


def test_what_could_take_all_memory_is_refused() -> None:
    chain = "size(v19) > 0"
    for number in reversed(range(20)):
        value = f"v{number - 1} + v{number - 1}" if number else "body.s"
        chain = f"[{value}].all(v{number}, {chain})"
    with pytest.raises(ConditionInvalid, match="could take too long"):
        compile_expression(f"{chain} ? 'a' : 'b'", VARIABLES)


def test_an_expression_is_compiled_once() -> None:
    assert compile_expression("body.id", VARIABLES) is compile_expression("body.id", VARIABLES)
