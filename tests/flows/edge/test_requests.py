"""Case A through the edge, with real sockets: first, replay, in flight, mismatch; every policy."""

import base64
import json
import socket
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx
import pytest

from tests.fixtures.behind import DO
from tests.fixtures.edge_site import EdgeSite, MakeSite, token


@pytest.fixture
def site(edge_site: MakeSite) -> EdgeSite:
    return edge_site()


def headers_seen(site: EdgeSite, index: int = -1) -> dict[str, str]:
    return dict(site.behind.seen[index]["headers"])


def test_the_first_request_runs_and_a_retry_gets_its_answer(site: EdgeSite) -> None:
    first = site.post(key="k-1")
    again = site.post(key="k-1")
    assert first.status_code == again.status_code == 201
    assert first.content == again.content
    assert "idempotent-replayed" not in first.headers
    assert again.headers["idempotent-replayed"] == "true"
    assert first.headers["x-operation-id"] == again.headers["x-operation-id"]
    assert again.headers["original-request-id"]
    assert again.headers["idempotency-expires"]
    assert len(site.behind.seen) == 1


def test_the_service_behind_sees_the_namespaced_key_and_who_calls(site: EdgeSite) -> None:
    site.post(key="8e03978e-40d5-43e8-bc93-6894a57f9324")
    seen = headers_seen(site)
    assert seen["idempotency-key"] == "t-acme:shop:user:alice:8e03978e-40d5-43e8-bc93-6894a57f9324"
    assert (seen["x-tenant-id"], seen["x-project-id"]) == ("acme", "shop")
    assert seen["x-subject"] == "user:alice"
    assert seen["x-forwarded-for"] == "127.0.0.1"
    assert base64.b64decode(site.behind.seen[0]["body"]) == b'{"item":"tea"}'


def test_without_a_project_the_tenant_stands_for_it(site: EdgeSite) -> None:
    site.client(token(project=None)).post("/api/v1/orders", headers={"Idempotency-Key": "k"})
    assert headers_seen(site)["idempotency-key"] == "t-acme:_tenant:user:alice:k"
    site.client().post("/api/v1/members", headers={"Idempotency-Key": "k"})
    assert headers_seen(site)["idempotency-key"] == "t-acme:_tenant:user:alice:k"


def test_another_body_under_the_same_key_is_refused(site: EdgeSite) -> None:
    site.post(key="k-1")
    other = site.client().post(
        "/api/v1/orders", json={"item": "coffee"}, headers={"Idempotency-Key": "k-1"}
    )
    assert other.status_code == 422
    assert other.json()["type"].endswith("/idempotency-key-reused")
    assert len(site.behind.seen) == 1


def test_a_second_request_while_the_first_runs_is_refused_or_attached(site: EdgeSite) -> None:
    answers: list[httpx.Response] = []
    path = "/api/v1/orders/7/pay"
    threads = [
        threading.Thread(target=lambda: answers.append(site.post(path, key="p", sleep=0.5)))
        for _ in range(5)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.content for answer in answers}) == 1
    assert len(site.behind.seen) == 1


def test_in_flight_is_a_conflict_unless_the_route_says_otherwise(site: EdgeSite) -> None:
    first = threading.Thread(target=lambda: site.post(key="slow", hold="slow"))
    first.start()
    client = site.client()
    while not site.behind.seen:
        pass
    busy = client.post("/api/v1/orders", json={"item": "tea"}, headers={"Idempotency-Key": "slow"})
    assert busy.status_code == 409
    assert busy.json()["type"].endswith("/request-in-progress")
    assert busy.headers["retry-after"]
    site.behind.let_go("slow")
    first.join()


@pytest.mark.parametrize("path", ["/api/v1/orders", "/api/v1/members"])
def test_required_refuses_a_request_without_a_key(site: EdgeSite, path: str) -> None:
    answer = site.post(path)
    assert answer.status_code == 400
    assert answer.json()["type"].endswith("/idempotency-key-missing")
    assert site.behind.seen == []


