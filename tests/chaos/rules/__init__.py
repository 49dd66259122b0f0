"""What must hold for every job, whatever was broken meanwhile. A rule is a pure function."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from tests.chaos.story import Story


class Violation(NamedTuple):
    """`told` names the evidence, and nothing else."""

    rule: str
    job: int
    told: str


Rule = Callable[[Story], Iterator[str]]
"""Tells what is wrong with a story. Its own name is the rule's, as `one-answer` is `one_answer`."""
