"""CEL as it is used here: compiled once, bounded in what it costs, and never guessed.

Conditions and expressions are two uses of it; each has a language of its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import msgspec

from oncekey.core.errors import ConditionInvalid, ConfigurationError
from oncekey.durable.condition_cost import NotBoundable, cost_of, tree_of
from oncekey.durable.nesting import MAX_DEPTH, is_deeper, may_be_deeper

MAX_EXPRESSION = 4096
"""Bytes."""
MAX_COST = 2e7
"""About half a second, and so many bytes."""
_SMALLEST = 4096
_MAX_TROUBLE = 500

_COMPLAINT = re.compile(r"ERROR: <input>:(-?\d+):(-?\d+): (.*)")
_UNKNOWN_NAME = re.compile(r"undeclared reference to '([^']*)'")
_ZERO = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")
_LEFT_OUT = re.compile(r"\.\s*(map|filter)\s*\(")

_encode = msgspec.json.Encoder().encode


class ConditionTrouble(Exception):
    """There is no answer; the text says why."""

    def __init__(self, text: str) -> None:
        super().__init__(text[:_MAX_TROUBLE])


@dataclass(frozen=True)
class Language:
    """What can be said: the variables with their types, and how errors call things."""

    noun: str
    article: str
    subject: str
    """What it is put to; `subjects` are several."""
    subjects: str
    variables: tuple[tuple[str, str], ...]
    largest: int
    """Bytes of the largest subject, all variables together as JSON."""

    @property
    def names(self) -> str:
        *others, last = [name for name, _ in self.variables]
        return f"{', '.join(others)} and {last}"

    def compile(self, text: str) -> Program:
        """Raises `ConditionInvalid`, and `ConfigurationError` when the library is missing."""
        self._check_text(text)
        try:
            compiled = environment_of(self.variables).compile(text)
        except (RuntimeError, ValueError) as error:
            raise ConditionInvalid(self._reason_of(str(error), text)) from error
        return Program(self, compiled, *self._bounds_of(compiled))

    def _check_text(self, text: object) -> None:
        if not isinstance(text, str) or not text.strip():
            raise ConditionInvalid(f"{self.article} must be a CEL expression, and this is empty")
        try:
            size = len(text.encode())
        except UnicodeEncodeError:
            raise ConditionInvalid(f"{self.article} must be text that UTF-8 can hold") from None
        if size > MAX_EXPRESSION:
            raise ConditionInvalid(
                f"{self.article} must not be longer than {MAX_EXPRESSION} bytes, and this has "
                f"{size}"
            )

    def _bounds_of(self, compiled: Any) -> tuple[int, float]:
        """The largest subject it may be put to, and what it costs then."""
        tree, size = tree_of(compiled.serialize()), self.largest
        try:
            while (cost := cost_of(tree, size)) > MAX_COST:
                if size // 2 < _SMALLEST:
                    raise ConditionInvalid(f"the {self.noun} could take too long; make it simpler")
                size //= 2
        except NotBoundable as error:
            raise ConditionInvalid(f"the {self.noun} could take too long: {error}") from error
        return size, cost

    def _reason_of(self, complaint: str, text: str) -> str:
        """What the library complains of first, in one line."""
        found = _COMPLAINT.search(complaint)
        default = ("1", "1", complaint.partition("\n")[0])
        line, column, reason = found.groups() if found else default
        place = f" (line {line}, column {column})" if int(line) > 0 else ""
        if unknown := _UNKNOWN_NAME.search(reason):
            reason = f"unknown name '{unknown[1]}'; {self.article} knows {self.names}"
        if left_out := _LEFT_OUT.search(text):
            reason += f"; {left_out[1]}() is not available: use exists, exists_one or all"
        return f"the {self.noun} is not valid CEL{place}: {reason.partition(' expecting ')[0]}"


class Subject:
    """Values that programs are put to, made ready once for any number of them."""

    def __init__(self, language: Language, values: dict[str, Any]) -> None:
        self._language = language
        self._values = values
        self._activation: Any = None
        self._left = MAX_COST

    @cached_property
    def size(self) -> int:
        """Bytes as JSON. Raises `ConditionTrouble` for what nothing can be asked of."""
        return _size_of(self._values, self._language.subject)

    def activation(self, cost: float) -> Any:
        """The values as the library wants them; what evaluations leave behind in it is bounded."""
        if self._activation is None or self._left < cost:
            environment = environment_of(self._language.variables)
            self._activation = environment.Activation(self._values)
            self._left = MAX_COST
        self._left -= cost
        return self._activation


class Program:
    """Compiled."""

    def __init__(self, language: Language, compiled: Any, largest: int, cost: float) -> None:
        self.largest = largest
        """The size of the largest subject it is put to, so that the cost is bounded."""
        self.kind = str(compiled.return_type())
        """Of what it gives, as far as that is known without a subject."""
        self._language = language
        self._compiled = compiled
        self._cost = cost

    def run(self, subject: Subject) -> Any:
        """The answer, a value of the library and never an error. Raises `ConditionTrouble`."""
        noun = self._language.noun
        if subject.size > self.largest:
            raise ConditionTrouble(
                f"the {noun} could take too long: it is put to {self._language.subjects} of at "
                f"most {self.largest} bytes, and this one has {subject.size}; make the {noun} "
                f"simpler"
            )
        try:
            answer = self._compiled.eval(subject.activation(self._cost))
        except (RuntimeError, MemoryError, ValueError, TypeError) as error:
            raise ConditionTrouble(f"the {noun} cannot be evaluated: {error}") from error
        # An error is an answer too, and its value a text.
        if str(answer.type()) == "ERROR":
            raise ConditionTrouble(f"the {noun} cannot be evaluated: {answer.value()}")
        return answer


@lru_cache(maxsize=64)
def environment_of(variables: tuple[tuple[str, str], ...]) -> Any:
    try:
        from cel_expr_python import cel  # type: ignore[import-untyped,unused-ignore]
    except ImportError as error:
        raise ConfigurationError("CEL must be installed: pip install 'oncekey[cel]'") from error
    declared = "".join(f'  - {{ name: "{name}", type: "{kind}" }}\n' for name, kind in variables)
    # `map` and `filter` are left out: the library copies what they have gathered in every round.
    rules = f'variables:\n{declared}stdlib:\n  exclude_macros: ["map", "filter"]\n'
    return cel.NewEnv(config=cel.NewEnvConfigFromYaml(rules))


def _size_of(values: dict[str, Any], what: str) -> int:
    """What the library would get wrong is refused: it breaks on values that are nested too deeply,
    and sees a text only up to its first U+0000."""
    try:
        body = _encode(values)
    except (TypeError, ValueError, RecursionError) as error:
        raise ConditionTrouble(f"the {what} is not JSON: {error}") from error
    if may_be_deeper(body) and is_deeper(values):
        raise ConditionTrouble(f"the {what} is nested more than {MAX_DEPTH} deep")
    if b"\\u0000" in body and _ZERO.search(body):
        raise ConditionTrouble(f"the {what} holds the character U+0000, which CEL cannot compare")
    return len(body)