def test_accepted_passes_without_a_key_and_protects_with_one(site: EdgeSite) -> None:
    assert [site.post("/api/v1/notes").status_code for _ in range(2)] == [201, 201]
    assert "idempotency-key" not in headers_seen(site)
    assert len({site.post("/api/v1/notes", key="n").content for _ in range(3)}) == 1
    assert len(site.behind.seen) == 3


def test_handlers_of_their_own_token_see_no_key_of_the_clients(site: EdgeSite) -> None:
    for key in ("same", "t-other:shop:user:bob:k", "not a key!"):
        answer = site.client().post("/api/v1/pings", headers={"Idempotency-Key": key})
        assert answer.status_code == 201
        assert "idempotency-key" not in headers_seen(site)
    assert len(site.behind.seen) == 3


def test_prohibited_passes_without_a_key_and_refuses_one(site: EdgeSite) -> None:
    client = site.client()
    assert client.get("/api/v1/orders").status_code == 200
    assert client.head("/api/v1/orders").status_code == 200
    refused = client.get("/api/v1/orders", headers={"Idempotency-Key": "k"})
    assert refused.status_code == 400
    assert refused.json()["type"].endswith("/idempotency-key-prohibited")


def test_a_route_of_providers_takes_nothing_from_clients(site: EdgeSite) -> None:
    answer = site.post("/hooks/in", key="mine")
    assert answer.status_code == 400
    assert answer.json()["type"].endswith("/identifier-missing")
    assert site.behind.seen == []


def test_nobody_is_let_in_without_an_identity(site: EdgeSite) -> None:
    answer = httpx.post(f"{site.url}/api/v1/orders", headers={"Idempotency-Key": "k"})
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    open_to_all = httpx.post(f"{site.url}/open/notes", headers={"Idempotency-Key": "k"})
    assert open_to_all.status_code == 201
    assert headers_seen(site)["idempotency-key"] == "t-default:_tenant:client:anonymous:k"


def test_a_key_that_is_too_long_with_its_namespace_says_how_long_it_may_be(site: EdgeSite) -> None:
    long = site.client(token(subject="user:" + "s" * 390))
    fits = 640 - len("t-acme:shop:user:") - 390 - 1
    assert long.post("/api/v1/orders", headers={"Idempotency-Key": "k" * fits}).status_code == 201
    assert len(headers_seen(site)["idempotency-key"]) == 640
    answer = long.post("/api/v1/orders", headers={"Idempotency-Key": "k" * (fits + 1)})
    assert answer.status_code == 400
    assert str(fits) in answer.json()["detail"]


def test_server_errors_are_released_and_client_errors_are_kept(site: EdgeSite) -> None:
    assert site.post(key="a", status=500).status_code == 500
    assert site.post(key="a", status=500).status_code == 500
    assert len(site.behind.seen) == 2
    assert site.post(key="b", status=404).status_code == 404
    assert site.post(key="b", status=404).headers["idempotent-replayed"] == "true"
    assert len(site.behind.seen) == 3


def test_what_cannot_be_kept_is_streamed_and_never_run_twice(site: EdgeSite) -> None:
    chunks = ["x" * 16384] * 3
    first = site.post(key="large", chunks=chunks, times=50)
    assert first.headers["idempotency-stored"] == "false"
    assert first.text == "".join(chunks * 50)
    again = site.post(key="large", chunks=chunks, times=50)
    assert again.status_code == 409
    assert again.json()["type"].endswith("/outcome-not-kept")
    assert len(site.behind.seen) == 1


