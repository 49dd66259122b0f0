"""SIGHUP: a configuration that is right takes over between two requests; one that is not is told,
and changes nothing."""

import http.client
import json
import os
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

import httpx
import pytest

from tests.fixtures.command import Run
from tests.fixtures.served import Serve, Served

APP = """
import os

async def app(scope, receive, send):
    assert scope["type"] == "http"
    if scope["path"] == "/slow":
        open("started", "w").close()
        open("go", "r").close()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(os.getpid()).encode()})
"""
ROUTE = "[[routes]]\npath = '/{rest:path}'\npolicy = "
KEY = {"Idempotency-Key": "k"}
AGAIN = "The configuration was read again."
STAYS = "the configuration stays as it was"

Write = Callable[[str], None]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes the configuration anew, for the app `shop:app`."""
    (tmp_path / "shop.py").write_text(APP)
    for pipe in ("started", "go"):
        os.mkfifo(tmp_path / pipe)

    def write_file(text: str) -> None:
        start = "app.target = 'shop:app'\nlog.requests = 'none'\n"
        (tmp_path / "oncekey.toml").write_text(f"{start}{text}\n")

    write_file("")
    return write_file


def reload(served: Served) -> None:
    served.signal(signal.SIGHUP)
    assert served.hear() == AGAIN


def statuses(served: Served, path: str = "/a") -> tuple[int, int]:
    """Of a request without a key, and of one with a key of its own."""
    key = {"Idempotency-Key": os.urandom(8).hex()}
    plain = httpx.post(f"{served.url}{path}", timeout=60)
    keyed = httpx.post(f"{served.url}{path}", headers=key, timeout=60)
    return plain.status_code, keyed.status_code


def test_routes_change_and_connections_stay(serve: Serve, write: Write) -> None:
    served = serve()
    connection = http.client.HTTPConnection(served.url.removeprefix("http://"))

    def post() -> tuple[int, bytes]:
        connection.request("POST", "/a", body=b"1")
        answer = connection.getresponse()
        return answer.status, answer.read()

    status, process = post()
    socket = connection.sock
    assert status == 200
    write(f"{ROUTE}'REQUIRED_A'")
    reload(served)
    assert post()[0] == 400
    write(f"{ROUTE}'ACCEPTED'")
    reload(served)
    assert post() == (200, process)
    assert connection.sock is socket
    connection.close()
    assert served.stop() == (0, "")


def test_every_policy_of_the_app_takes_over(serve: Serve, write: Write) -> None:
    served = serve()
    seen = {}
    for policy in ("REQUIRED_A", "ACCEPTED", "HANDLER_INTERNAL_C", "PROHIBITED"):
        write(f"{ROUTE}'{policy}'")
        reload(served)
        seen[policy] = statuses(served)
    assert seen == {
        "REQUIRED_A": (400, 200),
        "ACCEPTED": (200, 200),
        "HANDLER_INTERNAL_C": (200, 200),
        "PROHIBITED": (200, 400),
    }


def test_a_request_under_way_ends_as_it_began(serve: Serve, write: Write, tmp_path: Path) -> None:
    served = serve()
    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(httpx.post, f"{served.url}/slow", headers=KEY, timeout=60)
        (tmp_path / "started").read_text()
        write(f"{ROUTE}'PROHIBITED'")
        served.signal(signal.SIGHUP)
        (tmp_path / "go").write_text("")
        assert served.hear() == AGAIN
        assert first.result().status_code == 200
        assert "x-operation-id" in first.result().headers
    assert httpx.post(f"{served.url}/slow", headers=KEY).status_code == 400
    write("")
    reload(served)
    again = httpx.post(f"{served.url}/slow", headers=KEY)
    assert again.headers["idempotent-replayed"] == "true"


@pytest.mark.parametrize("workers", [1, 2])
def test_mistakes_are_told_with_their_lines_and_change_nothing(
    serve: Serve, write: Write, workers: int
) -> None:
    write(f"{ROUTE}'PROHIBITED'")
    served = serve("--workers", str(workers))
    write(f"{ROUTE}'REQUIRED'\n[retention]\nnightly = 'soon'")
    served.signal(signal.SIGHUP)
    policy, nightly, _ = served.hear_errors(STAYS)
    assert policy.startswith("oncekey.toml:5: routes[0].policy is 'REQUIRED', not one of ")
    assert nightly.startswith("oncekey.toml:7: retention.nightly must be a duration")
    assert statuses(served) == (200, 400)
    write(f"{ROUTE}'HANDLER_INTERNAL_C'")
    reload(served)
    if workers == 1:
        assert statuses(served) == (200, 200)
    assert served.stop() == (0, "")


@pytest.mark.parametrize("workers", [1, 2])
def test_what_cannot_be_built_changes_nothing(serve: Serve, write: Write, workers: int) -> None:
    served = serve("--workers", str(workers))
    write(f"{ROUTE}'PROHIBITED'\ntakeover = 'recover'\nrecover = 'shop:nowhere'")
    served.signal(signal.SIGHUP)
    told, _ = served.hear_errors(STAYS)
    assert told == "shop:nowhere: the module shop has no 'nowhere'"
    assert statuses(served) == (200, 200)
    assert served.stop() == (0, "")


def test_what_waits_for_a_restart_is_named(serve: Serve, write: Write) -> None:
    served = serve()
    write(
        f"{ROUTE}'PROHIBITED'\n[server]\nhost = '127.0.0.2'\nworkers = 2\ngrace = '1s'\n"
        "[store]\nlease = '9s'\n"
    )
    served.signal(signal.SIGHUP)
    (told,) = served.hear_errors("restart")
    names = "store.lease, server.host, server.workers, server.grace"
    assert told == f"{names}: in force after a restart, and not before"
    assert served.hear() == AGAIN
    assert statuses(served) == (200, 400)


def test_what_the_command_line_says_goes_on_counting(serve: Serve, write: Write) -> None:
    write("[server]\nport = 1\n")
    served = serve()
    reload(served)
    assert served.stop() == (0, "")


def test_retention_changes_for_what_comes(serve: Serve, write: Write, oncekey: Run) -> None:
    served = serve()

    def kept() -> int:
        key = os.urandom(8).hex()
        httpx.post(served.url, headers={"Idempotency-Key": key})
        found = json.loads(oncekey("keys", "show", key, "--json").stdout)
        ended, forgotten = (
            datetime.fromisoformat(found[name]) for name in ("completed_at", "expires_at")
        )
        return round((forgotten - ended).total_seconds())

    assert kept() == 24 * 3600
    write("[retention]\ninteractive = '1h'\nfinancial = '2h'")
    reload(served)
    assert kept() == 3600
    # What was set at run time wins over the file, as it does when the server starts.
    assert oncekey("retention", "set", "interactive", "30m").returncode == 0
    reload(served)
    assert kept() == 1800


def test_no_mistake_takes_the_server_down(serve: Serve, write: Write, tmp_path: Path) -> None:
    served = serve()
    # As some editors and copies leave it for a moment.
    (tmp_path / "oncekey.toml").unlink()
    served.signal(signal.SIGHUP)
    assert served.hear_errors(STAYS)[0].startswith("oncekey.toml does not exist")
    (tmp_path / "oncekey.toml").write_text("")
    served.signal(signal.SIGHUP)
    assert served.hear_errors(STAYS)[0].startswith("there is nothing to serve")
    (tmp_path / "oncekey.toml").write_text("this is not TOML")
    served.signal(signal.SIGHUP)
    assert served.hear_errors(STAYS)[0].startswith("oncekey.toml:1: this is not TOML")
    assert statuses(served) == (200, 200)


def processes_that_pass(served: Served, wanted: int) -> set[str]:
    """The workers that answer a request with a key; asked until as many have."""
    seen: set[str] = set()
    while len(seen) < wanted:
        headers = {"Idempotency-Key": os.urandom(8).hex(), "Connection": "close"}
        answer = httpx.post(served.url, headers=headers, timeout=60)
        if answer.status_code == 200:
            seen.add(answer.text)
    return seen


def test_every_worker_reloads_and_none_is_replaced(serve: Serve, write: Write) -> None:
    served = serve("--workers", "2")
    before = processes_that_pass(served, 2)
    write(f"{ROUTE}'PROHIBITED'")
    reload(served)
    refused = 0
    while refused < 50:
        headers = {"Idempotency-Key": "k", "Connection": "close"}
        refused = (
            refused + 1
            if httpx.post(served.url, headers=headers, timeout=60).status_code == 400
            else 0
        )
    write(f"{ROUTE}'HANDLER_INTERNAL_C'")
    reload(served)
    assert processes_that_pass(served, 2) == before
    assert served.stop() == (0, "")


def test_a_worker_that_takes_the_place_of_a_dead_one_knows_the_new_configuration(
    serve: Serve, write: Write
) -> None:
    write(f"{ROUTE}'PROHIBITED'")
    served = serve("--workers", "2")
    write(f"{ROUTE}'ACCEPTED'")
    reload(served)
    before = processes_that_pass(served, 2)
    os.kill(int(min(before)), signal.SIGKILL)
    write(f"{ROUTE}'PROHIBITED'")
    assert len(processes_that_pass(served, 2) - before) == 1


def test_a_signal_while_it_starts_is_not_lost(serve: Serve, write: Write, tmp_path: Path) -> None:
    write(f"{ROUTE}'PROHIBITED'")
    early = "import os, pathlib, signal\n"
    early += f"pathlib.Path('oncekey.toml').write_text(\"\"\"app.target = 'shop:app'\n{ROUTE}"
    early += '\'ACCEPTED\'""")\nos.kill(os.getpid(), signal.SIGHUP)\n'
    (tmp_path / "shop.py").write_text(early + APP)
    served = serve()
    assert served.hear() == AGAIN
    assert statuses(served) == (200, 200)


@pytest.mark.parametrize("workers", [1, 2])
def test_the_end_of_its_terminal_is_its_own(serve: Serve, write: Write, workers: int) -> None:
    ours, theirs = os.openpty()
    served = serve("--workers", str(workers), stdin=theirs)
    reload(served)
    os.close(theirs)
    os.close(ours)
    assert served.stop(signal.SIGHUP)[0] == 0
