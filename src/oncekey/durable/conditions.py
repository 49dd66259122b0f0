"""Conditions on events, in CEL.

An evaluation that ends in an error is trouble that is told, not an event that does not fit.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from oncekey.core.errors import ConditionInvalid
from oncekey.durable import cel
from oncekey.durable.cel import ConditionTrouble, Language, Program
from oncekey.durable.engine import MAX_EVENT

LARGEST = MAX_EVENT + (64 << 10)
"""Bytes of an event as it is put to a condition: data, key and headers."""
LANGUAGE = Language(
    "condition",
    "a condition",
    "event",
    "events",
    (("input", "dyn"), ("key", "string"), ("headers", "map<string,string>")),
    LARGEST,
)


class Subject(cel.Subject):
    """An event, which many conditions may be put to. Its data are decoded JSON."""

    def __init__(self, data: Any, key: str, headers: Mapping[str, str]) -> None:
        super().__init__(LANGUAGE, {"input": data, "key": key, "headers": dict(headers)})


class Condition:
    """A compiled expression over `input`, `key` and `headers`."""

    def __init__(self, expression: str, program: Program) -> None:
        self.expression = expression
        self.largest = program.largest
        self._program = program

    def holds(self, subject: Subject) -> bool:
        """Raises `ConditionTrouble`."""
        answer = self._program.run(subject)
        value = answer.value()
        # Nothing but the two booleans counts.
        if value is True or value is False:
            return value
        raise ConditionTrouble(f"the condition gave {answer.type()}, not true or false")


@lru_cache(maxsize=1024)
def compile_condition(expression: str) -> Condition:
    """Raises `ConditionInvalid`, and `ConfigurationError` when the library is not installed."""
    program = LANGUAGE.compile(expression)
    if program.kind not in {"BOOL", "DYN"}:
        raise ConditionInvalid(
            f"a condition must be true or false, and this is {program.kind}; compare, as in "
            f"input.id == 'a'"
        )
    return Condition(expression, program)
