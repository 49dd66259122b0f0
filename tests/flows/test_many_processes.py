"""Two hundred duplicates on servers with two processes each: one execution over all of them."""

import os
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.fixtures.http.asking import PATIENCE, rush

ROOT = Path(__file__).parents[2]
CROWD = 200
MAKE = "tests.fixtures.http.worker:make_app"
SERVERS = {
    "asgi": ["uvicorn", "--factory", MAKE, "--workers", "2", "--log-level", "error", "--fd"],
    "wsgi": ["gunicorn", f"{MAKE}()", "-w", "2", "-k", "gthread", "--threads", "40", "-b"],
}


@contextmanager
def serving(kind: str, environment: dict[str, str]) -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0), backlog=CROWD * 2) as listener:
        listener.set_inheritable(True)
        number = str(listener.fileno())
        place = number if kind == "asgi" else f"fd://{number}"
        process = subprocess.Popen(
            [sys.executable, "-m", *SERVERS[kind], place],
            cwd=ROOT,
            env={**os.environ, **environment},
            pass_fds=[listener.fileno()],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield listener.getsockname()[1]
        finally:
            process.terminate()
            process.wait(30)


@pytest.mark.parametrize(
    "kind, adapter",
    [("asgi", "asgi"), ("asgi", "fastapi"), ("wsgi", "wsgi"), ("wsgi", "flask")],
)
def test_one_of_two_hundred_duplicates_runs(kind: str, adapter: str, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    environment = {
        "SITE_ADAPTER": adapter,
        "SITE_RUNS": str(runs),
        "SITE_LEDGER": f"sqlite:///{tmp_path}/oncekey.db",
    }
    headers = {"Idempotency-Key": "crowd", "X-Case": "crowd"}
    with serving(kind, environment) as port:
        wait_for_two_processes(port, runs)
        answers = rush(port, "/attach/order", headers, CROWD)

    lines = runs.read_text().split("\n")
    assert len([line for line in lines if line.startswith("crowd ")]) == 1
    assert Counter(answer.status_code for answer in answers) == {201: CROWD}
    assert sum("idempotent-replayed" not in answer.headers for answer in answers) == 1
    assert {answer.content for answer in answers} == {answers[0].content}


def wait_for_two_processes(port: int, runs: Path) -> None:
    """Send requests without a key until both processes have answered one."""
    deadline = time.monotonic() + PATIENCE
    seen: set[str] = set()
    while len(seen) < 2 and time.monotonic() < deadline:
        rush(port, "/plain/order", {}, 8)
        seen = {line.split()[-1] for line in runs.read_text().splitlines()}
    assert len(seen) == 2
