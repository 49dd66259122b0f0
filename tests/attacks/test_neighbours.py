"""The same raw key in the hands of others: each has an effect and an answer of its own, and nobody
learns that there is another's."""

import itertools
import json
import threading
from typing import Any

import httpx
import pytest

from tests.fixtures.behind import DO
from tests.fixtures.stronghold import Stronghold, bearer

STRONGHOLD = {
    "more": """
[retention]
brief = "1s"

[[routes]]
path = "/brief"
methods = ["POST"]
upstream = "behind"
policy = "REQUIRED_A"
retention = "brief"
"""
}
CALLERS: dict[str, dict[str, Any]] = {
    "alice": {},
    "bob": {"subject": "user:bob"},
    "a service of her name": {"subject": "service:alice"},
    "a member of her name": {"subject": "tenant_member:alice"},
    "a client of her name": {"subject": "client:alice"},
    "her name in capitals": {"subject": "user:Alice"},
    "her name and a key": {"subject": "user:alice:same"},
    "her name and an encoded colon": {"subject": "user:alice%3Asame"},
    "her name with a blank behind": {"subject": "user:alice "},
    "another project": {"project": "shop2"},
    "a project in capitals": {"project": "Shop"},
    "no project": {"project": None},
    "another tenant": {"tenant": "acme2"},
    "a tenant in capitals": {"tenant": "ACME"},
    "a tenant that looks like a namespace": {"tenant": "t-acme"},
    "tenant and project joined": {"tenant": "acme-shop", "project": None},
}
ROUTES = {
    "orders": ("POST", "/api/v1/orders"),
    "payments": ("POST", "/api/v1/orders/1/pay"),
    "notes": ("POST", "/api/v1/notes"),
    "another method": ("PUT", "/api/v1/notes"),
    "the tenant's": ("POST", "/api/v1/members"),
    "again": ("POST", "/api/v1/again"),
    "events": ("POST", "/api/v1/events"),
    "files": ("PUT", "/files/1"),
}
BY_KEY = "/api/v1/orders/by-idempotency-key"
ORDER = {"item": "tea"}


def order(
    fort: Stronghold, key: str, path: str = "/api/v1/orders", **claims: Any
) -> httpx.Response:
    answer = fort.ask(path=path, key=key, bearer=bearer(**claims), json=ORDER)
    assert answer.status_code == 201, answer.text
    return answer


def shape_of(answer: httpx.Response) -> tuple[int, frozenset[tuple[str, str]], bytes]:
    """All that answers can be told apart by, but for the time of day."""
    lines = frozenset(line for line in answer.headers.multi_items() if line[0] != "date")
    return answer.status_code, lines, answer.content


def nothing(fort: Stronghold) -> Any:
    """What the owner of nothing gets."""
    return shape_of(fort.ask("GET", f"{BY_KEY}/never-used", bearer=bearer()))


def test_every_caller_has_an_effect_and_an_answer_of_its_own(fort: Stronghold) -> None:
    first = {name: order(fort, "same", **claims) for name, claims in CALLERS.items()}
    again = {name: order(fort, "same", **claims) for name, claims in CALLERS.items()}
    assert all("idempotent-replayed" not in each.headers for each in first.values())
    assert all(each.headers["idempotent-replayed"] == "true" for each in again.values())
    assert {name: each.content for name, each in first.items()} == {
        name: each.content for name, each in again.items()
    }
    assert len({each.content for each in first.values()}) == len(CALLERS)
    assert len(fort.effects) == len(CALLERS)
    assert len({each.key for each in fort.effects}) == len(CALLERS)
    assert len({each.whose for each in fort.effects}) == len(CALLERS)


def test_every_route_method_and_level_has_its_own(fort: Stronghold) -> None:
    answers = {}
    for name, (method, path) in ROUTES.items():
        for _ in range(2):
            answer = fort.ask(method, path, key="everywhere", bearer=bearer(), json=ORDER)
            answers.setdefault(answer.content, name)
    platform = fort.ask(path="/platform/jobs", key="everywhere", bearer=fort.admin, json=ORDER)
    assert list(answers.values()) == list(ROUTES)
    assert platform.status_code == 201
    assert len(fort.effects) == len(ROUTES) + 1
    levels = {each.target: each.whose[1] for each in fort.effects}
    assert levels["/api/v1/members"] == "_tenant"
    assert levels["/platform/jobs"] == "_platform"


def test_an_admin_and_a_caller_of_the_same_name_share_nothing(fort: Stronghold) -> None:
    """Admins are of a tenant too, which anybody may be called as."""
    fort.ask(path="/platform/jobs", key="shared", bearer=fort.admin, json=ORDER)
    (effect,) = fort.effects
    tenant, _, subject = effect.whose
    twin = bearer(tenant=tenant, subject=subject, project=None)
    number = fort.ask(path="/platform/jobs", key="shared", bearer=fort.admin, json=ORDER)
    for path in (
        "/platform/jobs/by-idempotency-key/shared",
        f"/api/v1/operations/{number.headers['x-operation-id']}",
    ):
        assert fort.ask("GET", path, bearer=fort.admin).status_code == 201
        assert fort.ask("GET", path, bearer=twin).status_code == 404
    assert fort.ask(path="/platform/jobs", key="shared", bearer=twin).status_code == 401


