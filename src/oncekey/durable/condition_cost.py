"""What CEL can cost at most over a subject of a given size, from its syntax tree.

The evaluator itself bounds only the rounds of loops, not what a round takes: a few hundred bytes of
CEL could double a string until the memory is gone. A unit of cost is about 30 ns, or a byte.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

# So many rounds all loops of one evaluation make together; then the evaluator gives up.
MAX_ROUNDS = 10_000

_COMPARISONS = frozenset("_==_ _!=_ _<_ _<=_ _>_ _>=_ startsWith endsWith".split())
_LOGIC = frozenset("_&&_ _||_ !_ @not_strictly_false __not_strictly_false__".split())
_COUNTS = re.compile(r"\{(\d+)(?:,(\d*))?\}")


class NotBoundable(Exception):
    """There is no bound worth having; the text says what to write instead."""


# -- the tree --------------------------------------------------------------------------------


class Literal(NamedTuple):
    text: bytes


class Name(NamedTuple):
    name: str


class Built(NamedTuple):
    """A list or a map, written out."""

    parts: tuple[Node, ...]


class Call(NamedTuple):
    """A function or an operator; the selection of a field is one named `.`."""

    function: str
    arguments: tuple[Node, ...]


class Loop(NamedTuple):
    """What `all`, `exists` and `exists_one` become."""

    names: tuple[str, ...]
    over: Node
    body: tuple[Node, ...]


Node = Literal | Name | Built | Call | Loop


def tree_of(serialized: bytes) -> Node:
    """The tree of a compiled expression: a `cel.expr.CheckedExpr`, packed in an `Any`."""
    checked = dict(_fields(dict(_fields(serialized))[2]))
    return _node_of(checked[4])


def _node_of(message: bytes) -> Node:
    for number, content in _fields(message):
        match number:
            case 3:
                (constant,) = _fields(content)
                return Literal(constant[1] if isinstance(constant[1], bytes) else b"")
            case 4:
                return Name(_text(content, 1))
            case 5:
                return Call(".", _children(content, 1))
            case 6:
                return Call(_text(content, 2), _children(content, 1, 3))
            case 7:
                return Built(_children(content, 1))
            case 8:
                entries = [body for field, body in _fields(content) if field == 2]
                return Built(tuple(part for body in entries for part in _children(body, 3, 4)))
            case 9:
                names = tuple(_text(content, field) for field in (1, 3, 8))
                (over,) = _children(content, 2)
                return Loop(names, over, _children(content, 4, 5, 6, 7))
            case _:
                continue
    return Literal(b"")


def _children(message: bytes, *numbers: int) -> tuple[Node, ...]:
    return tuple(_node_of(content) for field, content in _fields(message) if field in numbers)


def _text(message: bytes, number: int) -> str:
    return b"".join(content for field, content in _fields(message) if field == number).decode()


def _fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Numbers and contents of a protobuf message: bytes, or a number where it is a varint."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        if tag & 7 == 0:
            value, at = _varint(message, at)
            yield tag >> 3, value
            continue
        length, at = _varint(message, at) if tag & 7 == 2 else ({1: 8, 5: 4}[tag & 7], at)
        yield tag >> 3, message[at : at + length]
        at += length


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


# -- the estimate ----------------------------------------------------------------------------


class _Size(NamedTuple):
    """Of a value, in bytes as JSON: never more than `most`, nor than `mean` on the average.

    A loop meets every element once, so that the elements of a list are together no larger than the
    list: `mean` is what keeps `input.items.exists(i, …)` linear.
    """

    mean: float
    most: float


_SMALL = _Size(1, 1)


def cost_of(tree: Node, subject: int) -> float:
    """The most one evaluation costs when all variables together have `subject` bytes."""
    estimate = _Estimate(_Size(subject, subject))
    estimate.size_of(tree, {}, 1)
    return estimate.cost


class _Estimate:
    def __init__(self, whole: _Size) -> None:
        self.cost = 0.0
        self._whole = whole

    def size_of(self, node: Node, known: Mapping[str, _Size], times: float) -> _Size:
        """How large the value is; what `times` evaluations cost is added up on the way."""
        self.cost += times
        match node:
            case Literal(text):
                return _Size(1 + len(text), 1 + len(text))
            case Name(name):
                # Whatever no loop has made is a variable of the subject.
                return known.get(name, self._whole)
            case Built(parts):
                return _sum(self.size_of(part, known, times) for part in parts)
            case Call(function, arguments):
                sizes = [self.size_of(each, known, times) for each in arguments]
                self.cost += times * _call_cost(function, arguments, sizes)
                return _call_size(function, sizes)
            case Loop():
                return self._loop_size(node, known, times)

    def _loop_size(self, loop: Loop, known: Mapping[str, _Size], times: float) -> _Size:
        over = self.size_of(loop.over, known, times)
        # An element takes two bytes at least: itself and a comma.
        rounds = min(MAX_ROUNDS, times * max(1, over.most / 2))
        # A variable of a loop around this one may be at its largest whenever this one is entered.
        inside = {name: _Size(size.most, size.most) for name, size in known.items()}
        inside |= dict.fromkeys(loop.names, _SMALL)
        inside[loop.names[0]] = _Size(times * over.mean / rounds, over.most)
        for part in loop.body:
            self.size_of(part, inside, rounds)
        return _SMALL


def _sum(sizes: Iterator[_Size]) -> _Size:
    mean = most = 1.0
    for size in sizes:
        mean, most = mean + 1 + size.mean, most + 1 + size.most
    return _Size(mean, most)


def _call_size(function: str, sizes: list[_Size]) -> _Size:
    if function in _COMPARISONS or function in _LOGIC:
        return _SMALL
    return sizes[0] if function in {".", "_[_]"} else _sum(iter(sizes))


def _call_cost(function: str, arguments: tuple[Node, ...], sizes: list[_Size]) -> float:
    if function in _LOGIC or function in {".", "_?_:_"}:
        return 0
    if function in _COMPARISONS:
        return min(size.mean for size in sizes)
    if function == "contains":
        return sizes[0].mean * (1 + sizes[1].most / 500)
    if function == "matches":
        return _regex_cost(arguments[-1], sizes[0].mean)
    whole = sum(size.mean for size in sizes)
    # A list that is copied takes more memory than it has bytes as JSON.
    return whole * 4 if function == "_+_" else whole


def _regex_cost(pattern: Node, over: float) -> float:
    """A pattern is compiled anew each time; every state may be looked at for every byte."""
    if not isinstance(pattern, Literal):
        raise NotBoundable("the pattern of matches() must be written out, as in matches('^a+$')")
    text = pattern.text.decode(errors="replace")
    repeated = 1
    for least, most in _COUNTS.findall(text):
        # The regular expressions of CEL refuse anything repeated more than a thousand times.
        repeated = min(1000, repeated * max(1, int(least), int(most or 0)))
    states = len(text) * repeated
    classes = len(re.findall(r"\\[pP]", text)) * repeated
    return over * (12 + states) + 50 * states + 60_000 * classes
