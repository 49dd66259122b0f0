"""`oncekey serve`: any ASGI app, one process or several, and mistakes told before it listens."""

import json
import os
import re
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.fixtures.command import Run
from tests.fixtures.served import Serve

COUNTING_APP = """
import os

async def app(scope, receive, send):
    assert scope["type"] == "http"
    while (await receive()).get("more_body"):
        pass
    with open("runs", "a") as runs:
        runs.write("x")
    body = str(os.getpid()).encode()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """An app in the folder that knows nothing of lifespans and counts its runs in a file."""
    (tmp_path / "shop.py").write_text(COUNTING_APP)
    return tmp_path


@pytest.fixture
def started(tmp_path: Path) -> Path:
    """A pipe: reading it waits until an app has opened it."""
    os.mkfifo(tmp_path / "started")
    return tmp_path / "started"


def test_an_app_without_configuration(serve: Serve, shop: Path) -> None:
    served = serve("--app", "shop:app")
    headers = {"Idempotency-Key": "k"}
    first = httpx.post(served.url, content=b"1", headers=headers)
    again = httpx.post(served.url, content=b"1", headers=headers)
    assert first.text == again.text
    assert again.headers["idempotent-replayed"] == "true"
    assert (shop / "runs").read_text() == "x"
    assert served.curls == []
    assert served.stop() == (0, "")


EDGE = """
[upstreams.orders]
url = "http://127.0.0.1:1"

[[routes]]
path = "/reports"
methods = ["POST"]
upstream = "orders"
policy = "HANDLER_INTERNAL_C"