@pytest.mark.parametrize("name", [name for name in CALLERS if name != "alice"])
def test_nobody_finds_the_answer_of_another(fort: Stronghold, name: str) -> None:
    number = order(fort, f"hers-{len(name)}").headers["x-operation-id"]
    thief = bearer(**CALLERS[name])
    tried = {
        shape_of(fort.ask("GET", f"{path}{end}", bearer=thief))
        for path in (f"{BY_KEY}/hers-{len(name)}", f"/api/v1/operations/{number}")
        for end in ("", "/output")
    }
    assert tried == {nothing(fort)}
    heads = fort.ask("HEAD", f"/api/v1/operations/{number}", bearer=thief)
    assert (heads.status_code, heads.content) == (404, b"")
    assert fort.ask("GET", f"/api/v1/operations/{number}", bearer=bearer()).status_code == 201


def test_guessed_operations_tell_nothing(fort: Stronghold) -> None:
    """Numbers of operations grow with time: that of another is near one's own."""
    mine, hers = (
        int(order(fort, "guess", **claims).headers["x-operation-id"].removeprefix("op_"), 16)
        for claims in (CALLERS["bob"], {})
    )
    thief = bearer(**CALLERS["bob"])
    numbers = {number + step for number in (mine, hers) for step in range(-8, 9)} - {mine}
    guesses = [f"op_{number:016x}" for number in sorted(numbers)]
    spellings = [f"op_{hers:x}", f"OP_{hers:016x}", f"op_{hers:016X}", f"{hers}", f"op_{hers:017x}"]
    tried = {
        shape_of(fort.ask("GET", f"/api/v1/operations/{guess}", bearer=thief))
        for guess in guesses + spellings
    }
    assert tried == {nothing(fort)}


def test_one_in_flight_is_nobody_elses_to_see(fort: Stronghold) -> None:
    slow = [(DO, json.dumps({"sleep": 1.0}))]
    answers: list[httpx.Response] = []

    def run() -> None:
        mine = httpx.Client(base_url=fort.url, trust_env=False, timeout=30)
        lines = {"Authorization": f"Bearer {bearer()}", "Idempotency-Key": "slow", **dict(slow)}
        with mine:
            answers.append(mine.post("/api/v1/orders", json=ORDER, headers=lines))

    running = threading.Thread(target=run)
    running.start()
    while not fort.effects:
        pass
    told = fort.ask("GET", f"{BY_KEY}/slow/output", bearer=bearer())
    number = told.json()["operation_id"]
    thief = bearer(**CALLERS["bob"])
    tried = {
        shape_of(fort.ask("GET", path, bearer=thief))
        for path in (f"{BY_KEY}/slow", f"{BY_KEY}/slow/output", f"/api/v1/operations/{number}")
    }
    assert tried == {nothing(fort)}
    # His own request of that key is not hers: it neither waits nor conflicts.
    assert order(fort, "slow", **CALLERS["bob"]).status_code == 201
    running.join()
    assert answers[0].status_code == 201
    assert len(fort.effects) == 2


def test_what_has_expired_is_nobodys(fort: Stronghold) -> None:
    number = order(fort, "gone", "/brief").headers["x-operation-id"]
    paths = ("/brief/by-idempotency-key/gone", f"/api/v1/operations/{number}")
    while fort.ask("GET", paths[0], bearer=bearer()).status_code != 404:
        pass
    callers = (bearer(), bearer(**CALLERS["bob"]))
    tried = {
        shape_of(fort.ask("GET", path, bearer=each))
        for path, each in itertools.product(paths, callers)
    }
    assert tried == {nothing(fort)}
    # And an expired key is a new one.
    assert order(fort, "gone", "/brief").headers["x-operation-id"] != number


def test_without_credentials_nothing_is_told_at_all(fort: Stronghold) -> None:
    number = order(fort, "unknown").headers["x-operation-id"]
    for known, unknown in (
        (f"{BY_KEY}/unknown", f"{BY_KEY}/never-used"),
        (f"/api/v1/operations/{number}", "/api/v1/operations/op_0000000000000001"),
    ):
        for end in ("", "/output"):
            answer = shape_of(fort.ask("GET", known + end))
            assert answer == shape_of(fort.ask("GET", unknown + end))
            assert answer[0] in {401, 404}


def test_anonymous_requests_find_none_but_their_own(fort: Stronghold) -> None:
    """Where no identity is needed, everybody without one is the same one, and nobody else."""
    order(fort, "public", "/open/notes")
    anonymous = fort.ask(path="/open/notes", key="public", json=ORDER)
    assert anonymous.status_code == 201
    assert "idempotent-replayed" not in anonymous.headers
    assert [each.whose[2] for each in fort.effects] == ["user:alice", "client:anonymous"]
    found = fort.ask("GET", "/open/notes/by-idempotency-key/public")
    assert found.content == anonymous.content
    number = fort.ask(path="/open/notes", key="public", json=ORDER).headers["x-operation-id"]
    assert fort.ask("GET", f"/api/v1/operations/{number}", bearer=bearer()).status_code == 404


def test_no_anonymous_request_finds_another_by_its_number(fort: Stronghold) -> None:
    """Numbers of one moment follow each other: that of another is one's own and a little more."""
    theirs = fort.ask(path="/open/notes", key="theirs", json=ORDER)
    number = theirs.headers["x-operation-id"]
    assert fort.ask("GET", f"/api/v1/operations/{number}").status_code in {401, 404}
