"""The quickstart, done as its reader does it: every `curl -i` line answers what the page shows."""

import json
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from tests.fixtures.pages import DOCS, code_of
from tests.fixtures.ports import unused_port

PAGE = "quickstart.md"


class Line(NamedTuple):
    """One `curl` line of the page, and what the page shows below it."""

    key: str
    body: str
    shown: str

    @property
    def answer(self) -> tuple[str, list[str], Any]:
        """Status line, names of headers, and the body with its fields."""
        head, _, body = self.shown.partition("\n\n")
        first, *lines = head.splitlines()
        return first, [line.partition(":")[0] for line in lines], json.loads(body)


def lines() -> list[Line]:
    found = re.findall(r"(?m)^\$ (curl .*)\n((?:(?!\$|```).*\n)*)", (DOCS / PAGE).read_text())
    return [_line_of(shlex.split(command), shown) for command, shown in found]


def _line_of(words: list[str], shown: str) -> Line:
    key = next(word for word in words if word.startswith("Idempotency-Key"))
    return Line(key.partition(": ")[2], words[words.index("-d") + 1], shown.strip())


class Shop:
    """The page's app under uvicorn; `wait_for` reads on until it has printed something."""

    def __init__(self, folder: Path) -> None:
        port = str(unused_port())
        self._process = subprocess.Popen(
            [sys.executable, "-u", "-m", "uvicorn", "shop:app", "--port", port],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._url = f"http://127.0.0.1:{port}/orders"
        self.wait_for("Uvicorn running")

    def send(self, line: Line) -> httpx.Response:
        headers = {"Idempotency-Key": line.key, "Content-Type": "application/json"}
        return httpx.post(self._url, headers=headers, content=line.body, timeout=60)

    def wait_for(self, words: str) -> None:
        assert self._process.stdout is not None
        # A server that stays silent must not hang the run.
        guard = threading.Timer(60, self._process.kill)
        guard.start()
        said = next((line for line in self._process.stdout if words in line), None)
        guard.cancel()
        assert said is not None, f"it ended without saying {words!r}"

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(code_of(PAGE))
    return tmp_path


@pytest.fixture
def ends() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def assert_as_shown(response: httpx.Response, line: Line) -> None:
    status, headers, body = line.answer
    assert f"HTTP/1.1 {response.status_code} {response.reason_phrase}" == status
    assert list(response.headers) == headers
    assert list(response.json()) == list(body)
    if response.status_code >= 400:
        assert response.json()["detail"] == body["detail"]


def test_every_answer_is_the_one_shown(folder: Path, ends: ExitStack) -> None:
    first, replay, reused, slow, too_soon, cut_off, retry = lines()
    shop = Shop(folder)
    ends.callback(shop.kill)
    threads = ends.enter_context(ThreadPoolExecutor())
    answers = [shop.send(line) for line in (first, replay, reused)]
    for answer, line in zip(answers, (first, replay, reused), strict=True):
        assert_as_shown(answer, line)
    assert answers[0].content == answers[1].content

    running = threads.submit(shop.send, slow)
    shop.wait_for("ordering cake")
    assert_as_shown(shop.send(too_soon), too_soon)
    lost = threads.submit(shop.send, cut_off)
    shop.wait_for("ordering pie")
    shop.kill()
    for request in (running, lost):
        with pytest.raises(httpx.RemoteProtocolError):
            request.result()

    # The retry need not take its ten seconds.
    quick = code_of(PAGE).replace("asyncio.sleep(order.seconds)", "asyncio.sleep(0)")
    (folder / "shop.py").write_text(quick)
    again = Shop(folder)
    ends.callback(again.kill)
    assert_as_shown(again.send(retry), retry)
