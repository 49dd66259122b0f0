"""The commands on a ledger on Restate: who only asks serves nothing, and says when nobody does."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.fixtures.command import Run
from tests.fixtures.ports import lasting_port, unused_port
from tests.fixtures.restate_server import RestateServer
from tests.fixtures.served import Serve, Served

pytestmark = [pytest.mark.restate, pytest.mark.timeout(300)]

APP = """
async def app(scope, receive, send):
    assert scope["type"] == "http"
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"done"})
"""
NOBODY = "no process serves OnceKey's objects on this Restate cluster"
LOOKS = [
    ["keys", "list"],
    ["workflows", "list"],
    ["promises", "list"],
    ["events", "list"],
    ["schedules", "list"],
    ["webhooks", "list"],
    ["apikeys", "list"],
    ["retention", "list"],
    ["audit"],
    ["sweep"],
]


@pytest.fixture
def url(bare_restate: RestateServer) -> str:
    return bare_restate.url(endpoint=f"http://127.0.0.1:{lasting_port()}")


@pytest.fixture
def served(serve: Serve, tmp_path: Path, url: str) -> Served:
    (tmp_path / "shop.py").write_text(APP)
    return serve("--app", "shop:app", ONCEKEY_STORE__URL=url)


def with_endpoint(url: str, endpoint: str) -> str:
    start, _, rest = url.partition("endpoint=")
    return f"{start}endpoint={endpoint}&{rest.partition('&')[2]}"


# -- nobody serves -----------------------------------------------------------------------------


@pytest.mark.parametrize("words", LOOKS[:2], ids=" ".join)
def test_who_only_asks_is_told_that_nobody_serves(oncekey: Run, url: str, words: list[str]) -> None:
    done = oncekey(*words, "--url", url)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.lower().startswith(f"error: {NOBODY.lower()}")
    assert done.stderr.endswith("; start `oncekey serve`.\n") or done.stderr.endswith(
        "does not answer; start `oncekey serve`\n"
    )
    assert done.stderr.count("\n") == 1


def test_a_cluster_that_is_away_is_one_line(oncekey: Run) -> None:
    done = oncekey(
        "keys", "list", "--url", f"restate://127.0.0.1:{unused_port()}?admin=127.0.0.1:1"
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: Restate's admin API did not answer within 5 s: ")
    assert done.stderr.endswith("; `oncekey check` tells what is away\n")
    assert done.stderr.count("\n") == 1


def test_there_is_nothing_to_migrate(oncekey: Run, url: str) -> None:
    done = oncekey("migrate", "--url", url)
    assert (done.returncode, done.stdout) == (0, f"{url}: nothing to do, Restate has no tables\n")


# -- somebody serves ---------------------------------------------------------------------------


def test_the_commands_ask_whoever_serves(oncekey: Run, url: str, served: Served) -> None:
    headers = {"Idempotency-Key": "k"}
    operation = httpx.post(served.url, headers=headers).headers["x-operation-id"]
    for words in LOOKS:
        done = oncekey(*words, "--url", url)
        assert (done.returncode, done.stderr) == (0, ""), words
    shown = json.loads(oncekey("keys", "show", operation, "--json", "--url", url).stdout)
    assert (shown["key"], shown["state"]) == ("k", "succeeded")
    assert oncekey("keys", "purge", "k", "--yes", "--url", url).returncode == 0
    assert "idempotent-replayed" not in httpx.post(served.url, headers=headers).headers
    # They were nobody's host: whoever serves still does.
    assert httpx.post(served.url, headers={"Idempotency-Key": "k2"}).status_code == 200


def test_the_banner_tells_of_the_cluster(
    served: Served, url: str, bare_restate: RestateServer
) -> None:
    endpoint = url.partition("endpoint=")[2].partition("&")[0]
    space = url.partition("space=")[2]
    nodes = bare_restate.ingress.removeprefix("http://")
    assert served.banner.splitlines()[1:4] == [
        f"Ledger: {url}",
        f"Restate: {nodes}, space {space}; it calls this process at {endpoint}",
        "OnceKey's objects are served here",
    ]


def test_a_class_that_is_changed_is_told_to_restate(
    oncekey: Run, url: str, served: Served, bare_restate: RestateServer
) -> None:
    def kept() -> str:
        told = httpx.get(f"{bare_restate.admin}/services/oncekey.Request").json()
        answer: str = told["idempotency_retention"]
        return answer

    assert kept() == "7d"
    for duration, longest in (("30d", "30d"), ("1h", "7d"), ("8d", "8d")):
        assert oncekey("retention", "set", "nightly", duration, "--url", url).returncode == 0
        assert kept() == longest
    listed = json.loads(oncekey("retention", "list", "--json", "--url", url).stdout)
    assert {"class": "nightly", "seconds": 691200.0, "from": "store"} in listed


def test_the_limits_of_a_call_are_told_to_restate(
    serve: Serve, tmp_path: Path, url: str, bare_restate: RestateServer
) -> None:
    (tmp_path / "shop.py").write_text(APP)
    limits = "[restate]\nmax_attempts = 7\non_max_attempts = 'kill'\n"
    (tmp_path / "oncekey.toml").write_text(f"{limits}[retention]\nnightly = '21d'\n")
    serve("--app", "shop:app", ONCEKEY_STORE__URL=url)
    told = httpx.get(f"{bare_restate.admin}/services/oncekey.Request").json()
    handlers = {each["name"]: each for each in told["handlers"]}
    forward = handlers["forward"]
    # It keeps its answers as the service says, and is given up as the configuration says.
    assert told["idempotency_retention"] == "21d"
    assert "idempotency_retention" not in forward
    limit = (forward["retry_policy"]["max_attempts"], forward["retry_policy"]["on_max_attempts"])
    assert limit == (7, "Kill")
    # What asks about a key is tried until it is done, and forgotten soon.
    assert handlers["ask"]["idempotency_retention"] == "10m"
    assert told["retry_policy"]["max_attempts"] == 1_000_000_000


# -- what is in the way ------------------------------------------------------------------------


def check(oncekey: Run, url: str) -> tuple[int, list[str], list[str]]:
    done = oncekey("check", "--url", url)
    return done.returncode, done.stdout.splitlines()[1:], done.stderr.splitlines()[1:]


def test_check_tells_of_a_cluster_that_nobody_serves(oncekey: Run, url: str) -> None:
    endpoint = url.partition("endpoint=")[2].partition("&")[0]
    assert check(oncekey, url) == (
        0,
        [
            f"store: {url}, reachable, Restate 1.7.12",
            "store: nobody serves OnceKey's objects now: `oncekey serve` does",
            f"store: Restate can call {endpoint}",
        ],
        [],
    )


def test_check_tells_who_serves(oncekey: Run, url: str, served: Served) -> None:
    endpoint = url.partition("endpoint=")[2].partition("&")[0]
    code, told, warnings = check(oncekey, url)
    assert (code, told[1:], warnings) == (
        0,
        [f"store: OnceKey's objects are served at {endpoint}/objects"],
        [],
    )


@pytest.mark.parametrize(
    "part, path, named", [("ingress", 0, "in"), ("admin API", 1, "with admin= in")]
)
def test_check_tells_which_port_is_not_reachable(
    oncekey: Run, bare_restate: RestateServer, part: str, path: int, named: str
) -> None:
    addresses = [
        each.removeprefix("http://") for each in (bare_restate.ingress, bare_restate.admin)
    ]
    addresses[path] = f"127.0.0.1:{unused_port()}"
    done = oncekey("check", "--url", f"restate://{addresses[0]}?admin={addresses[1]}")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        f"error: Restate's {part} http://{addresses[path]} is not reachable: Connection refused; "
        f"start Restate, or name its {part} {named} the store url"
    )


def test_check_warns_of_one_node_of_several(oncekey: Run, url: str) -> None:
    away = f"127.0.0.1:{unused_port()}"
    code, _, warnings = check(oncekey, url.replace("restate://", f"restate://{away},"))
    assert (code, warnings) == (
        0,
        [f"warning: store: Restate's ingress http://{away} is not reachable: Connection refused"],
    )


def test_check_knows_what_is_not_restate(oncekey: Run, url: str, served: Served) -> None:
    start, _, rest = url.partition("admin=")
    other = served.url.removeprefix("http://")
    done = oncekey("check", "--url", f"{start}admin={other}&{rest.partition('&')[2]}")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        f"error: {served.url} does not answer as Restate's admin API does; is it another port?"
    )


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_check_tells_of_an_endpoint_that_is_taken(oncekey: Run, url: str, taken: int) -> None:
    done = oncekey("check", "--url", with_endpoint(url, f"http://127.0.0.1:{taken}"))
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        f"error: cannot listen on 127.0.0.1:{taken} for Restate: Address already in use; name "
        "another address with endpoint= in the store url, such as endpoint=http://127.0.0.1:0 for "
        "any port that is free; if it is this program that has it, open the store once: "
        "app.open(ledger)"
    )


def test_check_tells_of_an_endpoint_that_restate_does_not_reach(oncekey: Run, url: str) -> None:
    nowhere = f"http://127.0.0.1:{unused_port()}"
    done = oncekey("check", "--url", with_endpoint(url, f"{nowhere}&bind=127.0.0.1:0"))
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        f"error: Restate cannot call this machine at {nowhere}/objects: Connection refused (os "
        "error 111); name an address that it reaches with endpoint= in the store url"
    )


def test_check_does_not_try_an_address_of_another_machine(oncekey: Run, url: str) -> None:
    other = "http://192.0.2.1:9080"
    code, _, warnings = check(oncekey, with_endpoint(url, other))
    assert (code, warnings[1:]) == (
        0,
        [f"warning: store: endpoint {other} is no address of this machine: it was not tried"],
    )
    assert "whoever reaches the endpoint" in warnings[0]


def test_serve_tells_of_an_endpoint_that_restate_does_not_reach(
    oncekey: Run, url: str, tmp_path: Path
) -> None:
    (tmp_path / "shop.py").write_text(APP)
    nowhere = f"http://127.0.0.1:{unused_port()}"
    done = oncekey(
        *("serve", "--app", "shop:app", "--port", "0"),
        *("--url", with_endpoint(url, f"{nowhere}&bind=127.0.0.1:0")),
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"error: Restate cannot call this process at {nowhere}/objects: Connection refused (os "
        "error 111); name an address that it reaches with endpoint= in the store url\n"
    )


@pytest.mark.parametrize("where", ["bind=0.0.0.0:9080", "endpoint=http://192.0.2.1:9080"])
def test_check_warns_of_an_endpoint_that_anybody_may_call(oncekey: Run, where: str) -> None:
    """Also where Restate itself is on this machine."""
    done = oncekey("check", "--offline", "--url", f"restate://127.0.0.1?{where}")
    _, told = done.stderr.splitlines()
    assert told.startswith("warning: store.url: whoever reaches the endpoint can call it; ")
    alone = oncekey("check", "--offline", "--url", "restate://127.0.0.1?bind=127.0.0.1:9080")
    assert len(alone.stderr.splitlines()) == 1


def test_check_warns_of_an_endpoint_that_only_this_machine_reaches(oncekey: Run) -> None:
    done = oncekey("check", "--offline", "--url", "restate://192.0.2.7")
    assert done.returncode == 0
    endpoint, identity = done.stderr.splitlines()[1:]
    assert endpoint.startswith(
        "warning: store.url: Restate at http://192.0.2.7:8080 would look for "
    )
    assert endpoint.endswith("; name an address of this one with endpoint=")
    assert identity.endswith("have Restate sign its calls, and name its public key with identity=")
    key = "publickeyv1_2G8dCQhArfvGpzPw5Vx2ALciR4xCLHfS5YaT93XjNxX9"
    good = f"restate://192.0.2.7?endpoint=http://192.0.2.1:9080&identity={key}"
    assert len(oncekey("check", "--offline", "--url", good).stderr.splitlines()) == 1
