"""Clients and `oncekey serve`: an answer that was lost is found again, by its caller only."""

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest

from oncekey.client import (
    Backoff,
    CredentialsRefused,
    GaveUp,
    InFlight,
    KeyRefused,
    KeyReused,
    OutcomeUnknown,
)
from tests.fixtures.behind import DO
from tests.fixtures.colours import Colour
from tests.fixtures.edge_site import EdgeSite, MakeSite, token
from tests.fixtures.proxy import Proxy

ONCE = Backoff(attempts=1)


def alice() -> dict[str, str]:
    """Her credentials, which are good for a while."""
    return {"Authorization": f"Bearer {token()}"}


@pytest.fixture
def edge(edge_site: MakeSite) -> EdgeSite:
    return edge_site()


@contextmanager
def between(edge: EdgeSite) -> Iterator[tuple[Proxy, str]]:
    """A line to the edge that can be cut."""
    with closing(Proxy(httpx.URL(edge.url).port or 80)) as proxy:
        yield proxy, f"http://127.0.0.1:{proxy.port}"


def test_first_and_replay(colour: Colour, edge: EdgeSite) -> None:
    client = colour.client(edge.url, headers=alice(), remember=0)
    first = colour.do(client.intent("tea").post("/api/v1/orders", json={"item": "tea"}))
    assert first.is_success
    assert first.operation_id
    assert first.operation_id.startswith("op_")
    with_key = edge.client().post(
        "/api/v1/orders", json={"item": "tea"}, headers={"Idempotency-Key": first.key}
    )
    assert with_key.headers["idempotent-replayed"] == "true"
    assert len(edge.behind.seen) == 1


def test_a_lost_answer_is_replayed_to_the_retry(
    colour: Colour, edge: EdgeSite, tmp_path: Path
) -> None:
    """The answer is cut off on its way; the next attempt gets it, and nothing is done twice."""
    with between(edge) as (proxy, url):
        client = colour.client(url, headers=alice(), intents=tmp_path / "intents.db")
        proxy.cut(b"POST /api", "after")
        answer = colour.do(client.intent("tea").post("/api/v1/orders", json={"item": "tea"}))
    assert (answer.replayed, answer.attempts) == (True, 2)
    assert len(edge.behind.seen) == 1


def test_recovered_after_a_restart(colour: Colour, edge: EdgeSite, tmp_path: Path) -> None:
    with between(edge) as (proxy, url):
        file = tmp_path / "intents.db"
        proxy.cut(b"POST /api", "after")
        client = colour.client(url, headers=alice(), intents=file, backoff=ONCE)
        with pytest.raises(GaveUp):
            colour.do(client.intent("tea").post("/api/v1/orders?x=1", json={"item": "tea"}))

        again = colour.client(url, headers=alice(), intents=file)
        (intent,) = again.pending()
        answer = colour.do(intent.recover())
        assert (answer.status_code, answer.source, answer.replayed) == (201, "recovered", True)
        assert again.pending() == []
        # From now on nobody needs to be asked.
        known = colour.do(again.intent("tea").post("/api/v1/orders?x=1", json={"item": "tea"}))
        assert (known.source, known.content) == ("remembered", answer.content)
    assert len(edge.behind.seen) == 1


def test_recover_causes_nothing(colour: Colour, edge: EdgeSite) -> None:
    client = colour.client(f"{edge.url}", headers=alice(), backoff=ONCE)
    edge.behind.kill()
    with pytest.raises(GaveUp, match="502"):
        colour.do(client.intent("tea").post("/api/v1/orders", json={"item": "tea"}))
    edge.behind.start()
    (intent,) = client.pending()
    assert colour.do(intent.recover()) is None
    assert edge.behind.seen == []
    assert len(client.pending()) == 1
    assert colour.do(intent.resume()).is_success
    assert len(edge.behind.seen) == 1


HASTY = """
[[routes]]
path = "/api/v1/hasty"
methods = ["POST"]
upstream = "behind"
policy = "REQUIRED_A"
attach_timeout = "10ms"
"""


