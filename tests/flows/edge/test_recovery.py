"""A lost answer is found again: by key, by operation, by whoever asked and by nobody else."""

import threading

import httpx
import pytest

from tests.fixtures.edge_site import EdgeSite, MakeSite, token

BY_KEY = "/api/v1/orders/by-idempotency-key"


@pytest.fixture
def site(edge_site: MakeSite) -> EdgeSite:
    return edge_site()


def test_an_answer_is_found_by_its_key(site: EdgeSite) -> None:
    first = site.post(key="k-1")
    client = site.client()
    for path in (f"{BY_KEY}/k-1", f"{BY_KEY}/k-1/output"):
        found = client.get(path)
        assert (found.status_code, found.content) == (201, first.content)
        assert found.headers["idempotent-replayed"] == "true"
        assert found.headers["x-operation-id"] == first.headers["x-operation-id"]
    assert client.head(f"{BY_KEY}/k-1").content == b""
    assert len(site.behind.seen) == 1


def test_an_answer_is_found_by_its_operation(site: EdgeSite) -> None:
    first = site.post(key="k-1")
    number = first.headers["x-operation-id"]
    client = site.client()
    for path in (f"/api/v1/operations/{number}", f"/api/v1/operations/{number}/output"):
        found = client.get(path)
        assert (found.status_code, found.content) == (201, first.content)


def test_no_route_takes_the_paths_of_the_edge(edge_site: MakeSite) -> None:
    catch_all = '[[routes]]\npath = "/{rest:path}"\nmethods = ["GET", "POST"]\n'
    site = edge_site(catch_all + 'upstream = "behind"\npolicy = "ACCEPTED"\n')
    first = site.post(key="k-1")
    client, number = site.client(), first.headers["x-operation-id"]
    for path in (f"{BY_KEY}/k-1", f"{BY_KEY}/k-1/output", f"/api/v1/operations/{number}"):
        assert client.get(path).content == first.content
    assert client.post("/api/v1/webhooks/stripe/wh_none", json={}).status_code == 404
    assert client.get("/edge/openapi.json").json()["openapi"]
    assert client.get("/edge/decide/elsewhere").headers["x-idempotency-policy"] == "ACCEPTED"
    assert len(site.behind.seen) == 1
    assert client.get("/elsewhere").status_code == 200


def test_one_in_flight_is_told_at_once_or_waited_for(site: EdgeSite) -> None:
    answers: list[httpx.Response] = []
    running = threading.Thread(target=lambda: answers.append(site.post(key="slow", hold="slow")))
    running.start()
    client = site.client()
    while not site.behind.seen:
        pass
    told = client.get(f"{BY_KEY}/slow/output")
    assert told.status_code == 202
    assert told.json()["state"] == "in_progress"
    assert told.json()["operation_id"] == told.headers["x-operation-id"]
    threading.Timer(0.3, site.behind.let_go, ["slow"]).start()
    waited = client.get(f"{BY_KEY}/slow")
    running.join()
    assert waited.content == answers[0].content
    assert waited.status_code == 201


def test_routes_with_parameters_have_theirs_too(site: EdgeSite) -> None:
    first = site.post("/api/v1/orders/7/pay", key="p")
    found = site.client().get("/api/v1/orders/7/pay/by-idempotency-key/p")
    assert found.content == first.content


def test_nobody_else_finds_it_and_all_of_them_get_the_same_answer(site: EdgeSite) -> None:
    number = site.post(key="k-1").headers["x-operation-id"]
    others = [
        token(subject="user:bob"),
        token(tenant="other"),
        token(project="other"),
        token(project=None),
        token(subject="service:alice"),
        token(subject="user:alice:k-1"),
    ]
    unknown = site.client().get(f"{BY_KEY}/never-used")
    assert unknown.status_code == 404
    bodies = set()
    for bearer in others:
        client = site.client(bearer)
        for path in (
            f"{BY_KEY}/k-1",
            f"{BY_KEY}/k-1/output",
            f"/api/v1/operations/{number}",
            f"/api/v1/operations/{number}/output",
        ):
            answer = client.get(path)
            assert answer.status_code == 404
            assert "x-operation-id" not in answer.headers
            bodies.add(answer.content)
    assert bodies == {unknown.content}
    assert httpx.get(f"{site.url}{BY_KEY}/k-1").status_code == 401


@pytest.mark.parametrize(
    "key",
    [
        "t-acme:shop:user:alice:k-1",
        "t-acme%3Ashop%3Auser%3Aalice%3Ak-1",
        "k-1%2Foutput",
        "k-1%00",
        "k%2D1%0A",
        "..%2Fk-1",
        "%22k-1%22",
        "k-1%20",
        "k" * 300,
    ],
)
def test_what_is_no_key_is_not_found(site: EdgeSite, key: str) -> None:
    site.post(key="k-1")
    assert site.client().get(f"{BY_KEY}/{key}").status_code == 404


@pytest.mark.parametrize("number", ["op_0", "op_" + "0" * 16, "op_ffffffffffffffff", "x", "", "1"])
def test_what_is_no_operation_is_not_found(site: EdgeSite, number: str) -> None:
    assert site.client().get(f"/api/v1/operations/{number}").status_code == 404


def test_whoever_has_no_credentials_finds_an_answer_by_its_key_alone(site: EdgeSite) -> None:
    """All of them are one caller, and numbers can be guessed: a key is what they must know."""
    by_key = "/open/notes/by-idempotency-key/k-1"
    with httpx.Client(base_url=site.url) as nobody:
        first = nobody.post("/open/notes", json={}, headers={"Idempotency-Key": "k-1"})
        number = first.headers["x-operation-id"]
        assert nobody.get(by_key).content == first.content
        assert site.client().get(by_key).status_code == 404
        assert nobody.get(f"/api/v1/operations/{number}").status_code == 401
        assert site.client().get(f"/api/v1/operations/{number}").status_code == 404


def test_whom_a_gateway_names_finds_nothing_of_those_without_credentials(
    edge_site: MakeSite,
) -> None:
    """He sends no credentials either, and is somebody all the same."""
    site = edge_site(gateway='[auth.gateway]\ntrusted = ["127.0.0.1"]')
    with httpx.Client(base_url=site.url) as client:
        first = client.post("/open/notes", json={}, headers={"Idempotency-Key": "k-1"})
        lines = {"X-Tenant-Id": "acme", "X-Subject": "user:alice"}
        number = first.headers["x-operation-id"]
        assert client.get(f"/api/v1/operations/{number}", headers=lines).status_code == 404
        own = client.post("/open/notes", json={}, headers={**lines, "Idempotency-Key": "k-1"})
        number = own.headers["x-operation-id"]
        found = client.get(f"/api/v1/operations/{number}", headers=lines)
        assert found.content == own.content


def test_a_key_belongs_to_its_route(site: EdgeSite) -> None:
    site.post(key="k-1")
    assert site.client().get("/api/v1/notes/by-idempotency-key/k-1").status_code == 404
    assert site.client().get("/api/v1/pings/by-idempotency-key/k-1").status_code == 404
