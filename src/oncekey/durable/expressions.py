"""Expressions, in CEL, that answer a text or any JSON: the key of a promise from what came in."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import isfinite
from typing import Any, Literal

from oncekey.core.errors import ConditionInvalid
from oncekey.durable.cel import ConditionTrouble, Language, Program, Subject
from oncekey.durable.engine import MAX_PAYLOAD

LARGEST = MAX_PAYLOAD + (64 << 10)
"""Bytes of what an expression is put to, all variables together."""

Variables = tuple[tuple[str, str], ...]
"""Names with their types in CEL: `("body", "dyn")`."""


class Expression:
    """Compiled. Both ways to evaluate it raise `ConditionTrouble`."""

    def __init__(self, language: Language, program: Program) -> None:
        self.largest = program.largest
        self._language = language
        self._program = program

    def text(self, values: Mapping[str, Any]) -> str:
        """The text it gives for decoded JSON, by the names of the variables."""
        answer = self._run(values)
        if str(answer.type()) != "STRING":
            raise ConditionTrouble(
                f"the expression gave {answer.type()}, not a text; make it one with string(…)"
            )
        return str(answer.value())

    def value(self, values: Mapping[str, Any]) -> Any:
        """The JSON it gives, decoded."""
        answer = self._run(values)
        value = answer.plain_value()
        if not _is_json(value):
            raise ConditionTrouble(
                f"the expression gave {answer.type()}, which JSON cannot hold; make texts of "
                f"bytes, times and numbers that are not finite"
            )
        return value

    def _run(self, values: Mapping[str, Any]) -> Any:
        return self._program.run(Subject(self._language, dict(values)))


@lru_cache(maxsize=1024)
def compile_expression(
    text: str, variables: Variables, gives: Literal["text", "json"] = "text"
) -> Expression:
    """Raises `ConditionInvalid`, and `ConfigurationError` when the library is not installed."""
    language = Language("expression", "an expression", "delivery", "deliveries", variables, LARGEST)
    program = language.compile(text)
    if gives == "text" and program.kind not in {"STRING", "DYN"}:
        raise ConditionInvalid(
            f"the expression must give a text, and this is {program.kind}; make it one with "
            f"string(…)"
        )
    return Expression(language, program)


def _is_json(value: Any) -> bool:
    """What CEL knows beside JSON: bytes, times, types, keys that are no texts, infinities."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        match each:
            case None | bool() | int() | str():
                continue
            case float():
                if not isfinite(each):
                    return False
            case list():
                waiting += each
            case dict():
                if not all(isinstance(key, str) for key in each):
                    return False
                waiting += each.values()
            case _:
                return False
    return True