@pytest.mark.parametrize("path", ["/api/v1/orders", "/api/v1/hasty"])
def test_recover_while_it_runs(colour: Colour, edge_site: MakeSite, path: str) -> None:
    """A route waits for the answer as long as it says; after that the caller may ask again."""
    edge = edge_site(HASTY)
    do = {DO: json.dumps({"sleep": 2})}
    client = colour.client(edge.url, headers=alice(), backoff=ONCE, timeout=0.5)
    with pytest.raises(GaveUp, match="ReadTimeout"):
        colour.do(client.intent("tea").post(path, json=1, headers=do))
    (intent,) = client.pending()
    client.http.timeout = 30
    if path.endswith("hasty"):
        with pytest.raises(InFlight) as raised:
            colour.do(intent.recover())
        assert raised.value.retryable
        assert len(client.pending()) == 1
        answer = colour.do(intent.resume())
    else:
        answer = colour.do(intent.recover())
    assert (answer.is_success, answer.replayed) == (True, True)
    assert len(edge.behind.seen) == 1


def test_in_flight_is_waited_for(colour: Colour, edge: EdgeSite) -> None:
    do = {DO: json.dumps({"sleep": 1})}
    client = colour.client(edge.url, headers=alice(), backoff=ONCE, timeout=0.3)
    with pytest.raises(GaveUp):
        colour.do(client.intent("tea").post("/api/v1/orders", json=1, headers=do))
    (intent,) = client.pending()
    client.http.timeout = 30
    answer = colour.do(intent.resume())
    assert (answer.is_success, answer.replayed) == (True, True)
    assert len(colour.rests) == answer.attempts - 1
    assert set(colour.rests) <= {1.25}
    assert len(edge.behind.seen) == 1


def test_an_upstream_that_breaks_off_is_told_as_it_is(colour: Colour, edge: EdgeSite) -> None:
    do = {DO: json.dumps({"die": "after"})}
    client = colour.client(edge.url, headers=alice())
    with pytest.raises(OutcomeUnknown, match="will not be asked again by itself"):
        colour.do(client.intent("tea").post("/api/v1/orders", json=1, headers=do))
    assert len(client.pending()) == 1
    assert len(edge.behind.seen) == 1


def test_another_caller_recovers_nothing(colour: Colour, edge: EdgeSite) -> None:
    mine = colour.client(edge.url, headers=alice(), remember=0)
    answer = colour.do(mine.intent("tea").post("/api/v1/orders", json=1))
    theirs = colour.client(
        edge.url,
        headers={"Authorization": f"Bearer {token(subject='user:bob')}"},
        draw=lambda: answer.key,
        backoff=ONCE,
    )
    edge.behind.kill()
    with pytest.raises(GaveUp):
        colour.do(theirs.intent("tea").post("/api/v1/orders", json=1))
    (intent,) = theirs.pending()
    assert intent.key == answer.key
    assert colour.do(intent.recover()) is None


def test_who_is_not_let_in(colour: Colour, edge: EdgeSite) -> None:
    client = colour.client(edge.url)
    with pytest.raises(CredentialsRefused):
        colour.do(client.intent("tea").post("/api/v1/orders", json=1))
    assert edge.behind.seen == []


def test_a_key_of_something_else(colour: Colour, edge: EdgeSite) -> None:
    client = colour.client(edge.url, headers=alice(), draw=lambda: "the-same")
    colour.do(client.intent("tea").post("/api/v1/orders", json="tea"))
    with pytest.raises(KeyReused):
        colour.do(client.intent("cake").post("/api/v1/orders", json="cake"))
    assert [each.name for each in client.pending()] == []


def test_a_key_that_breaks_the_grammar(colour: Colour, edge: EdgeSite) -> None:
    client = colour.client(edge.url, headers=alice(), draw=lambda: "t-forged")
    with pytest.raises(KeyRefused, match="reserved prefix"):
        colour.do(client.intent("tea").post("/api/v1/orders", json="tea"))
