"""`oncekey serve` with workflows: offered over HTTP and gRPC, shared, stopped and taken over."""

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.fixtures.command import Run
from tests.fixtures.served import Serve, Served

FLOWS = """
import asyncio
import os
from pathlib import Path

from oncekey import App, Context

flows = App()

def note(text):
    with open("notes", "a") as notes:
        notes.write(f"{text}\\n")

@flows.workflow
async def count(ctx: Context, number: int) -> int:
    await ctx.run("note", note, f"{number}")
    await ctx.sleep(0.01)
    return number

@flows.workflow
async def wait(ctx: Context) -> str:
    await ctx.run("note", note, "began")
    return await ctx.promise("go", key="go")

async def slow(number):
    note(f"slow in {os.getpid()}")
    with open("started", "w"):
        pass
    while not Path("go-on").exists():
        await asyncio.sleep(0.01)
    return number

@flows.workflow
async def careful(ctx: Context) -> int:
    first = await ctx.run("slow", slow, 1)
    await ctx.run("note", note, f"after {first}")
    return first

@flows.workflow
async def tick(ctx: Context, given: str = "") -> str:
    await ctx.run("note", note, f"tick {given}")
    return given
"""

APP = """
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route

from flows import count, flows

async def order(request):
    handle = await flows.start(count, 7)
    return JSONResponse({"id": handle.id, "result": await handle.result(timeout=30)})

app = Starlette(routes=[Route("/api/v1/orders", order, methods=["POST"])])
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "flows.py").write_text(FLOWS)
    (tmp_path / "shop.py").write_text(APP)
    return tmp_path


@pytest.fixture
def started(folder: Path) -> Path:
    """A pipe: reading it waits until a step has opened it."""
    os.mkfifo(folder / "started")
    return folder / "started"


class Caller(httpx.Client):
    def __init__(self, served: Served, secret: str) -> None:
        url = f"{served.url}/api/tenants/default/"
        super().__init__(base_url=url, headers={"X-API-Key": secret}, timeout=60)

    def start(self, name: str, given: Any = None, key: str | None = None) -> Any:
        headers = {} if key is None else {"Idempotency-Key": key}
        path = f"workflows/{name}/start"
        answer = self.post(path, json={"input": given}, headers=headers)
        assert answer.is_success, answer.text
        return answer.json()

    def end_of(self, execution_id: str) -> Any:
        return self.get(f"workflows/{execution_id}?wait=60s").json()


@pytest.fixture
def secret(folder: Path, oncekey: Run) -> str:
    return made_key(oncekey, f"sqlite:///{folder}/oncekey.db")


def made_key(oncekey: Run, url: str) -> str:
    assert oncekey("migrate", "--url", url).returncode == 0
    made = oncekey("apikeys", "create", "--json", "--url", url)
    secret: str = json.loads(made.stdout)["secret"]
    return secret


def notes(folder: Path) -> list[str]:
    return (folder / "notes").read_text().splitlines()


def test_workflows_alone(serve: Serve, folder: Path, secret: str) -> None:
    served = serve("--app", "flows:flows")
    with Caller(served, secret) as caller:
        ended = caller.end_of(caller.start("count", 3)["id"])
    assert (ended["status"], ended["result"]) == ("succeeded", 3)
    assert httpx.get(f"{served.url}/healthz").json() == {"status": "ok"}
    assert httpx.get(f"{served.url}/readyz").json() == {"status": "ok"}
    assert httpx.get(f"{served.url}/openapi.json").json()["openapi"] == "3.1.0"
    nowhere = httpx.get(f"{served.url}/orders")
    assert (nowhere.status_code, nowhere.json()["title"]) == (404, "There is nothing here")
    assert served.stop() == (0, "")


def test_without_a_key_every_call_is_refused(serve: Serve, folder: Path) -> None:
    served = serve("--app", "flows:flows")
    assert "Its callers need a key: oncekey apikeys create" in served.banner
    path = f"{served.url}/api/tenants/default/workflows/count/start"
    for headers in ({}, {"X-API-Key": "ok_" + "a" * 43}, {"Authorization": "Bearer x"}):
        refused = httpx.post(path, json={"input": 1}, headers=headers)
        assert refused.status_code == 401


def test_an_app_and_workflows_together(serve: Serve, folder: Path, secret: str) -> None:
    served = serve("--app", "shop:app", ONCEKEY_APP__WORKFLOWS="flows:flows")
    headers = {"Idempotency-Key": "k"}
    first = httpx.post(f"{served.url}/api/v1/orders", headers=headers, timeout=60)
    again = httpx.post(f"{served.url}/api/v1/orders", headers=headers, timeout=60)
    assert first.json()["result"] == 7
    assert again.content == first.content
    assert again.headers["idempotent-replayed"] == "true"
    with Caller(served, secret) as caller:
        assert caller.end_of(first.json()["id"])["result"] == 7
    assert served.stop() == (0, "")
    assert notes(folder) == ["7"]


def test_the_api_can_be_switched_off_and_on(serve: Serve, folder: Path) -> None:
    without = serve("--app", "flows:flows", ONCEKEY_SERVER__API="false")
    path = "/api/tenants/default/workflows"
    assert httpx.get(f"{without.url}{path}").status_code == 404
    assert httpx.get(f"{without.url}/healthz").status_code == 404
    alone = serve(ONCEKEY_SERVER__API="true")
    assert alone.banner.startswith("OnceKey serves the API on http://127.0.0.1:")
    assert httpx.get(f"{alone.url}{path}").status_code == 401


def test_what_one_process_starts_another_runs(serve: Serve, folder: Path, secret: str) -> None:
    serve("--app", "flows:flows", ONCEKEY_SERVER__API="false")
    with Caller(serve(ONCEKEY_SERVER__API="true"), secret) as caller:
        assert caller.end_of(caller.start("count", 5)["id"])["result"] == 5


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def url(request: pytest.FixtureRequest, folder: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{folder}/oncekey.db"
    url: str = request.getfixturevalue("postgres_url")
    return url


def test_several_workers_share_the_work(serve: Serve, folder: Path, oncekey: Run, url: str) -> None:
    served = serve("--app", "flows:flows", "--workers", "2", ONCEKEY_STORE__URL=url)
    secret = made_key(oncekey, url)

    def run(number: int) -> int:
        with Caller(served, secret) as caller:
            started = caller.start("count", number, key=f"count-{number}")
            assert caller.start("count", number, key=f"count-{number}")["id"] == started["id"]
            result: int = caller.end_of(started["id"])["result"]
            return result

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(run, range(40))) == list(range(40))
    assert sorted(map(int, notes(folder))) == list(range(40))

    words = ["workflows", "start", "count", "--input", "40", "--json", "--url", url]
    id_ = json.loads(oncekey(*words).stdout)["id"]
    shown = oncekey("workflows", "show", id_, "--wait", "30s", "--json", "--url", url)
    assert json.loads(shown.stdout)["result"] == 40
    assert served.stop() == (0, "")


def test_a_step_that_runs_is_given_its_time(
    serve: Serve, folder: Path, started: Path, secret: str
) -> None:
    served = serve("--app", "flows:flows")
    with Caller(served, secret) as caller:
        id_ = caller.start("careful")["id"]
    started.read_text()
    with ThreadPoolExecutor(1) as threads:
        stopping = threads.submit(served.stop)
        # It takes no more connections: from here on it is about to stop.
        while is_open(served):
            continue
        (folder / "go-on").touch()
        assert stopping.result() == (0, "")

    with Caller(serve("--app", "flows:flows"), secret) as caller:
        assert caller.end_of(id_)["result"] == 1
    slow, after = notes(folder)
    assert slow.startswith("slow in ")
    assert after == "after 1"


def is_open(served: Served) -> bool:
    try:
        httpx.get(f"{served.url}/healthz")
    except httpx.HTTPError:
        return False
    return True


def test_a_step_that_outlasts_its_time_is_done_elsewhere(
    serve: Serve, folder: Path, started: Path, secret: str
) -> None:
    served = serve("--app", "flows:flows", ONCEKEY_SERVER__GRACE="100ms")
    with Caller(served, secret) as caller:
        id_ = caller.start("careful")["id"]
    started.read_text()
    assert served.stop()[0] == 0
    (folder / "go-on").touch()
    with ThreadPoolExecutor(1) as threads:
        opened = threads.submit(started.read_text)
        with Caller(serve("--app", "flows:flows"), secret) as caller:
            assert caller.end_of(id_)["result"] == 1
        opened.result()
    one, two, after = notes(folder)
    assert one != two
    assert after == "after 1"


def test_after_a_kill_nothing_is_done_twice(serve: Serve, folder: Path, secret: str) -> None:
    served = serve("--app", "flows:flows")
    with Caller(served, secret) as caller:
        id_ = caller.start("wait")["id"]
        while caller.get(f"workflows/{id_}").json()["status"] != "waiting":
            continue
    served.kill()
    with Caller(serve("--app", "flows:flows"), secret) as caller:
        caller.post("promises/key:go/resolve", json={"value": "gone on"})
        assert caller.end_of(id_)["result"] == "gone on"
    assert notes(folder) == ["began"]


@pytest.mark.parametrize("workers", ["1", "2"])
def test_nobody_is_kept_waiting_by_a_server_that_stops(
    serve: Serve, folder: Path, secret: str, workers: str
) -> None:
    served = serve("--app", "flows:flows", "--workers", workers)
    with Caller(served, secret) as caller, ThreadPoolExecutor(1) as threads:
        id_ = caller.start("wait")["id"]
        while caller.get(f"workflows/{id_}").json()["status"] != "waiting":
            continue
        waiting = threads.submit(caller.end_of, id_)
        with Caller(served, secret) as other:
            # Whatever was sent before this has been read by then.
            other.get("workflows")
        assert served.stop() == (0, "")
        assert waiting.exception() is not None or waiting.result()["status"] == "waiting"


def test_a_demo_key(serve: Serve, folder: Path, oncekey: Run) -> None:
    example = "curl {url}/healthz -H 'X-API-Key: {api_key}'"
    served = serve(
        "--app", "flows:flows", ONCEKEY_AUTH__API_KEYS__DEMO="true", ONCEKEY_APP__EXAMPLES=example
    )  # fmt: skip
    (words,) = served.curls
    assert words[1] == f"{served.url}/healthz"
    secret = words[-1].removeprefix("X-API-Key: ")
    with Caller(served, secret) as caller:
        assert caller.end_of(caller.start("count", 1)["id"])["result"] == 1
    (kept,) = json.loads(oncekey("apikeys", "list", "--json").stdout)
    assert kept["label"] == "made by oncekey serve"
    assert kept["expires_at"][:10] > kept["created_at"][:10]
    assert kept["expires_at"][10:22] == kept["created_at"][10:22]


def test_a_demo_key_is_refused_where_others_can_reach_it(oncekey: Run, folder: Path) -> None:
    words = ["serve", "--app", "flows:flows", "--host", "0.0.0.0"]
    done = oncekey(*words, ONCEKEY_AUTH__API_KEYS__DEMO="true")
    assert (done.returncode, done.stdout) == (1, "")
    assert "a demo key is for one machine" in done.stderr
    assert done.stderr.count("\n") == 1


def test_schedules_start_workflows(serve: Serve, folder: Path, secret: str) -> None:
    served = serve(
        "--app", "flows:flows",
        ONCEKEY_SCHEDULES__0__ID="often", ONCEKEY_SCHEDULES__0__EVERY="1s",
        ONCEKEY_SCHEDULES__0__WORKFLOW="tick", ONCEKEY_SCHEDULES__0__INPUT='"tock"',
    )  # fmt: skip
    with Caller(served, secret) as caller:
        while not (found := caller.get("workflows?name=tick").json()["workflows"]):
            continue
        ended = caller.end_of(found[-1]["id"])
    assert ended["result"] == "tock"
    assert ended["key"].startswith("sched:often:")


def test_grpc(serve: Serve, folder: Path, secret: str) -> None:
    import grpc

    from oncekey.api.grpc.oncekey_pb2 import StartRequest
    from oncekey.api.grpc.oncekey_pb2_grpc import WorkflowsStub

    served = serve("--app", "flows:flows", ONCEKEY_SERVER__GRPC_PORT="0")
    (address,) = [
        line.removeprefix("gRPC: ")
        for line in served.banner.splitlines()
        if line.startswith("gRPC: ")
    ]
    with grpc.insecure_channel(address) as channel:
        request = StartRequest(name="count", input_json=b"4")
        started = WorkflowsStub(channel).Start(request, metadata=[("x-api-key", secret)])
    with Caller(served, secret) as caller:
        assert caller.end_of(started.execution.id)["result"] == 4
    assert served.stop() == (0, "")


@pytest.fixture
def taken_port() -> Iterator[int]:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        yield taken.getsockname()[1]


def test_a_busy_port_of_grpc_is_told(oncekey: Run, folder: Path, taken_port: int) -> None:
    done = oncekey(
        "serve", "--app", "flows:flows", "--port", 0, ONCEKEY_SERVER__GRPC_PORT=str(taken_port)
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert f"cannot listen on 127.0.0.1:{taken_port} for gRPC" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "words, environ, told",
    [
        (
            ["--app", "shop:app"],
            {"ONCEKEY_APP__WORKFLOWS": "shop:app"},
            "app.workflows: shop:app is no oncekey.App; an ASGI app goes to app.target",
        ),
        (
            ["--app", "flows:flows"],
            {"ONCEKEY_APP__WORKFLOWS": "flows:flows"},
            "app.target: flows:flows has workflows, and app.workflows names others; ",
        ),
        (
            ["--app", "flows:flows"],
            {
                "ONCEKEY_SCHEDULES__0__ID": "a",
                "ONCEKEY_SCHEDULES__0__EVERY": "1m",
                "ONCEKEY_SCHEDULES__0__URL": "http://127.0.0.1:9",
                "ONCEKEY_SCHEDULES__0__SECRET_ENV": "NOT_SET",
            },
            "the schedule 'a' is signed with the variable NOT_SET, which is not set",
        ),
    ],
)
def test_mistakes_are_one_line(
    oncekey: Run, folder: Path, words: list[str], environ: dict[str, str], told: str
) -> None:
    done = oncekey("serve", "--port", 0, *words, **environ)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"error: {told}")
    assert done.stderr.count("\n") == 1


def test_a_check_finds_the_workflows(oncekey: Run, folder: Path) -> None:
    done = oncekey("check", "--offline", ONCEKEY_APP__WORKFLOWS="flows:flows")
    assert "workflows: flows:flows, found" in done.stdout
    missing = oncekey("check", "--offline", ONCEKEY_APP__WORKFLOWS="flws:flows")
    assert missing.returncode == 1
    assert missing.stderr.startswith("error: flws:flows: there is no module flws in ")
