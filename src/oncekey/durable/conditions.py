"""Conditions on events, in CEL: compiled once, bounded in what they cost, and never guessed.

An evaluation that ends in an error is trouble that is told, not an event that does not fit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, cached_property, lru_cache
from typing import Any

import msgspec

from oncekey.core.errors import ConditionInvalid, ConfigurationError
from oncekey.durable.condition_cost import NotBoundable, cost_of, tree_of
from oncekey.durable.engine import MAX_EVENT

MAX_EXPRESSION = 4096
"""Bytes."""
MAX_COST = 2e7
"""About half a second, and so many bytes."""
MAX_DEPTH = 200
LARGEST = MAX_EVENT + (64 << 10)
"""Bytes of an event as it is put to a condition: data, key and headers."""
_SMALLEST_EVENT = 4096
_MAX_TROUBLE = 500

# `map` and `filter` are left out: this library copies what they have gathered in every round.
_ENVIRONMENT = """
variables:
  - { name: "input", type: "dyn" }
  - { name: "key", type: "string" }
  - { name: "headers", type: "map<string,string>" }
stdlib:
  exclude_macros: ["map", "filter"]
"""
_COMPLAINT = re.compile(r"ERROR: <input>:(-?\d+):(-?\d+): (.*)")
_UNKNOWN_NAME = re.compile(r"undeclared reference to '([^']*)'")
_ZERO = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
_LEFT_OUT = re.compile(r"\.\s*(map|filter)\s*\(")

_encode = msgspec.json.Encoder().encode


class ConditionTrouble(Exception):
    """The condition neither holds nor fails; the text says why."""

    def __init__(self, text: str) -> None:
        super().__init__(text[:_MAX_TROUBLE])


class Subject:
    """What conditions are put to: an event, made ready once for any number of them."""

    def __init__(self, data: Any, key: str, headers: Mapping[str, str]) -> None:
        self._values = {"input": data, "key": key, "headers": dict(headers)}
        self._activation: Any = None
        self._left = MAX_COST

    @cached_property
    def size(self) -> int:
        """Bytes as JSON. Raises `ConditionTrouble` for what no condition can be asked of."""
        return _size_of(self._values)

    def activation(self, cost: float) -> Any:
        """The values as the library wants them; what evaluations leave behind in it is bounded."""
        if self._activation is None or self._left < cost:
            self._activation = _environment().Activation(self._values)
            self._left = MAX_COST
        self._left -= cost
        return self._activation


class Condition:
    """A compiled expression over `input`, `key` and `headers`."""

    def __init__(self, expression: str, program: Any, largest: int, cost: float) -> None:
        self.expression = expression
        self.largest = largest
        """The size of the largest event it is put to, so that the cost is bounded."""
        self._program = program
        self._cost = cost

    def evaluate(self, data: Any, key: str, headers: Mapping[str, str]) -> bool:
        """Whether it holds. `data` is decoded JSON. Raises `ConditionTrouble`."""
        return self.holds(Subject(data, key, headers))

    def holds(self, subject: Subject) -> bool:
        """As `evaluate`, for an event that many conditions are put to."""
        if subject.size > self.largest:
            raise ConditionTrouble(
                f"the condition could take too long: it is put to events of at most {self.largest}"
                f" bytes, and this one has {subject.size}; make the condition simpler"
            )
        try:
            answer = self._program.eval(subject.activation(self._cost))
        except (RuntimeError, MemoryError, ValueError, TypeError) as error:
            raise ConditionTrouble(f"the condition cannot be evaluated: {error}") from error
        value = answer.value()
        # An error is an answer too, and its value a text: nothing but the two booleans counts.
        if value is True or value is False:
            return value
        if str(answer.type()) == "ERROR":
            raise ConditionTrouble(f"the condition cannot be evaluated: {value}")
        raise ConditionTrouble(f"the condition gave {answer.type()}, not true or false")


@lru_cache(maxsize=1024)
def compile_condition(expression: str) -> Condition:
    """Raises `ConditionInvalid`, and `ConfigurationError` when the library is not installed."""
    _check_text(expression)
    environment = _environment()
    try:
        program = environment.compile(expression)
    except (RuntimeError, ValueError) as error:
        raise ConditionInvalid(_reason_of(str(error), expression)) from error
    kind = str(program.return_type())
    if kind not in {"BOOL", "DYN"}:
        raise ConditionInvalid(
            f"a condition must be true or false, and this is {kind}; compare, as in input.id == 'a'"
        )
    return Condition(expression, program, *_bounds_of(program))


def _check_text(expression: object) -> None:
    if not isinstance(expression, str) or not expression.strip():
        raise ConditionInvalid("a condition must be a CEL expression, and this is empty")
    try:
        size = len(expression.encode())
    except UnicodeEncodeError:
        raise ConditionInvalid("a condition must be text that UTF-8 can hold") from None
    if size > MAX_EXPRESSION:
        raise ConditionInvalid(
            f"a condition must not be longer than {MAX_EXPRESSION} bytes, and this has {size}"
        )


@cache
def _environment() -> Any:
    try:
        from cel_expr_python import cel  # type: ignore[import-untyped,unused-ignore]
    except ImportError as error:
        raise ConfigurationError("conditions need CEL: pip install 'oncekey[cel]'") from error
    return cel.NewEnv(config=cel.NewEnvConfigFromYaml(_ENVIRONMENT))


def _bounds_of(program: Any) -> tuple[int, float]:
    """The largest event it may be put to, and what it costs then."""
    tree, event = tree_of(program.serialize()), LARGEST
    try:
        while (cost := cost_of(tree, event)) > MAX_COST:
            if event // 2 < _SMALLEST_EVENT:
                raise ConditionInvalid("the condition could take too long; make it simpler")
            event //= 2
    except NotBoundable as error:
        raise ConditionInvalid(f"the condition could take too long: {error}") from error
    return event, cost


def _reason_of(text: str, expression: str) -> str:
    """What the library complains of first, in one line."""
    found = _COMPLAINT.search(text)
    line, column, reason = found.groups() if found else ("1", "1", text.partition("\n")[0])
    place = f" (line {line}, column {column})" if int(line) > 0 else ""
    if unknown := _UNKNOWN_NAME.search(reason):
        reason = f"unknown name '{unknown[1]}'; a condition knows input, key and headers"
    if left_out := _LEFT_OUT.search(expression):
        reason += f"; {left_out[1]}() is not available: use exists, exists_one or all"
    return f"the condition is not valid CEL{place}: {reason.partition(' expecting ')[0]}"


def _size_of(values: dict[str, Any]) -> int:
    """What the library would get wrong is refused: it breaks on values that are nested too deeply,
    and sees a text only up to its first U+0000."""
    try:
        body = _encode(values)
    except (TypeError, ValueError, RecursionError) as error:
        raise ConditionTrouble(f"the event is not JSON: {error}") from error
    if body.count(b"[") + body.count(b"{") > MAX_DEPTH and _is_deeper(values, MAX_DEPTH):
        raise ConditionTrouble(f"the event is nested more than {MAX_DEPTH} deep")
    if b"\\u0000" in body and _ZERO.search(body):
        raise ConditionTrouble("the event holds the character U+0000, which CEL cannot compare")
    return len(body)


def _is_deeper(value: Any, depth: int) -> bool:
    level = [value]
    while level and depth:
        inner = (each.values() if isinstance(each, dict) else each for each in level)
        level = [item for items in inner for item in items if isinstance(item, dict | list)]
        depth -= 1
    return bool(level)
