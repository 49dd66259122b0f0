"""`oncekey serve` on Restate: either side may be stopped, killed or emptied, and it goes on."""

import json
import os
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from tests.fixtures.command import Run
from tests.fixtures.ports import lasting_port
from tests.fixtures.restate_server import RestateServer, new_space
from tests.fixtures.served import Serve, Served

pytestmark = [pytest.mark.restate, pytest.mark.timeout(300)]

APP = """
import os

async def app(scope, receive, send):
    assert scope["type"] == "http"
    while (await receive()).get("more_body"):
        pass
    if scope["path"] == "/slow":
        open("started", "w").close()
        open("go", "r").close()
    with open("runs", "a") as runs:
        runs.write(scope["path"] + "\\n")
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str(os.getpid()).encode()})
"""
FLOWS = """
import asyncio
from oncekey import App, Context

flows = App()

def slowly() -> int:
    with open("runs", "a") as runs:
        runs.write("step\\n")
    open("started", "w").close()
    open("go", "r").close()
    return 41

@flows.workflow
async def slow(ctx: Context) -> int:
    found = await ctx.run("step", asyncio.to_thread, slowly)
    await ctx.promise("signal", key="go-on")
    return found + 1
"""

Start = Callable[..., Served]


@pytest.fixture
def url(bare_restate: RestateServer) -> str:
    """A ledger of its own, and an address of its own for who serves it."""
    return bare_restate.url(endpoint=f"http://127.0.0.1:{lasting_port()}")


@pytest.fixture
def start(serve: Serve, tmp_path: Path, url: str) -> Start:
    """The app, served on Restate."""
    (tmp_path / "shop.py").write_text(APP)
    for pipe in ("started", "go"):
        os.mkfifo(tmp_path / pipe)

    def started(*words: str, store: str = url, **environ: str) -> Served:
        return serve("--app", "shop:app", *words, ONCEKEY_STORE__URL=store, **environ)

    return started


def post(served: Served, key: str, path: str = "/") -> httpx.Response:
    headers = {"Idempotency-Key": key, "Connection": "close"}
    return httpx.post(f"{served.url}{path}", content=b"1", headers=headers, timeout=60)


def post_until_done(served: Served, key: str) -> httpx.Response:
    """As a careful client does: again, until it is neither away nor in progress."""
    while (answer := post(served, key)).status_code in {409, 503}:
        continue
    return answer


def runs(folder: Path) -> list[str]:
    return (folder / "runs").read_text().splitlines()


def test_it_stops_in_good_order_with_work_under_way(start: Start, tmp_path: Path) -> None:
    served = start()
    with ThreadPoolExecutor(2) as threads:
        running = threads.submit(post, served, "slow", "/slow")
        (tmp_path / "started").open().close()
        stopped = threads.submit(served.stop)
        (tmp_path / "go").open("w").close()
        assert stopped.result() == (0, "")
        assert running.result().status_code == 200
    again = post(start(), "slow", "/slow")
    assert again.headers["idempotent-replayed"] == "true"
    assert runs(tmp_path) == ["/slow"]


def test_a_step_under_way_is_finished_first(
    start: Start, oncekey: Run, url: str, tmp_path: Path
) -> None:
    (tmp_path / "flows.py").write_text(FLOWS)
    flows = {"ONCEKEY_APP__WORKFLOWS": "flows:flows"}
    served = start(**flows)
    assert oncekey("workflows", "start", "slow", "--url", url).returncode == 0
    (tmp_path / "started").open().close()
    with ThreadPoolExecutor(1) as threads:
        stopped = threads.submit(served.stop)
        (tmp_path / "go").open("w").close()
        assert stopped.result() == (0, "")

    start(**flows)
    settled = oncekey("promises", "resolve", "key:go-on", "--value", "1", "--park", "--url", url)
    assert settled.returncode == 0, settled.stderr
    listed = ("workflows", "list", "--json", "--url", url)
    while (found := json.loads(oncekey(*listed).stdout)[0])["status"] != "succeeded":
        continue
    assert found["result"] == 42
    assert runs(tmp_path) == ["step"]


def test_it_stops_though_restate_is_away(start: Start, bare_restate: RestateServer) -> None:
    served = start(ONCEKEY_SERVER__GRACE="5s")
    assert post(served, "a").status_code == 200
    bare_restate.kill()
    code, _ = served.stop()
    assert code == 0


def test_after_a_kill_the_next_one_goes_on(start: Start, tmp_path: Path) -> None:
    first = start(ONCEKEY_STORE__LEASE="2s")
    done = post(first, "done")
    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(post, first, "slow", "/slow")
        (tmp_path / "started").open().close()
        first.kill()
        with pytest.raises(httpx.TransportError):
            running.result()
    second = start(ONCEKEY_STORE__LEASE="2s")
    again = post(second, "done")
    assert (again.text, again.headers["idempotent-replayed"]) == (done.text, "true")
    assert post_until_done(second, "slow").status_code == 200
    assert runs(tmp_path) == ["/", "/"]


