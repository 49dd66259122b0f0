"""The service behind dies before, during and after a request: nothing is doubled, and whoever asks
learns what is known."""

import json
import threading
from collections import Counter
from pathlib import Path

import httpx
import pytest

from tests.fixtures.behind import DO
from tests.fixtures.command import Run
from tests.fixtures.edge_site import EdgeSite, MakeSite

BY_KEY = "/api/v1/orders/by-idempotency-key"


@pytest.fixture
def site(edge_site: MakeSite) -> EdgeSite:
    return edge_site()


def code_of(answer: httpx.Response) -> str:
    assert answer.headers["content-type"] == "application/problem+json"
    return str(answer.json()["type"].rpartition("/")[2])


def test_before_it_is_asked_nothing_is_kept(site: EdgeSite) -> None:
    site.behind.kill()
    for _ in range(2):
        answer = site.post(key="k")
        assert (answer.status_code, code_of(answer)) == (502, "upstream-unreachable")
        assert answer.headers["retry-after"]
    assert site.client().get(f"{BY_KEY}/k/output").status_code == 404
    site.behind.start()
    assert site.post(key="k").status_code == 201
    assert site.post(key="k").headers["idempotent-replayed"] == "true"
    assert len(site.behind.seen) == 1


@pytest.mark.parametrize("when, effects", [("before", 0), ("after", 1)])
def test_once_it_was_asked_it_is_never_asked_again(site: EdgeSite, when: str, effects: int) -> None:
    first = site.post(key="k", die=when)
    assert (first.status_code, code_of(first)) == (502, "upstream-uncertain")
    number = first.headers["x-operation-id"]
    site.behind.join()
    site.behind.start()
    for _ in range(2):
        again = site.post(key="k", die=when)
        assert (again.status_code, code_of(again)) == (409, "outcome-unknown")
        assert again.headers["x-operation-id"] == number
        assert again.json()["detail"].startswith("The service behind was asked")
    client = site.client()
    for path in (f"{BY_KEY}/k", f"{BY_KEY}/k/output", f"/api/v1/operations/{number}"):
        assert code_of(client.get(path)) == "outcome-unknown"
    assert len(site.behind.seen) == effects


def test_an_answer_cut_in_the_middle_is_no_answer(site: EdgeSite) -> None:
    answer = site.post(key="k", die="half", chunks=["a" * 100, "b" * 100], pause=0.1)
    assert code_of(answer) == "upstream-uncertain"
    site.behind.join()
    site.behind.start()
    assert code_of(site.post(key="k", die="half", chunks=["a" * 100, "b" * 100], pause=0.1)) == (
        "outcome-unknown"
    )
    assert len(site.behind.seen) == 1


def test_a_route_may_let_it_run_again_under_the_same_key(site: EdgeSite) -> None:
    line = {"Idempotency-Key": "k", DO: json.dumps({"die": "after"})}
    first = site.client().post("/api/v1/again", headers=line)
    assert code_of(first) == "upstream-uncertain"
    site.behind.join()
    site.behind.start()
    again = site.client().post("/api/v1/again", headers={"Idempotency-Key": "k"})
    assert again.status_code == 201
    keys = {dict(each["headers"])["idempotency-key"] for each in site.behind.seen}
    assert keys == {"t-acme:shop:user:alice:k"}
    assert len(site.behind.seen) == 2
    assert (
        site.client()
        .post("/api/v1/again", headers={"Idempotency-Key": "k"})
        .headers["idempotent-replayed"]
    )


def test_one_that_takes_too_long_is_not_asked_again(edge_site: MakeSite) -> None:
    site = edge_site(timeout="500ms")
    first = site.post(key="k", sleep=30)
    assert (first.status_code, code_of(first)) == (504, "upstream-timeout")
    assert code_of(site.post(key="k", sleep=30)) == "outcome-unknown"
    assert len(site.behind.seen) == 1


def test_an_operator_frees_the_key_when_it_did_not_happen(
    site: EdgeSite, oncekey: Run, tmp_path: Path
) -> None:
    number = site.post(key="k", die="before").headers["x-operation-id"]
    site.behind.join()
    site.behind.start()
    url = f"sqlite:///{tmp_path}/oncekey.db"
    assert oncekey("keys", "purge", number, "--yes", "--url", url).returncode == 0
    assert site.post(key="k").status_code == 201
    assert len(site.behind.seen) == 1


def test_without_a_key_the_client_learns_whether_it_was_sent(site: EdgeSite) -> None:
    assert code_of(site.post("/api/v1/notes", die="after")) == "upstream-uncertain"
    site.behind.join()
    assert code_of(site.post("/api/v1/notes")) == "upstream-unreachable"


KEYS = [f"k-{number}" for number in range(120)]


def ask_until_answered(site: EdgeSite, keys: list[str], last: dict[str, int]) -> None:
    client = site.client()
    for key in keys:
        for _ in range(20):
            line = {"Idempotency-Key": key}
            answer = client.post("/api/v1/orders", json={"item": key}, headers=line)
            last[key] = answer.status_code
            if answer.status_code in {201, 409}:
                break


def effects_of(site: EdgeSite) -> Counter[str]:
    lines = (dict(each["headers"])["idempotency-key"] for each in site.behind.seen)
    return Counter(line.rpartition(":")[2] for line in lines)


def test_killed_again_and_again_under_many_requests_no_key_has_two_effects(
    site: EdgeSite,
) -> None:
    last: dict[str, int] = {}
    threads = [
        threading.Thread(target=ask_until_answered, args=(site, KEYS[at::6], last))
        for at in range(6)
    ]
    for thread in threads:
        thread.start()
    for _ in range(6):
        enough = min(len(site.behind.seen) + 8, 60)
        while len(site.behind.seen) < enough and any(each.is_alive() for each in threads):
            pass
        site.behind.kill()
        site.behind.start()
    for thread in threads:
        thread.join()
    effects = effects_of(site)
    assert set(effects.values()) == {1}
    for key in KEYS:
        found = site.client().get(f"{BY_KEY}/{key}/output")
        assert (found.status_code == 201) == (last[key] == 201)
        # What was begun and not answered is said to be unknown, and stays so.
        assert found.status_code == 409 if key in effects and last[key] != 201 else True
