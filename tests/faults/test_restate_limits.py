"""Executions that end every process that runs them, and calls that somebody has paused: what is
given up is told as it is, and goes on when it is resumed."""

import json
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.fixtures.command import SCRIPT, Run, clean_environment
from tests.fixtures.ports import lasting_port
from tests.fixtures.restate_server import RestateServer, new_space
from tests.fixtures.served import Serve, Served

pytestmark = [pytest.mark.restate, pytest.mark.timeout(300)]

FLOWS = """
import os
from pathlib import Path
from oncekey import App, Context

flows = App()

@flows.workflow
async def risky(ctx: Context, number: int) -> int:
    with open("runs", "a") as runs:
        runs.write("x")
    if Path("poison").exists():
        os.kill(os.getpid(), 9)
    return number + 1
"""
QUICK = {"ONCEKEY_STORE__LEASE": "2s", "ONCEKEY_AUTH__API_KEYS__DEMO": "true"}

Begin = Callable[..., Served]


@pytest.fixture
def url(bare_restate: RestateServer) -> str:
    return bare_restate.url(endpoint=f"http://127.0.0.1:{lasting_port()}")


@pytest.fixture
def begin(serve: Serve, tmp_path: Path, url: str) -> Begin:
    (tmp_path / "flows.py").write_text(FLOWS)

    def begun(url: str = url, **environ: str) -> Served:
        return serve("--app", "flows:flows", ONCEKEY_STORE__URL=url, **QUICK, **environ)

    return begun


@pytest.fixture
def shown(oncekey: Run, url: str) -> Callable[..., Any]:
    """The only execution there is, as the command tells it."""

    def show(url: str = url) -> Any:
        return json.loads(oncekey("workflows", "list", "--json", "--url", url).stdout)[0]

    return show


def start(served: Served) -> None:
    secret = served.banner.partition("good for 24 hours: ")[2].split()[0]
    url = f"{served.url}/api/tenants/default/workflows/risky/start"
    headers = {"X-API-Key": secret, "Idempotency-Key": "k"}
    answer = httpx.post(url, json={"input": 1}, headers=headers, timeout=60)
    assert answer.is_success, answer.text


def serve_until_it_dies(folder: Path, url: str, **environ: str) -> int:
    done = subprocess.run(
        [SCRIPT, "serve", "--app", "flows:flows", "--port", "0"],
        cwd=folder,
        env=clean_environment({"ONCEKEY_STORE__URL": url, **QUICK, **environ}),
        capture_output=True,
        check=False,
        timeout=120,
    )
    return done.returncode


@pytest.mark.parametrize("what, status", [("pause", "paused"), ("kill", "failed")])
def test_what_ends_every_process_is_given_up(
    begin: Begin,
    tmp_path: Path,
    url: str,
    oncekey: Run,
    shown: Callable[..., Any],
    what: str,
    status: str,
) -> None:
    limits = {"ONCEKEY_RESTATE__MAX_ATTEMPTS": "2", "ONCEKEY_RESTATE__ON_MAX_ATTEMPTS": what}
    (tmp_path / "poison").touch()
    first = begin(**limits)
    # It may die before it answers.
    with suppress(httpx.TransportError):
        start(first)
    assert list(first.errors()) == []
    assert serve_until_it_dies(tmp_path, url, **limits) == -signal.SIGKILL

    begin(**limits)
    while (found := shown())["status"] in {"ready", "running"}:
        continue
    assert found["status"] == status
    assert found["error"]["message"] == "every process that ran it has ended"
    assert (tmp_path / "runs").read_text() == "xx"

    (tmp_path / "poison").unlink()
    resumed = oncekey("workflows", "resume", found["id"], "--request-key", "again", "--url", url)
    if status == "failed":
        assert "only what is paused can be resumed" in resumed.stderr
        return
    assert resumed.returncode == 0
    while (found := shown())["status"] != "succeeded":
        continue
    assert found["result"] == 2


def test_a_call_that_was_paused_is_resumed_with_its_execution(
    serve: Serve, begin: Begin, bare_restate: RestateServer, oncekey: Run, shown: Callable[..., Any]
) -> None:
    """As an operator does it with Restate's own tools, while nobody runs its code."""
    space = new_space()
    there, here = (
        bare_restate.url(space=space, endpoint=f"http://127.0.0.1:{lasting_port()}")
        for _ in range(2)
    )
    serve(ONCEKEY_SERVER__API="true", ONCEKEY_STORE__URL=there)
    begin(url=here).kill()
    oncekey("workflows", "start", "risky", "--input", "1", "--url", here)
    call = f"target_service_name = 'oncekey.{space}.workflow.risky'"
    while not (rows := queried(bare_restate, f"SELECT id FROM sys_invocation WHERE {call}")):
        continue
    httpx.patch(f"{bare_restate.admin}/invocations/{rows[0]['id']}/pause")
    while status_of(bare_restate, rows[0]["id"]) != "paused":
        continue

    begin(url=here)
    found = shown(here)
    assert found["status"] == "ready"
    resumed = oncekey("workflows", "resume", found["id"], "--request-key", "again", "--url", here)
    assert resumed.returncode == 0, resumed.stderr
    while (found := shown(here))["status"] != "succeeded":
        continue
    assert found["result"] == 2
    # The call that was paused is over as well.
    while status_of(bare_restate, rows[0]["id"]) is not None:
        continue


def status_of(restate: RestateServer, id_: str) -> str | None:
    rows = queried(restate, f"SELECT status FROM sys_invocation WHERE id = '{id_}'")
    return rows[0]["status"] if rows else None


def queried(restate: RestateServer, sql: str) -> Any:
    answer = httpx.post(
        f"{restate.admin}/query", json={"query": sql}, headers={"Accept": "application/json"}
    )
    return answer.json()["rows"]