def test_restate_may_die_and_come_back(start: Start, bare_restate: RestateServer) -> None:
    served = start()
    done = post(served, "done")
    bare_restate.kill()
    away = post(served, "other")
    assert (away.status_code, away.headers["retry-after"]) == (503, "1")
    assert away.json()["type"].endswith("/ledger-unavailable")
    bare_restate.start()
    assert post_until_done(served, "other").status_code == 200
    assert post(served, "done").text == done.text
    code, told = served.stop()
    assert code == 0
    assert "Traceback" not in told


def test_a_restate_that_lost_everything_is_served_again(
    start: Start, bare_restate: RestateServer, oncekey: Run, url: str
) -> None:
    served = start()
    assert post(served, "a").status_code == 200
    bare_restate.lose_everything()
    assert post_until_done(served, "b").status_code == 200
    # Everything it serves, for those who only ask as well.
    listed = oncekey("keys", "list", "--json", "--url", url)
    assert [each["key"] for each in json.loads(listed.stdout)] == ["b"]


def test_another_process_takes_over_what_all_share(
    start: Start, bare_restate: RestateServer
) -> None:
    space = new_space()
    stores = [
        bare_restate.url(space=space, endpoint=f"http://127.0.0.1:{lasting_port()}")
        for _ in range(2)
    ]
    first = start(store=stores[0])
    second = start(store=stores[1])
    assert "OnceKey's objects are served here" in first.banner
    at = stores[0].partition("endpoint=")[2].partition("&")[0]
    assert f"OnceKey's objects are served at {at}" in second.banner
    done = post(first, "done")
    first.kill()
    assert post_until_done(second, "new").status_code == 200
    assert post(second, "done").text == done.text


def test_it_waits_for_a_restate_that_starts_later(
    start: Start, bare_restate: RestateServer
) -> None:
    bare_restate.kill()
    with ThreadPoolExecutor(1) as threads:
        starting = threads.submit(start, ONCEKEY_RESTATE__STARTUP_TIMEOUT="2m")
        bare_restate.start()
        served = starting.result()
    assert post(served, "a").status_code == 200


def test_it_does_not_wait_for_ever(
    oncekey: Run, bare_restate: RestateServer, url: str, tmp_path: Path
) -> None:
    (tmp_path / "shop.py").write_text(APP)
    bare_restate.kill()
    done = oncekey(
        "serve",
        *("--app", "shop:app", "--url", url),
        ONCEKEY_RESTATE__STARTUP_TIMEOUT="1s",
    )
    bare_restate.start()
    assert (done.returncode, done.stdout) == (1, "")
    away = (
        f"Restate's ingress {bare_restate.ingress} is not reachable: Connection refused; "
        "start Restate, or name its ingress in the store url"
    )
    assert done.stderr.splitlines() == [
        f"Waiting for Restate, up to 1 s: {away}",
        f"error: {away}; gave up after 1 s, which restate.startup_timeout says",
    ]


def test_workers_share_one_address(start: Start, tmp_path: Path) -> None:
    served = start("--workers", "2")
    pids = set[str]()
    while len(pids) < 2:
        pids.add(post(served, os.urandom(8).hex()).text)
    os.kill(int(pids.pop()), signal.SIGKILL)
    for number in range(10):
        assert post_until_done(served, f"k{number}").status_code == 200
    assert served.stop()[0] == 0


@pytest.mark.parametrize("workers", ["1", "2"])
def test_the_configuration_is_read_again(
    start: Start, tmp_path: Path, bare_restate: RestateServer, workers: str
) -> None:
    config = tmp_path / "oncekey.toml"
    config.write_text("[retention]\nnightly = '30d'\n")
    served = start("--workers", workers)
    assert kept_by(bare_restate) == "30d"
    config.write_text(
        "[retention]\nnightly = '60d'\n[[routes]]\npath = '/'\npolicy = 'REQUIRED_A'\n"
    )
    served.signal(signal.SIGHUP)
    assert served.hear() == "The configuration was read again."
    while httpx.post(served.url, content=b"1", timeout=60).status_code != 400:
        continue
    assert post(served, "a").status_code == 200
    # Each worker says so when it has read it.
    while kept_by(bare_restate) != "60d":
        continue


def kept_by(restate: RestateServer) -> str:
    """How long Restate answers repeats of a forwarded request by itself."""
    told = httpx.get(f"{restate.admin}/services/oncekey.Request").json()
    kept: str = told["idempotency_retention"]
    return kept
