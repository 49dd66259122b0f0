"""A request through Restate: asked of the service behind once for its key, and answered as the
contract of the ledger says, not as Restate would."""

import base64
import json
import secrets
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from tests.fixtures.behind import DO
from tests.fixtures.edge_site import EdgeSite, token
from tests.fixtures.restate_edge import (
    ATTACHING,
    ORDERS,
    Asking,
    RestateEdges,
    ask,
    code_of,
    effects,
    is_replayed,
    joining,
    until,
)

pytestmark = pytest.mark.restate

NOT_KEPT = [401, 403, 408, 409, 425, 429, 500, 502, 503]


@pytest.fixture
def site(restate_site: EdgeSite) -> EdgeSite:
    return restate_site


@pytest.fixture
def key() -> str:
    return secrets.token_hex(8)


# -- finished before -----------------------------------------------------------------------


def test_what_was_answered_is_answered_again_to_the_byte(site: EdgeSite, key: str) -> None:
    do: dict[str, Any] = {
        "status": 202,
        "headers": [["x-a", "1"], ["x-a", "2"], ["x-b", "é"]],
        "body": "\0\xffü",
    }
    first, *replays = [ask(site, key, **do) for _ in range(3)]
    assert first.status_code == 202
    assert not is_replayed(first)
    marks = {"idempotent-replayed", "original-request-id", "idempotency-expires", "date"}
    for replay in replays:
        assert (replay.status_code, replay.content) == (202, first.content)
        assert is_replayed(replay)
        assert replay.headers["original-request-id"] == first.headers["x-operation-id"]
        lines = [pair for pair in replay.headers.raw if pair[0].decode().lower() not in marks]
        kept = [pair for pair in first.headers.raw if pair[0].decode().lower() not in marks]
        assert sorted(lines) == sorted(kept)
    assert len(effects(site, key)) == 1


def test_nothing_is_replayed_as_nothing(site: EdgeSite, key: str) -> None:
    first, again = (ask(site, key, status=204, chunks=[]) for _ in range(2))
    assert (first.status_code, first.content) == (again.status_code, again.content) == (204, b"")
    assert is_replayed(again)


def test_the_id_of_the_first_request_is_told(site: EdgeSite, key: str) -> None:
    lines = {"Idempotency-Key": key, "X-Request-Id": "first-of-all"}
    client = site.client()
    client.post(ORDERS, json={}, headers=lines)
    again = client.post(ORDERS, json={}, headers={**lines, "X-Request-Id": "second"})
    assert again.headers["original-request-id"] == "first-of-all"


def test_another_request_with_the_key_is_refused(site: EdgeSite, key: str) -> None:
    first = ask(site, key)
    for _ in range(2):
        other = ask(site, key, body={"item": "coffee"})
        assert (other.status_code, code_of(other)) == (422, "idempotency-key-reused")
        assert first.json()["id"] not in other.text
        assert "x-operation-id" not in other.headers
    assert ask(site, key).content == first.content
    assert len(effects(site, key)) == 1


@pytest.mark.parametrize("status", [200, 303, 400, 404, 422])
def test_final_answers_are_kept(site: EdgeSite, key: str, status: int) -> None:
    first, again = (ask(site, key, status=status) for _ in range(2))
    assert (first.status_code, first.content) == (again.status_code, again.content)
    assert is_replayed(again)


@pytest.mark.parametrize("status", NOT_KEPT)
def test_others_leave_nothing_behind(site: EdgeSite, key: str, status: int) -> None:
    for _ in range(3):
        answer = ask(site, key, status=status)
        assert (answer.status_code, is_replayed(answer)) == (status, False)
        assert site.client().get(f"{ORDERS}/by-idempotency-key/{key}/output").status_code == 404
    assert not is_replayed(ask(site, key))
    assert is_replayed(ask(site, key))
    assert len(effects(site, key)) == 4


def test_failures_are_kept_where_the_route_says_so(site: EdgeSite, key: str) -> None:
    first, again = (ask(site, key, "/api/v1/strict", status=500) for _ in range(2))
    assert (first.content, first.status_code) == (again.content, again.status_code)
    assert is_replayed(again)


def test_an_expired_key_is_new_at_once(site: EdgeSite, key: str) -> None:
    """Restate itself would go on replaying until its cleaner comes."""
    number = ask(site, key, "/api/v1/short").headers["x-operation-id"]
    while True:
        asked_at = datetime.now(UTC)
        answer = ask(site, key, "/api/v1/short")
        if not is_replayed(answer):
            break
        assert answer.headers["x-operation-id"] == number
        assert asked_at < datetime.fromisoformat(answer.headers["idempotency-expires"])
    assert len(effects(site, key)) == 2
    assert is_replayed(ask(site, key, "/api/v1/short"))


def test_a_key_that_is_used_with_another_request_after_its_time_is_new(
    site: EdgeSite, key: str
) -> None:
    ask(site, key, "/api/v1/short")
    assert ask(site, key, "/api/v1/short", body={"b": 1}).status_code == 422
    until(lambda: ask(site, key, "/api/v1/short", body={"b": 1}).status_code == 201)


# -- in flight ------------------------------------------------------------------------------


def test_who_asks_meanwhile_is_told_so(site: EdgeSite, key: str) -> None:
    first = Asking(site, key)
    busy = ask(site, key)
    assert (busy.status_code, code_of(busy)) == (409, "request-in-progress")
    assert busy.headers["retry-after"]
    other = ask(site, key, body={"item": "coffee"})
    assert (other.status_code, code_of(other)) == (422, "idempotency-key-reused")
    answer = first.answer()
    assert answer.headers["x-operation-id"] == busy.headers["x-operation-id"]
    assert not is_replayed(answer)
    assert len(effects(site, key)) == 1