[[routes]]
path = "/orders"
methods = ["POST"]
upstream = "orders"
policy = "REQUIRED_A"
"""


def test_an_edge_tells_what_its_callers_need(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "oncekey.toml").write_text(EDGE)
    served = serve()
    assert "Callers need a key: oncekey apikeys create" in served.banner
    assert served.curls == []

    tried = serve(ONCEKEY_AUTH__API_KEYS__DEMO="true")
    (key,) = re.findall(r"good for 24 hours: (ok_\S+)", tried.banner)
    assert [words[2] for words in tried.curls] == [f"{tried.url}/orders"] * 3
    assert all(f"Authorization: Bearer {key}" in words for words in tried.curls)

    token = {"ONCEKEY_AUTH__JWT__SECRET": "a secret of more than thirty-two bytes"}
    assert "Callers need a key" not in serve(**token).banner


def test_it_tells_where_the_console_is_and_how_to_get_in(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "oncekey.toml").write_text(EDGE)
    served = serve()
    assert f"Console: {served.url}/console, to sign in with a key of an admin" in served.banner

    tried = serve(ONCEKEY_CONSOLE__DEMO="true")
    (secret,) = re.findall(r"/console, to sign in with (oka_\S+), good for 24 hours", tried.banner)
    with httpx.Client(base_url=tried.url) as client:
        client.post("/console/sign-in", data={"secret": secret})
        assert client.get("/console/keys").status_code == 200

    for off in ("ONCEKEY_CONSOLE__ENABLED", "ONCEKEY_ADMIN__ENABLED"):
        without = serve(**{off: "false"})
        assert "Console" not in without.banner
        assert httpx.get(f"{without.url}/console").status_code == 404


def test_who_only_decides_offers_nothing_to_try(serve: Serve, tmp_path: Path) -> None:
    """A gateway carries the bytes: asked directly, nothing is behind these routes."""
    routes = EDGE.partition("[[routes]]")[2].replace('upstream = "orders"\n', "")
    (tmp_path / "oncekey.toml").write_text(f"[[routes]]{routes}")
    served = serve(ONCEKEY_AUTH__API_KEYS__DEMO="true")
    assert "OnceKey serves decisions for gateways on http" in served.banner
    assert served.curls == []
    assert "Callers need a key" in serve().banner


def test_several_workers_share_one_file(serve: Serve, shop: Path, oncekey: Run) -> None:
    served = serve("--app", "shop:app", "--workers", "3")

    def post(key: str) -> httpx.Response:
        headers = {"Idempotency-Key": key, "Connection": "close"}
        return httpx.post(served.url, content=b"1", headers=headers, timeout=60)

    keys, answers = set[str](), list[httpx.Response]()
    with ThreadPoolExecutor(8) as threads:
        # Round after round, until more than one worker has run something.
        while len({each.text for each in answers if each.status_code == 200}) < 2:
            fresh = [f"k{len(keys) + number}" for number in range(10)]
            keys.update(fresh)
            answers += threads.map(post, fresh * 4)
    assert {each.status_code for each in answers} <= {200, 409}
    # Whatever was refused while the first one ran is answered now.
    assert {post(key).status_code for key in keys} == {200}
    assert (shop / "runs").read_text() == "x" * len(keys)
    assert served.stop() == (0, "")
    listed = json.loads(oncekey("keys", "list", "--json", "--limit", "1000").stdout)
    assert {each["state"] for each in listed} == {"succeeded"}


def test_a_busy_port_is_told(oncekey: Run, shop: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = oncekey("serve", "--app", "shop:app", "--port", port)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"error: cannot listen on 127.0.0.1:{port}: Address already in use; "
        "choose another with --port or ONCEKEY_SERVER__PORT, or 0 for any\n"
    )


@pytest.mark.parametrize(
    "words, told",
    [
        ([], "there is nothing to serve; name an app with --app module:app, [app] target or "),
        (["--app", "shop"], "--app: app.target is 'shop', not of the form 'module:name'"),
        (["--app", "shops:app"], "shops:app: there is no module shops in "),
        (["--app", "shop:wrong"], "shop:wrong: the module shop has no 'wrong'"),
        (["--app", "shop:app", "--workers", "2", "--url", "memory://"], "memory:// lives inside"),
        (["--app", "shop:app", "--workers", "0"], "--workers: server.workers must be between"),
        (["--app", "shop:app", "--port", "70000"], "--port: server.port must be between"),
    ],
)
def test_mistakes_are_one_line(oncekey: Run, shop: Path, words: list[str], told: str) -> None:
    done = oncekey("serve", *words)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"error: {told}")
    assert done.stderr.count("\n") == 1


def test_a_mistake_inside_the_app_shows_where_it_is(oncekey: Run, shop: Path) -> None:
    (shop / "broken.py").write_text("import nothing_of_this_name\n")
    done = oncekey("serve", "--app", "broken:app")
    assert done.returncode == 1
    assert "broken.py" in done.stderr
    assert "nothing_of_this_name" in done.stderr


@pytest.mark.parametrize("workers", [1, 2])
def test_an_app_that_does_not_start_is_exit_code_1(oncekey: Run, shop: Path, workers: int) -> None:
    (shop / "unwell.py").write_text(
        "async def app(scope, receive, send):\n"
        "    await receive()\n"
        "    await send({'type': 'lifespan.startup.failed', 'message': 'no database'})\n"
    )
    done = oncekey("serve", "--app", "unwell:app", "--port", 0, "--workers", workers)
    assert done.returncode == 1
    assert "no database" in done.stderr
    assert done.stderr.endswith("error: the app did not start; what it said about it is above\n")


def test_without_the_extra_it_says_what_to_install(oncekey: Run, shop: Path) -> None:
    (shop / "hide").mkdir()
    (shop / "hide" / "uvicorn.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'uvicorn'\", name='uvicorn')"
    )
    done = oncekey("serve", "--app", "shop:app", PYTHONPATH=str(shop / "hide"))
    assert done.returncode == 1
    assert done.stderr == (
        "error: serving needs more: pip install 'oncekey[edge]' (No module named 'uvicorn')\n"
    )


def test_routes_and_recover_come_from_the_file(serve: Serve, shop: Path) -> None:
    (shop / "oncekey.toml").write_text(
        "[app]\ntarget = 'shop:app'\n"
        "[[routes]]\npath = '/required'\npolicy = 'REQUIRED_A'\n"
        "[[routes]]\npath = '/prohibited'\npolicy = 'PROHIBITED'\n"
        "[[routes]]\npath = '/recovered'\nrequired = false\n"
        "takeover = 'recover'\nrecover = 'shop:app'\n"
    )
    served = serve()
    key = {"Idempotency-Key": "k"}
    assert httpx.post(f"{served.url}/required").status_code == 400
    assert httpx.post(f"{served.url}/prohibited", headers=key).status_code == 400
    assert httpx.post(f"{served.url}/recovered", headers=key).status_code == 200
    assert [words[2] for words in served.curls] == [f"{served.url}/required"] * 3


def test_what_a_killed_server_held_is_taken_over_at_once(
    serve: Serve, started: Path, oncekey: Run
) -> None:
    (started.parent / "stuck.py").write_text(
        "import asyncio, os\n"
        "async def app(scope, receive, send):\n"
        "    assert scope['type'] == 'http'\n"
        "    if not os.path.exists('second'):\n"
        "        open('started', 'w').close()\n"
        "        await asyncio.Event().wait()\n"
        "    await send({'type': 'http.response.start', 'status': 200, 'headers': []})\n"
        "    await send({'type': 'http.response.body', 'body': b'done'})\n"
    )
    served = serve("--app", "stuck:app")
    key = {"Idempotency-Key": "k"}
    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(httpx.post, served.url, headers=key, timeout=60)
        started.read_text()
        served.kill()
        assert isinstance(first.exception(), httpx.HTTPError)
    (held,) = json.loads(oncekey("keys", "list", "--json").stdout)
    assert held["holder"] == "lapsed"
    (started.parent / "second").touch()
    assert httpx.post(serve("--app", "stuck:app").url, headers=key).text == "done"


def test_a_request_that_outlasts_the_grace_leaves_no_claim_stuck(
    serve: Serve, started: Path, oncekey: Run
) -> None:
    (started.parent / "endless.py").write_text(
        "import asyncio\n"
        "async def app(scope, receive, send):\n"
        "    assert scope['type'] == 'http'\n"
        "    open('started', 'w').close()\n"
        "    await asyncio.Event().wait()\n"
    )
    served = serve("--app", "endless:app", ONCEKEY_SERVER__GRACE="1s")
    with ThreadPoolExecutor(1) as threads:
        headers = {"Idempotency-Key": "k"}
        first = threads.submit(httpx.post, served.url, headers=headers, timeout=60)
        started.read_text()
        code, _ = served.stop()
        first.exception()
    assert code == 0
    (held,) = json.loads(oncekey("keys", "list", "--json").stdout)
    assert held["holder"] == "lapsed"