def test_events_are_handed_on_as_they_come_and_replayed_whole(site: EdgeSite) -> None:
    do = {
        "chunks": ["data: 1\n\n", "data: 2\n\n"],
        "headers": [["content-type", "text/event-stream"]],
    }
    do["pause"] = 0.05
    line = {"Idempotency-Key": "events", DO: json.dumps(do)}
    with site.client().stream("POST", "/api/v1/events", headers=line) as first:
        assert "".join(first.iter_text()) == "data: 1\n\ndata: 2\n\n"
    again = site.client().post("/api/v1/events", headers=line)
    assert again.text == "data: 1\n\ndata: 2\n\n"
    assert again.headers["idempotent-replayed"] == "true"


def test_large_bodies_go_through_byte_for_byte_with_and_without_a_key(site: EdgeSite) -> None:
    body = bytes(range(256)) * (6 << 12)
    client = site.client()

    def pieces() -> Iterator[bytes]:
        for start in range(0, len(body), 100_000):
            yield body[start : start + 100_000]

    content: bytes | Iterator[bytes]
    for content in (body, pieces()):
        answer = client.post("/api/v1/notes", content=content)
        assert answer.status_code == 201, answer.text
        assert base64.b64decode(site.behind.seen[-1]["body"]) == body
    for content in (body, pieces()):
        client.post("/api/v1/notes", content=content, headers={"Idempotency-Key": "large"})
    assert len(site.behind.seen) == 3
    assert base64.b64decode(site.behind.seen[-1]["body"]) == body


@pytest.mark.parametrize("size, status", [(1000, 201), (1001, 413), (70_000, 413)])
def test_no_body_is_larger_than_its_route_takes(
    edge_site: MakeSite, size: int, status: int
) -> None:
    """Small ones and large ones go different ways."""
    site = edge_site(
        "[[routes]]\npath = '/small'\nmethods = ['POST']\nupstream = 'behind'\n"
        "policy = 'ACCEPTED'\nmax_request_body = 1000\n"
    )
    body = b"x" * size
    keyed = site.client().post("/small", content=body, headers={"Idempotency-Key": "k"})
    assert keyed.status_code == status
    # What is not kept is not bounded either.
    assert site.client().post("/small", content=body).status_code == 201


def test_repeated_lines_and_binary_answers_are_replayed_byte_for_byte(site: EdgeSite) -> None:
    lines = [["x-note", "one"], ["x-note", "two"], ["set-cookie", "a=1"], ["server", "secret/1.0"]]
    first = site.post(key="h", headers=lines, body="\u00e9\u0000")
    again = site.post(key="h", headers=lines, body="\u00e9\u0000")
    assert first.headers.get_list("x-note") == again.headers.get_list("x-note") == ["one", "two"]
    assert "set-cookie" in first.headers
    assert "set-cookie" not in again.headers
    assert "server" not in first.headers
    assert first.content == again.content


def test_connections_are_kept_and_pipelined_requests_answered_in_order(site: EdgeSite) -> None:
    parts = urlsplit(site.url)
    address = (parts.hostname or "", parts.port or 0)
    lines = f"Host: edge\r\nAuthorization: Bearer {token()}\r\n"
    with socket.create_connection(address, 10) as raw:
        for _ in range(2):
            request = f"GET /api/v1/orders HTTP/1.1\r\n{lines}\r\n"
            raw.sendall((request * 3).encode())
            got = b""
            while got.count(b'"path"') < 3:
                piece = raw.recv(65536)
                assert piece, got
                got += piece
            assert got.count(b"HTTP/1.1 200") == 3


def test_no_route_takes_the_paths_of_the_api(edge_site: MakeSite) -> None:
    catch_all = '[[routes]]\npath = "/{rest:path}"\nmethods = ["GET", "POST"]\n'
    site = edge_site(catch_all + 'upstream = "behind"\npolicy = "ACCEPTED"\n')
    client = site.client()
    assert client.get("/anything/else").status_code == 200
    for path in ("/healthz", "/readyz", "/api/admin/keys", "/api/admin/audit"):
        assert client.get(path).status_code in {200, 401}
    assert [each["target"] for each in site.behind.seen] == ["/anything/else"]
