"""The grammar of a key and of its header, against the vectors and a Structured Field parser."""

import json
import string
from pathlib import Path
from typing import Any

import http_sf
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from oncekey.core.errors import KeyInvalid
from oncekey.core.key import check_key, check_name, parse_key

VECTORS = json.loads(
    (Path(__file__).parents[1] / "vectors" / "idempotency_key_header.json").read_text()
)["cases"]
ALLOWED = string.ascii_letters + string.digits + "._~-"

keys = st.text(ALLOWED, min_size=1, max_size=255).filter(lambda key: not key.startswith("t-"))


def is_key(text: str) -> bool:
    return 1 <= len(text) <= 255 and set(text) <= set(ALLOWED) and not text.startswith("t-")


def parsed(value: str) -> str | None:
    try:
        return parse_key(value)
    except KeyInvalid:
        return None


@pytest.mark.parametrize("case", VECTORS, ids=lambda case: case["name"])
def test_the_vectors_in_our_profile(case: dict[str, Any]) -> None:
    """Quoted: a strict Structured Field String without parameters. Else: the value as it is."""
    header = case["header"]
    if header.startswith('"'):
        string_value = case["value"] if case["expected"]["valid"] and ";" not in header else None
    else:
        string_value = header.strip()
    expected = string_value if string_value is not None and is_key(string_value) else None
    assert parsed(header) == expected


@given(keys)
def test_plain_and_quoted_are_the_same_key(key: str) -> None:
    assert parse_key(key) == parse_key(f'"{key}"') == parse_key(f' \t"{key}" ') == key


@given(st.text(ALLOWED + '"\\;=\t é\x00\x7f', max_size=20))
@example('"')
@example('""')
@example('"a";b')
@example('"a"b"')
@example('"a\\"')
@example('"a\\\\"')
def test_quoted_values_agree_with_a_structured_field_parser(rest: str) -> None:
    header = f'"{rest}'
    try:
        value, parameters = http_sf.parse(header.strip(" \t").encode("latin-1"), tltype="item")
    except (http_sf.StructuredFieldError, ValueError):
        value, parameters = None, {}
    expected = value if isinstance(value, str) and is_key(value) and not parameters else None
    assert parsed(header) == expected


@given(st.text(max_size=300))
def test_everything_else_is_a_key_by_its_characters_alone(text: str) -> None:
    trimmed = text.strip(" \t")
    if not trimmed.startswith('"'):
        assert parsed(text) == (trimmed if is_key(trimmed) else None)


@pytest.mark.parametrize(
    "value, rule",
    [
        ("", "the key is empty"),
        ("  \t", "the key is empty"),
        ('""', "the key is empty"),
        ("a" * 256, "the key is longer than 255 characters"),
        ("t-acme", "the key starts with the reserved prefix 't-'"),
        ('"t-acme"', "the key starts with the reserved prefix 't-'"),
        ("a b", "the key holds ' '; allowed are A-Z a-z 0-9 . _ ~ -"),
        ("a,b", "the key holds ','; allowed are A-Z a-z 0-9 . _ ~ -"),
        ("caf\xe9", "the key holds '\\xe9'; allowed are A-Z a-z 0-9 . _ ~ -"),
        ("a\n", "the key holds '\\n'; allowed are A-Z a-z 0-9 . _ ~ -"),
        ('"open', "the quoted key has no closing quote"),
        ('"', "the quoted key has no closing quote"),
        ('"a";p=1', "a quoted key must end with its quote; parameters are not allowed"),
    ],
)
def test_a_refusal_names_the_rule(value: str, rule: str) -> None:
    with pytest.raises(KeyInvalid) as refused:
        parse_key(value)
    assert str(refused.value) == rule


@pytest.mark.parametrize("key", ["a", "a" * 255, "T-x", "t_x", "-", ".", "~", "8e03978e-40d5"])
def test_the_edges_of_the_grammar_are_inside(key: str) -> None:
    assert check_key(key) == key


def test_the_key_of_a_tick_is_one() -> None:
    assert parse_key("sched:prices.eu_1-a:1767225600000") == "sched:prices.eu_1-a:1767225600000"


@pytest.mark.parametrize(
    "key",
    ["sched:x", "sched::1", "sched:x:", "sched:x:1a", "sched:x:1:2", "sched:-x:1", "sched:x: 1"],
)
def test_but_nothing_else_with_a_colon(key: str) -> None:
    with pytest.raises(KeyInvalid):
        parse_key(key)


@pytest.mark.parametrize("name", ["invoice:42", "größe", "a b", "x" * 512, "t-x", "[ ]"])
def test_a_name_chosen_by_code_may_be_any_printable_text(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize("name", ["", "x" * 513, "a\n", "a\x00", "a\x7f", "a\ud800"])
def test_but_not_empty_too_long_or_unprintable(name: str) -> None:
    with pytest.raises(KeyInvalid):
        check_name(name)
