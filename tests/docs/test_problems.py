"""What a page of a problem shows is what its callers get."""

import json
import re

import pytest

from oncekey.wire.problem import problem
from tests.fixtures.pages import DOCS

SHOWN = [
    (page.stem, block)
    for page in sorted((DOCS / "problems").glob("*.md"))
    for block in re.findall(r"(?ms)^```json\n(.*?)^```$", page.read_text())
]


@pytest.mark.parametrize("code, block", SHOWN, ids=[code for code, _ in SHOWN])
def test_it_is_what_comes(code: str, block: str) -> None:
    told = json.loads(block)
    answer = problem(code, operation_id=told["operation_id"])
    assert list(told.items()) == list(json.loads(answer.body).items())
    page = (DOCS / "problems" / f"{code}.md").read_text()
    after = dict(answer.headers).get(b"retry-after")
    assert after is None or f"`Retry-After: {after.decode()}`" in page


@pytest.mark.parametrize("code", ["request-in-progress", "outcome-unknown"])
def test_callers_and_operators_are_told_apart(code: str) -> None:
    page = (DOCS / "problems" / f"{code}.md").read_text()
    assert code in dict(SHOWN)
    callers, _, operators = page.partition("### If you run it")
    assert "### If you call this API" in callers
    assert "`oncekey keys" in operators
    assert "`oncekey keys" not in callers
