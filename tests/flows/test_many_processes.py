"""Two hundred duplicates on servers with two processes each: one execution over all of them."""

import os
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).parents[2]
CROWD = 200
MAKE = "tests.fixtures.http.worker:make_app"
SERVERS = {
    "asgi": ["uvicorn", "--factory", MAKE, "--workers", "2", "--log-level", "error", "--fd"],
    "wsgi": ["gunicorn", f"{MAKE}()", "-w", "2", "-k", "gthread", "--threads", "40", "-b"],
}


@contextmanager
def serving(kind: str, environment: dict[str, str]) -> Iterator[str]:
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
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            process.terminate()
            process.wait(30)


def rush(url: str, key: str) -> list[httpx.Response]:
    barrier = threading.Barrier(CROWD)
    headers = {"Idempotency-Key": key, "X-Case": key}
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)

    with httpx.Client(timeout=60, limits=limits) as client, ThreadPoolExecutor(CROWD) as pool:

        def one(_: int) -> httpx.Response:
            barrier.wait(30)
            return client.post(f"{url}/attach/order", headers=headers, json={"amount": 1})

        return list(pool.map(one, range(CROWD)))


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
    with serving(kind, environment) as url:
        wait_for_two_processes(url, runs)
        answers = rush(url, "crowd")

    lines = runs.read_text().split("\n")
    assert len([line for line in lines if line.startswith("crowd ")]) == 1
    assert Counter(answer.status_code for answer in answers) == {201: CROWD}
    assert sum("idempotent-replayed" not in answer.headers for answer in answers) == 1
    assert {answer.content for answer in answers} == {answers[0].content}


def wait_for_two_processes(url: str, runs: Path) -> None:
    """Send requests of their own until both processes have answered one."""
    deadline = time.monotonic() + 60
    with httpx.Client(timeout=60, limits=httpx.Limits(max_keepalive_connections=0)) as client:
        pool = ThreadPoolExecutor(8)
        seen: set[str] = set()
        while len(seen) < 2 and time.monotonic() < deadline:
            list(pool.map(lambda _: client.post(f"{url}/plain/order"), range(8)))
            seen = {line.split()[-1] for line in runs.read_text().splitlines()}
        pool.shutdown()
    assert len(seen) == 2