def test_who_joins_gets_the_answer_with_the_marks_of_a_replay(site: EdgeSite, key: str) -> None:
    first = Asking(site, key, ATTACHING)

    def all_join() -> list[httpx.Response]:
        with ThreadPoolExecutor(4) as pool:
            return list(pool.map(lambda _: ask(site, key, ATTACHING), range(4)))

    joined = joining(first, all_join)
    answer = first.answer()
    assert not is_replayed(answer)
    for each in joined:
        assert (each.status_code, each.content) == (answer.status_code, answer.content)
        assert is_replayed(each)
    assert len(effects(site, key)) == 1


def test_who_joins_one_that_fails_asks_again(site: EdgeSite, key: str) -> None:
    first = Asking(site, key, ATTACHING, status=503)
    joined = joining(first, lambda: ask(site, key, ATTACHING))
    assert first.answer().status_code == 503
    assert (joined.status_code, is_replayed(joined)) == (201, False)
    assert len(effects(site, key)) == 2


def test_a_lost_answer_is_found_again(site: EdgeSite, key: str) -> None:
    first = Asking(site, key)
    client = site.client()
    by_key = f"{ORDERS}/by-idempotency-key/{key}"
    told = client.get(f"{by_key}/output")
    assert (told.status_code, told.json()["state"]) == (202, "in_progress")
    by_number = f"/api/v1/operations/{told.headers['x-operation-id']}"
    assert client.get(f"{by_number}/output").status_code == 202
    for bearer in (token(tenant="other"), token(subject="user:bob")):
        assert site.client(bearer).get(by_number).status_code == 404
        assert site.client(bearer).get(by_key).status_code == 404
    first.let_go()
    found = [client.get(path) for path in (by_key, by_number, f"{by_number}/output")]
    answer = first.answer()
    assert [each.content for each in found] == 3 * [answer.content]
    assert all(is_replayed(each) for each in found)


# -- answers that are not kept --------------------------------------------------------------


@pytest.mark.parametrize("size", [1001, 3 << 20, 9 << 20])
def test_an_answer_that_is_too_large_is_handed_on_and_not_kept(
    site: EdgeSite, key: str, size: int
) -> None:
    """The last is more than Restate is given to carry."""
    chunk = "x" * 1000
    times = size // 1000 + 1
    do: dict[str, Any] = {"chunks": [chunk], "times": times}
    first = ask(site, key, "/api/v1/small", **do)
    assert (first.status_code, len(first.content)) == (201, 1000 * times)
    assert first.headers["idempotency-stored"] == "false"
    again = ask(site, key, "/api/v1/small", **do)
    assert (again.status_code, code_of(again)) == (409, "outcome-not-kept")
    assert again.headers["x-operation-id"] == first.headers["x-operation-id"]
    assert len(effects(site, key)) == 1


@pytest.mark.parametrize("accept", ["*/*", "text/event-stream"])
def test_events_come_as_they_are_sent_and_are_not_kept(
    site: EdgeSite, key: str, accept: str
) -> None:
    """Those that are asked for as such, and those that come unasked."""
    headers = [["content-type", "text/event-stream"]]
    do = {"headers": headers, "chunks": ["data: 1\n\n", "data: 2\n\n"], "pause": 0.2}
    lines = {"Idempotency-Key": key, DO: json.dumps(do), "Accept": accept}
    client = site.client()
    with client.stream("POST", "/api/v1/again", json={}, headers=lines) as first:
        assert first.headers["idempotency-stored"] == "false"
        busy = client.post("/api/v1/again", json={}, headers=lines)
        assert "".join(first.iter_text()) == "data: 1\n\ndata: 2\n\n"
    assert code_of(busy) == "outcome-not-kept"
    assert len(effects(site, key)) == 1


def test_a_cookie_is_for_the_first_alone(site: EdgeSite, key: str) -> None:
    cookie = [["set-cookie", "session=for-one"], ["set-cookie", "b=2"], ["x-kept", "yes"]]
    first, again = (ask(site, key, headers=cookie) for _ in range(2))
    assert first.headers.get_list("set-cookie") == ["session=for-one", "b=2"]
    assert "set-cookie" not in again.headers
    assert first.headers["x-kept"] == again.headers["x-kept"] == "yes"


# -- who asks for what ----------------------------------------------------------------------


def test_the_key_is_passed_on_with_its_namespace(site: EdgeSite, key: str) -> None:
    ask(site, key)
    (seen,) = effects(site, key)
    lines = dict(seen["headers"])
    assert lines["idempotency-key"] == f"t-acme:shop:user:alice:{key}"
    assert (lines["x-tenant-id"], lines["x-subject"]) == ("acme", "user:alice")
    assert json.loads(base64.b64decode(seen["body"])) == {"item": "tea"}


def test_tenants_and_subjects_are_apart(site: EdgeSite, key: str) -> None:
    bearers = [token(), token(tenant="other"), token(subject="user:bob"), token(project="other")]
    for _ in range(2):
        for bearer in bearers:
            client = site.client(bearer, **{"Idempotency-Key": key})
            assert client.post(ORDERS, json={"who": bearer[-8:]}).status_code == 201
    assert len(effects(site, key)) == len(bearers)


@pytest.mark.parametrize("bad", ["", "a b", "t-acme:x", "ä", "k" * 256, "k" * 60_000, '"a'])
def test_no_bad_key_reaches_restate(site: EdgeSite, restate_calls: RestateEdges, bad: str) -> None:
    before = len(restate_calls.all_calls())
    lines = {"Idempotency-Key": bad.encode()}
    answer = site.client().post(ORDERS, json={}, headers=lines)  # type: ignore[arg-type]
    assert answer.status_code in {400, 431}
    assert len(restate_calls.all_calls()) == before
