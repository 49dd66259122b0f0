"""The reference has every error of callers, and the guide every answer that the client knows."""

import re
from collections.abc import Iterator
from pathlib import Path

from oncekey.client import errors
from oncekey.client.verdict import _STOPS
from tests.docs.test_reference import page, rows
from tests.fixtures.pages import DOCS


def subclasses(kind: type[errors.ClientError]) -> Iterator[type[errors.ClientError]]:
    yield kind
    for each in kind.__subclasses__():
        yield from subclasses(each)


def test_the_errors_of_callers_are_those_of_the_reference() -> None:
    columns = ("exception", "code", "retryable", "what it says")
    assert {tuple(row[:3]) for row in rows(page("errors"), *columns)} == {
        (f"`{each.__name__}`", f"`{each.code}`", "yes" if each.retryable else "no")
        for each in subclasses(errors.ClientError)
    }


def test_their_tree_is_drawn_whole() -> None:
    drawn = re.findall(r"^(?:[├└─ ]*)([A-Z]\w+) ", errors.__doc__ or "", re.MULTILINE)
    assert set(drawn) - {"What"} == {each.__name__ for each in subclasses(errors.ClientError)}


def test_the_guide_tells_what_each_answer_means() -> None:
    told = Path(DOCS / "how-to" / "client.md").read_text()
    for code, stop in _STOPS.items():
        assert stop.error.__name__ in told, code
