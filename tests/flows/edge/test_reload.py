"""Another configuration under load: upstreams, tokens and providers change between two requests,
and a request that is under way ends with what it began with."""

import http.client
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from tests.fixtures.command import Run
from tests.fixtures.edge_site import SECRET, token
from tests.fixtures.served import Serve, Served

OTHER_SECRET = "another secret of more than thirty-two bytes, for tests only"
CONFIG = """
[server]
grace = "10ms"
[auth.jwt]
secret = "{secret}"
audience = "edge"
[upstreams.behind]
url = "{url}"
timeout = "60s"
[[routes]]
path = "/orders"
methods = ["POST"]
upstream = "behind"
policy = "{policy}"
{more}
"""


class Behind(ThreadingHTTPServer):
    """Answers with its name, and with `gate` shut, when that opens."""

    daemon_threads = True

    def __init__(self, name: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.name = name
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Semaphore(0)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Behind

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.entered.release()
        assert self.server.gate.wait(60)
        body = self.server.name.encode()
        self.send_response(201)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def behind() -> Iterator[Callable[[str], Behind]]:
    with ExitStack() as ends:

        def start(name: str) -> Behind:
            server = ends.enter_context(Behind(name))
            thread = threading.Thread(target=server.serve_forever, args=(0.01,))
            thread.start()
            ends.callback(thread.join)
            ends.callback(server.shutdown)
            ends.callback(server.gate.set)
            return server

        yield start


class Site:
    def __init__(self, folder: Path, serve: Serve, first: Behind, words: tuple[str, ...]) -> None:
        self._file = folder / "oncekey.toml"
        self.write(first)
        self.served: Served = serve(*words)
        self.url = self.served.url

    def write(
        self, to: Behind, *, policy: str = "REQUIRED_A", secret: str = SECRET, more: str = ""
    ) -> None:
        self._file.write_text(CONFIG.format(url=to.url, policy=policy, secret=secret, more=more))

    def reload(self) -> None:
        self.served.signal(signal.SIGHUP)
        assert self.served.hear() == "The configuration was read again."

    def post(self, key: str | None, path: str = "/orders") -> httpx.Response:
        lines = {"Authorization": f"Bearer {token()}"}
        lines |= {} if key is None else {"Idempotency-Key": key}
        return httpx.post(f"{self.url}{path}", content=b"1", headers=lines, timeout=60)


MakeSite = Callable[..., Site]


@pytest.fixture
def site(tmp_path: Path, serve: Serve) -> MakeSite:
    return lambda first, *words: Site(tmp_path, serve, first, words)


def test_the_next_request_goes_to_another_upstream(
    site: MakeSite, behind: Callable[[str], Behind]
) -> None:
    one, two = behind("one"), behind("two")
    edge = site(one)
    connection = http.client.HTTPConnection(edge.url.removeprefix("http://"))

    def post(key: str) -> bytes:
        lines = {"Authorization": f"Bearer {token()}", "Idempotency-Key": key}
        connection.request("POST", "/orders", b"1", lines)
        return connection.getresponse().read()

    assert post("a") == b"one"
    kept = connection.sock
    edge.write(two)
    edge.reload()
    assert post("b") == b"two"
    # What was answered before is still known, whoever would answer now.
    assert post("a") == b"one"
    assert connection.sock is kept
    connection.close()
    assert edge.served.stop() == (0, "")


def test_a_client_that_repeats_itself_sees_a_reload(
    site: MakeSite, behind: Callable[[str], Behind]
) -> None:
    """What repeats on a kept connection is not parsed again, but decided anew."""
    one, two = behind("one"), behind("two")
    edge = site(one)
    host, port = edge.url.removeprefix("http://").split(":")
    lines = f"Host: {host}\r\nAuthorization: Bearer {token()}\r\nContent-Length: 1\r\n"
    with socket.create_connection((host, int(port)), timeout=60) as client:

        def post(key: str) -> tuple[int, bytes]:
            head = f"POST /orders HTTP/1.1\r\n{lines}Idempotency-Key: {key}\r\n\r\n"
            client.sendall(f"{head}1".encode())
            answer = http.client.HTTPResponse(client)
            answer.begin()
            return answer.status, answer.read()

        assert [post("a"), post("b")] == [(201, b"one")] * 2
        edge.write(two)
        edge.reload()
        assert [post("c"), post("d")] == [(201, b"two")] * 2
        edge.write(two, secret=OTHER_SECRET)
        edge.reload()
        assert post("e")[0] == 401


def test_a_request_under_way_gets_the_answer_of_its_own_upstream(
    site: MakeSite, behind: Callable[[str], Behind]
) -> None:
    one, two = behind("one"), behind("two")
    edge = site(one)
    one.gate.clear()
    with ThreadPoolExecutor(1) as threads:
        first = threads.submit(edge.post, "a")
        assert one.entered.acquire(timeout=60)
        edge.write(two, policy="PROHIBITED")
        edge.reload()
        # Longer than any grace: it is over when it is over.
        assert {edge.post(None).text for _ in range(20)} == {"two"}
        one.gate.set()
        answer = first.result()
    assert (answer.status_code, answer.text) == (201, "one")
    assert "x-operation-id" in answer.headers
    edge.write(two)
    edge.reload()
    again = edge.post("a")
    assert (again.text, again.headers["idempotent-replayed"]) == ("one", "true")


def test_a_request_that_has_only_begun_ends_with_what_it_began_with(
    site: MakeSite, behind: Callable[[str], Behind]
) -> None:
    one, two = behind("one"), behind("two")
    edge = site(one)
    host, port = edge.url.removeprefix("http://").split(":")
    head = (
        f"POST /orders HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token()}\r\n"
        "Idempotency-Key: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n"
    )
    with socket.create_connection((host, int(port)), timeout=60) as client:
        client.sendall(head.encode())
        # It has been let in, and waits for the body.
        assert client.recv(100).startswith(b"HTTP/1.1 100 ")
        edge.write(two)
        edge.reload()
        assert edge.post("b").text == "two"
        client.sendall(b"body")
        answer = b""
        while not answer.endswith(b"one"):
            piece = client.recv(4096)
            assert piece, answer
            answer += piece
    assert answer.startswith(b"HTTP/1.1 201 ")


def test_who_may_call_changes(site: MakeSite, behind: Callable[[str], Behind]) -> None:
    one = behind("one")
    edge = site(one)
    assert edge.post("a").status_code == 201
    edge.write(one, secret=OTHER_SECRET)
    edge.reload()
    # Also who was known a moment ago.
    assert edge.post("b").status_code == 401
    edge.write(one)
    edge.reload()
    assert edge.post("b").status_code == 201


def test_a_route_that_is_gone_is_gone(site: MakeSite, behind: Callable[[str], Behind]) -> None:
    one = behind("one")
    edge = site(one)
    more = "[[routes]]\npath = '/stock'\nupstream = 'behind'\npolicy = 'ACCEPTED'\n"
    assert edge.post(None, "/stock").status_code == 404
    edge.write(one, more=more)
    edge.reload()
    assert edge.post(None, "/stock").status_code == 201
    edge.write(one)
    edge.reload()
    assert edge.post(None, "/stock").status_code == 404


def test_a_provider_is_declared(
    site: MakeSite, behind: Callable[[str], Behind], oncekey: Run, tmp_path: Path
) -> None:
    one = behind("one")
    edge = site(one)
    more = (
        "[[providers]]\nname = 'acme'\nidentifier = { header = 'X-Acme-Delivery' }\n"
        "signature = { header = 'X-Acme-Signature' }\n"
        "[[routes]]\npath = '/hooks'\nmethods = ['POST']\nupstream = 'behind'\n"
        "policy = 'REQUIRED_B'\n"
    )
    edge.write(one, more=more)
    key = {"ONCEKEY_WEBHOOKS__KEY_FILE": str(tmp_path / "webhooks.key")}
    words = ["--tenant", "acme", "--project", "shop", "--provider", "acme", "--json"]
    made = oncekey("webhooks", "create", *words, "--then", "forward:/hooks", **key)
    assert made.returncode == 0, made.stderr
    name = httpx.Response(200, text=made.stdout).json()["id"]
    before = oncekey("webhooks", "send", name, "--to", edge.url, **key)
    edge.reload()
    after = oncekey("webhooks", "send", name, "--to", edge.url, **key)
    assert (before.returncode, after.returncode) == (1, 0), f"{before}\n{after}"
    assert "404" in before.stdout + before.stderr
    assert one.entered.acquire(timeout=60)


def test_every_worker_has_the_new_upstream(site: MakeSite, behind: Callable[[str], Behind]) -> None:
    one, two = behind("one"), behind("two")
    edge = site(one, "--workers", "2")
    assert edge.post("a").text == "one"
    edge.write(two)
    edge.reload()
    rounds, number = 0, 0
    while rounds < 30:
        number += 1
        rounds = rounds + 1 if edge.post(f"b{number}").text == "two" else 0
    assert edge.served.stop() == (0, "")
