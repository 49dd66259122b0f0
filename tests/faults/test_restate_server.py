"""The Restate that the other tests lean on keeps its word."""

import os
import select
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.fixtures.guarded import program
from tests.fixtures.restate_counter import added, served_counter
from tests.fixtures.restate_server import RestateServer, new_space

pytestmark = pytest.mark.restate


def test_it_answers_at_both_addresses(restate: RestateServer) -> None:
    assert httpx.get(f"{restate.ingress}/restate/health").status_code == 200
    assert httpx.get(f"{restate.admin}/version").json()["version"]


def test_each_test_gets_a_space_of_its_own(restate: RestateServer) -> None:
    assert restate.url() != restate.url()
    assert restate.url(space="shop").endswith("&space=shop")
    assert new_space() != new_space()


def test_what_was_answered_survives_a_kill(restate: RestateServer) -> None:
    name = new_space()
    with served_counter(restate.admin):
        assert added(restate.ingress, name, 2) == 2
        restate.restart()
        assert added(restate.ingress, name, 3) == 5


def test_a_stopped_server_refuses_connections(restate: RestateServer) -> None:
    restate.stop()
    assert not restate.running
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{restate.ingress}/restate/health")


def test_the_server_is_running_again_after_a_test_that_stopped_it(restate: RestateServer) -> None:
    assert restate.running
    assert httpx.get(f"{restate.ingress}/restate/health").status_code == 200


def test_closing_leaves_neither_server_nor_file() -> None:
    server = RestateServer()
    server.start()
    assert server.folder.path.exists()

    server.close()

    assert not server.folder.path.exists()
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{server.ingress}/restate/health")


def test_the_server_does_not_outlive_a_killed_test_run() -> None:
    started = "from tests.fixtures.restate_server import RestateServer as R; s = R(); s.start()"
    said = "print(s.ingress, s.folder.guard.pid, flush=True); input()"
    run = subprocess.Popen(
        [sys.executable, "-c", f"{started}; {said}"],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert run.stdout is not None
    url, guard = run.stdout.readline().split()
    watch = os.pidfd_open(int(guard))

    run.kill()
    run.communicate()

    select.select([watch], [], [])
    os.close(watch)
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/restate/health")


def test_a_missing_program_is_no_reason_to_skip() -> None:
    with pytest.raises(AssertionError, match="run `make test`, which brings it"):
        program("restate-no-such-program")
