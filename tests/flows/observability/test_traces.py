"""Traces of a real server, as a collector gets them."""

from tests.fixtures.collected import Collector
from tests.fixtures.edge_site import MakeSite

TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PARENT = f"00-{TRACE}-{CALLER}-01"
REQUEST = "POST /api/v1/orders"


def traces(collector: Collector) -> str:
    return f'\n[traces]\nendpoint = "{collector.url}"\nservice = "till"\n'


def test_from_the_caller_to_the_service_behind(edge_site: MakeSite, collector: Collector) -> None:
    site = edge_site(traces(collector))
    client = site.client(traceparent=PARENT)
    first = client.post("/api/v1/orders", json={}, headers={"Idempotency-Key": "k-1"})
    again = client.post("/api/v1/orders", json={}, headers={"Idempotency-Key": "k-1"})
    third = client.post("/api/v1/orders", json={}, headers={"Idempotency-Key": "k-1"})
    assert again.headers["idempotent-replayed"] == third.headers["idempotent-replayed"] == "true"
    for answer in (first, again, third):
        assert "oncekey-traceparent" not in answer.headers
    (behind,) = site.behind.seen
    site.served.stop()
    assert collector.paths == {"/v1/traces"}
    new, *replays = collector.named(REQUEST)
    (claim, *_), (handler,), (settle,) = map(collector.named, ("claim", "handler", "settle"))
    assert (new.trace, new.parent, new.service) == (TRACE, CALLER, "till")
    assert {claim.parent, handler.parent, settle.parent} == {new.id}
    sent = dict(behind["headers"])["traceparent"]
    assert sent.split("-")[1:3] == [TRACE, handler.id]
    assert new.attributes["oncekey.operation_id"] == first.headers["x-operation-id"]
    assert new.attributes["http.response.status_code"] == first.status_code
    assert len(replays) == 2
    for replay in replays:
        assert replay.attributes["oncekey.cache_hit"] is True
        assert replay.links == [(new.trace, new.id)]


def test_without_a_caller_each_request_begins_its_own(
    edge_site: MakeSite, collector: Collector
) -> None:
    site = edge_site(traces(collector))
    site.post(key="k-1")
    site.post(key="k-2")
    site.post()
    site.served.stop()
    found = collector.named(REQUEST)
    assert len({each.trace for each in found}) == 3
    assert {each.parent for each in found} == {""}
    assert [each.attributes["oncekey.way"] for each in found] == ["new", "new", "refused"]


def test_what_is_not_to_be_kept_is_not_sent(edge_site: MakeSite, collector: Collector) -> None:
    site = edge_site(traces(collector) + "sample = 0.0\n")
    site.post(key="k-1")
    site.served.stop()
    assert collector.spans == []


def test_a_collector_that_is_away_is_nobodys_trouble(edge_site: MakeSite) -> None:
    site = edge_site('\n[traces]\nendpoint = "http://127.0.0.1:1"\n')
    assert site.post(key="k-1").status_code == 201
    assert site.post(key="k-1").headers["idempotent-replayed"] == "true"
