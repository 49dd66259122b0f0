"""The edge as a server: it drains, it is not held up, and several workers are one."""

import signal
import socket
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests.fixtures.edge_site import EdgeSite, MakeSite, token
from tests.fixtures.served import Serve

KEYED = b"POST /api/v1/orders HTTP/1.1\r\nHost: edge\r\nIdempotency-Key: k\r\n%b"


def connect(site: EdgeSite) -> socket.socket:
    parts = urlsplit(site.url)
    return socket.create_connection((parts.hostname or "", parts.port or 0), 20)


def read_all(raw: socket.socket) -> bytes:
    got = b""
    while piece := raw.recv(65536):
        got += piece
    return got


@pytest.mark.parametrize("key", ["slow", None])
def test_a_request_under_way_is_finished_before_the_end(edge_site: MakeSite, key: str) -> None:
    site = edge_site()
    answers: list[httpx.Response] = []
    running = threading.Thread(
        target=lambda: answers.append(site.post("/api/v1/notes", key=key, sleep=1.0))
    )
    running.start()
    while not site.behind.seen:
        pass
    code, errors = site.served.stop(signal.SIGTERM)
    running.join()
    assert (code, errors) == (0, "")
    assert answers[0].status_code == 201


@pytest.mark.parametrize("path, retried, effects", [("orders", 409, 1), ("again", 201, 2)])
def test_whoever_is_not_waited_for_at_the_end_learns_that_it_is_in_doubt(
    edge_site: MakeSite, serve: Serve, tmp_path: Path, path: str, retried: int, effects: int
) -> None:
    """A stop in good order is no crash: what the route says of a service that broke off holds."""
    site = edge_site("[server]\ngrace = '1s'\n", timeout="60s")
    answers: list[httpx.Response] = []

    def post(**do: int) -> None:
        answers.append(site.post(f"/api/v1/{path}", key="k", **do))

    running = threading.Thread(target=post, kwargs={"sleep": 60})
    running.start()
    while not site.behind.seen:
        pass
    site.served.stop(signal.SIGTERM)
    running.join()
    assert answers[0].status_code == 502
    assert answers[0].json()["type"].endswith("/upstream-uncertain")
    site.url = serve("--config", str(tmp_path / "edge.toml")).url
    post()
    assert answers[1].status_code == retried
    assert len(site.behind.seen) == effects


@pytest.mark.parametrize(
    "beginning",
    [
        b"",
        b"POST /api/v1/orders HT",
        b"POST /api/v1/orders HTTP/1.1\r\nHost: edge\r\nX-Slow: ",
        KEYED + b"Content-Length: 10\r\n\r\n{",
        KEYED + b"Content-Length: 100000\r\n\r\n{",
        b"POST /api/v1/notes HTTP/1.1\r\nHost: edge\r\n%bTransfer-Encoding: chunked\r\n\r\n",
    ],
)
def test_whoever_is_slow_is_sent_away_and_holds_up_nobody(
    edge_site: MakeSite, beginning: bytes
) -> None:
    site = edge_site(body_timeout="500ms")
    if b"%b" in beginning:
        beginning %= f"Authorization: Bearer {token()}\r\n".encode()
    with connect(site) as slow:
        slow.sendall(beginning)
        assert site.post(key="quick").status_code == 201
        answer = read_all(slow)
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"/request-timeout" in answer
    assert len(site.behind.seen) == 1


def test_a_client_that_leaves_does_not_stop_what_it_began(edge_site: MakeSite) -> None:
    site = edge_site()
    request = (
        "POST /api/v1/orders HTTP/1.1\r\nHost: edge\r\nIdempotency-Key: left\r\n"
        f'Authorization: Bearer {token()}\r\nX-Do: {{"sleep": 0.3}}\r\nContent-Length: 0\r\n\r\n'
    )
    with connect(site) as raw:
        raw.sendall(request.encode())
        while not site.behind.seen:
            pass
    found = site.client().get("/api/v1/orders/by-idempotency-key/left")
    assert found.status_code == 201
    assert len(site.behind.seen) == 1


def test_several_workers_are_one_edge(edge_site: MakeSite, tmp_path: Path) -> None:
    site = edge_site(environ={"ONCEKEY_SERVER__WORKERS": "2"})

    def ask(number: int) -> tuple[int, str]:
        client = site.client()
        while True:
            answer = client.post(
                "/api/v1/orders", json={}, headers={"Idempotency-Key": f"k-{number % 20}"}
            )
            if answer.status_code != 409:
                return number % 20, answer.text

    with ThreadPoolExecutor(16) as threads:
        answers = Counter(threads.map(ask, range(100)))
    assert len(answers) == 20
    assert len(site.behind.seen) == 20
