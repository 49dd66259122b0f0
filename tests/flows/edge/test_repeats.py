"""Requests that look alike on one kept connection are answered, and forwarded, as strangers would
be: every conversation is held with an edge that reads them fast and with one that does not."""

import re
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fixtures.edge_site import token
from tests.fixtures.ways import Way, plain

TOKENS = [f"Bearer {token(exp=4102444800)}", f"Bearer {token(subject='user:bob', exp=4102444800)}"]
CHUNKED = b"transfer-encoding: chunked"
TARGETS = [
    "POST /api/v1/orders",
    "POST /api/v1/orders/7/pay",
    "POST /api/v1/notes",
    "POST /api/v1/notes?a=1",
    "PUT /api/v1/notes",
    "POST /api/v1/pings",
    "POST /api/v1/members",
    "GET /open/notes",
    "GET /edge/decide",
    "GET /edge/decide?refuse=403",
    "POST /nowhere",
]
MORE = [
    "",
    "X-Tenant-Id: other\r\n",
    "Connection: keep-alive\r\n",
    "Connection: x-request-id, traceparent\r\n",
    "X-Original-Method: POST\r\nX-Original-URI: /api/v1/orders\r\n",
    'X-Do: {"chunks": ["a", "b"]}\r\n',
    'X-Do: {"status": 204, "body": ""}\r\n',
    'X-Do: {"headers": [["set-cookie", "a=b"], ["server", "secret"]]}\r\n',
    "X-Do: {}\r\nX-Trailing:  spaced \r\n",
]
KEYS = ["k1", "k2", "k3", '"k1"', "t-acme:k", "a b", "x" * 256]
SPELLINGS = [
    "Idempotency-Key: {}",
    "idempotency-key: {}",
    "Idempotency-Key:{}",
    "Idempotency-Key: {} ",
]
TRACES = ["", "X-Request-Id: r1\r\n", "X-Request-Id: r2\r\ntraceparent: 00-ab-cd-01\r\n"]
BODIES = ["", "{}", '{"a": 1}', '{"a": 2}', "x" * 70_000]

# How requests of a conversation differ: most clients change only the key and the body.
HEADS = st.tuples(
    st.sampled_from(TARGETS),
    st.sampled_from(MORE),
    st.sampled_from(TOKENS),
    st.sampled_from(TRACES),
)
SAID = st.tuples(
    st.none() | st.sampled_from(KEYS), st.sampled_from(SPELLINGS), st.sampled_from(BODIES)
)
CONVERSATIONS = st.lists(HEADS, min_size=1, max_size=2).flatmap(
    lambda heads: st.lists(st.tuples(st.sampled_from(heads), SAID), min_size=2, max_size=7)
)


def written(head: tuple[str, str, str, str], said: tuple[str | None, str, str]) -> bytes:
    target, more, bearer, traces = head
    key, spelling, body = said
    lines = f"Host: edge\r\nAuthorization: {bearer}\r\n{more}"
    if key is not None:
        lines += spelling.format(key) + "\r\n"
    lines += f"{traces}Content-Length: {len(body)}\r\nContent-Type: application/json\r\n"
    return f"{target} HTTP/1.1\r\n{lines}\r\n{body}".encode()


def told(answer: bytes) -> Any:
    """Without whether it came in pieces, which is a matter of time."""
    status, lines, body = plain(answer)
    if CHUNKED not in lines:
        return status, lines, body
    body = b"".join(re.findall(rb"[0-9a-f]+\r\n(.*?)\r\n", body))
    return status, lines - {CHUNKED} | {b"content-length: %d" % len(body)}, body


def seen(way: Way, moment: int) -> list[Any]:
    """What the service behind was asked meanwhile; the order of lines means nothing."""
    effects = way.behind.seen_since(moment)
    return [
        {**effect, "headers": sorted(tuple(pair) for pair in effect["headers"])}
        for effect in effects
    ]


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(CONVERSATIONS)
def test_what_repeats_is_read_as_what_does_not(ways: tuple[Way, Way], conversation: Any) -> None:
    requests = [written(head, said) for head, said in conversation]
    held = []
    for way in ways:
        moment = way.behind.now
        answers = [told(answer) for answer in way.converse(requests)]
        held.append((answers, seen(way, moment)))
    assert held[0] == held[1]
