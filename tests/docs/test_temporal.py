"""The page on Temporal: its two modules run, and its commands end as it says."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from oncekey.durable.app import App
from oncekey.temporal import Activities
from tests.fixtures.console import Reader, commands_of
from tests.fixtures.pages import DOCS

PAGE = DOCS / "how-to" / "temporal.md"
START, PAY, RESULT = [each.line for each in commands_of(PAGE)[1:]]


@pytest.fixture
def reader(tmp_path: Path, temporal: str) -> Iterator[Reader]:
    """Where the worker of the page runs."""
    modules = re.findall(r"(?ms)^```python\n# (\w+\.py)\n(.*?)^```", PAGE.read_text())
    assert [name for name, _ in modules] == ["workflows.py", "worker.py"]
    for name, code in modules:
        (tmp_path / name).write_text(code.replace("localhost:7233", temporal))
    worker = subprocess.Popen([sys.executable, "-W", "error", "worker.py"], cwd=tmp_path)
    reader = Reader(tmp_path, "", TEMPORAL_ADDRESS=temporal)
    # It makes the ledger when it starts.
    while reader.type("oncekey keys list")[0].code and worker.poll() is None:
        continue
    yield reader
    worker.kill()
    worker.wait()


def test_the_order_is_paid(reader: Reader) -> None:
    # The payment first, and twice: as the page says, that is the same.
    lines = [PAY, START, PAY, RESULT]
    early = [line.replace("42", "7").replace("evt_1", "evt_7") for line in lines]
    *ran, result = reader.type(*early)
    assert [each.code for each in ran] == [0, 0, 0]
    assert "paid: 499" in result.output

    started, paid, result = reader.type(START, PAY, RESULT)
    assert (started.code, paid.code) == (0, 0)
    assert "paid: 499" in result.output
    (listed,) = reader.type("oncekey workflows list --name complete-temporal-activity --json")
    assert listed.output.count('"succeeded"') == 2


def test_the_rest_of_the_page_is_python_too() -> None:
    *_, last = re.findall(r"(?ms)^```python\n(.*?)^```", PAGE.read_text())
    names = {"activities": Activities(App(), lambda: None)}  # type: ignore[arg-type,return-value]
    exec(compile(last, PAGE.name, "exec"), names)
