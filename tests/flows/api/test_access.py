"""Who may call, what is open to everybody, and what there is beside the endpoints."""

import logging
from typing import Any

import pytest

from oncekey.api.table import ENDPOINTS
from tests.fixtures.api_site import DOCUMENT, ApiSite, Client

pytestmark = pytest.mark.anyio


@pytest.fixture
async def nobody(site: ApiSite) -> Client:
    return Client(site.api, "acme", None)


def path_of(pattern: str) -> str:
    for part in ("{name:path}", "{address:path}", "{name}", "{id}"):
        pattern = pattern.replace(part, "x")
    return pattern.replace("{tenant}", "acme")


async def test_without_a_key_everything_but_health_is_closed(nobody: Client) -> None:
    for each in ENDPOINTS:
        answer = await nobody.request(each.method, path_of(each.path))
        assert (answer.status_code == 401) is not each.is_open, each.path
        if not each.is_open:
            assert answer.headers["www-authenticate"].startswith("Bearer")
            assert answer.json()["type"].endswith("/unauthorized")


async def test_a_key_is_taken_from_either_header(site: ApiSite, acme: Client) -> None:
    nobody = Client(site.api, "acme", None)
    for headers in ({"x-api-key": acme.secret}, {"authorization": f"bearer {acme.secret}"}):
        assert (await nobody.see("workflows", headers=headers)).status_code == 200


async def test_of_unknown_and_expired_and_revoked_keys_nobody_is_told_which(
    site: ApiSite, acme: Client
) -> None:
    key, revoked = await site.callers.create("acme")
    await site.callers.revoke(key.id)
    _, expired = await site.callers.create("acme", expires_in=0.001)
    while await site.callers.identify(expired) is not None:
        continue
    secrets = ["ok_" + "A" * 43, "nonsense", "", str(acme.secret)[:-1], revoked, expired]
    answers = [await Client(site.api, "acme", each).see("workflows") for each in secrets]

    assert {(each.status_code, each.content) for each in answers} == {(401, answers[0].content)}


async def test_a_revoked_key_is_refused_at_once_by_the_process_that_revoked_it(
    site: ApiSite,
) -> None:
    key, secret = await site.callers.create("acme")
    client = Client(site.api, "acme", secret)
    assert (await client.see("workflows")).status_code == 200
    await site.callers.revoke(key.id)
    assert (await client.see("workflows")).status_code == 401


async def test_health_needs_no_key(nobody: Client) -> None:
    for path in ("/healthz", "/readyz"):
        answer = await nobody.get(path)
        assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


async def test_a_store_that_is_gone_is_not_ready_but_the_process_lives(
    site: ApiSite, nobody: Client
) -> None:
    site.ledger.store.close()
    assert (await nobody.get("/readyz")).status_code == 503
    assert (await nobody.get("/healthz")).status_code == 200


async def test_the_document_is_served(nobody: Client) -> None:
    assert (await nobody.get("/openapi.json")).json() == DOCUMENT


@pytest.mark.parametrize(
    "path",
    ["/", "/api", "/api/tenants/acme", "/api/tenants/acme/nothing", "/metrics", "/healthz/x"],
)
async def test_an_unknown_path_is_not_found(acme: Client, path: str) -> None:
    answer = await acme.get(path)
    unknown = await acme.see("workflows/wf_0000000000000001")
    assert (answer.status_code, answer.content) == (404, unknown.content)


@pytest.mark.parametrize(
    "method, path, allowed",
    [
        ("DELETE", "workflows", "GET, HEAD"),
        ("PUT", "promises", "GET, HEAD, POST"),
        ("GET", "workflows/echo/start", "POST"),
        ("POST", "/healthz", "GET, HEAD"),
        ("PATCH", "promises/key:k/resolve", "GET, HEAD, POST"),
    ],
)
async def test_another_method_is_told_which_there_are(
    acme: Client, method: str, path: str, allowed: str
) -> None:
    answer = await acme.request(method, acme.place(path))
    assert answer.status_code == 405
    assert answer.headers["allow"] == allowed
    assert answer.json()["type"].endswith("/method-not-allowed")


async def test_head_is_get_without_a_body(acme: Client) -> None:
    answer = await acme.head("/healthz")
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["content-length"] == "15"


async def test_reads_take_no_idempotency_key(acme: Client) -> None:
    answer = await acme.see("workflows", headers={"idempotency-key": "k"})
    assert answer.status_code == 400
    assert answer.json()["type"].endswith("/idempotency-key-prohibited")


@pytest.mark.parametrize("path", ["workflows/echo/start", "promises", "events"])
async def test_an_idempotency_key_has_one_grammar_everywhere(acme: Client, path: str) -> None:
    headers: Any = [("idempotency-key", "a"), ("idempotency-key", "a")]
    bodies: dict[str, Any] = {"promises": {"name": "p"}, "events": {"key": "k"}}
    for sent in (headers, {"idempotency-key": "not a key"}, {"idempotency-key": "x" * 256}):
        answer = await acme.post(acme.place(path), json=bodies.get(path, {}), headers=sent)
        assert answer.status_code == 400
        assert answer.json()["type"].endswith("/idempotency-key-invalid")


async def test_no_secret_is_ever_logged(site: ApiSite, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "oncekey")
    client = await site.client("acme")
    made = (await client.ask("promises", {"name": "p", "token": True})).json()
    body = {"token": made["token"], "result": 1}
    await client.ask("/api/v1/promises/complete", body)
    await client.ask("/api/v1/promises/complete", body)

    assert str(client.secret) not in caplog.text
    assert made["token"] not in caplog.text


@pytest.mark.parametrize("path", ["workflows?name=a%00b", "tasks?name=%00", "events?key=a%00b"])
async def test_what_no_store_can_hold_is_refused(acme: Client, path: str) -> None:
    answer = await acme.see(path)
    assert answer.status_code == 400
    assert "control character" in answer.json()["detail"]
