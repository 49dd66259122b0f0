"""Requests that look alike on one kept connection are answered, and forwarded, as strangers would
be: every conversation is held with an edge that reads them fast and with one that does not."""

import itertools
import re
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fixtures.edge_site import token
from tests.fixtures.ways import Way, plain

TOKENS = [f"Bearer {token(exp=4102444800)}", f"Bearer {token(subject='user:bob', exp=4102444800)}"]
CHUNKED = b"transfer-encoding: chunked"
NUMBERS = itertools.count()
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
# With the number of the conversation in them: a key that was used reaches no service any more.
KEYS = ["k1-#", "k2-#", "k3-#", '"k1-#"', "t-acme:k", "a b", "x" * 256]
SPELLINGS = [
    "Idempotency-Key: {}",
    "idempotency-key: {}",
    "Idempotency-Key:{}",
    "Idempotency-Key: {} ",
    "",
]
TRACES = ["", "X-Request-Id: r1\r\n", "X-Request-Id: r2\r\ntraceparent: 00-ab-cd-01\r\n"]
BODIES = ["", "{}", '{"a": 1}', '{"a": 2}', "x" * 70_000]

# How requests of a conversation differ: most clients change only the key and the body, and write
# the key as they always do.
HEADS = st.tuples(
    st.sampled_from(TARGETS),
    st.sampled_from(MORE),
    st.sampled_from(TOKENS),
    st.sampled_from(TRACES),
    st.sampled_from([*SPELLINGS[:2] * 3, *SPELLINGS]),
)
SAID = st.tuples(st.sampled_from(KEYS[:3]) | st.sampled_from(KEYS), st.sampled_from(BODIES))
CONVERSATIONS = st.lists(HEADS, min_size=1, max_size=2).flatmap(
    lambda heads: st.lists(st.tuples(st.sampled_from(heads), SAID), min_size=2, max_size=7)
)


def written(head: tuple[str, str, str, str, str], said: tuple[str, str], number: int = 0) -> bytes:
    target, more, bearer, traces, spelling = head
    key, body = said
    lines = f"Host: edge\r\nAuthorization: {bearer}\r\n{more}"
    if spelling:
        lines += spelling.format(key.replace("#", str(number))) + "\r\n"
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
    """What the service behind was asked; when, and the order of lines, means nothing."""
    effects = way.behind.seen_since(moment)
    return [
        {**effect, "at": None, "headers": sorted(tuple(pair) for pair in effect["headers"])}
        for effect in effects
    ]


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(CONVERSATIONS)
def test_what_repeats_is_read_as_what_does_not(ways: tuple[Way, Way], conversation: Any) -> None:
    number = next(NUMBERS)
    requests = [written(head, said, number) for head, said in conversation]
    held = []
    for way in ways:
        moment = way.behind.now
        answers = [told(answer) for answer in way.converse(requests)]
        held.append((answers, seen(way, moment)))
    assert held[0] == held[1]


def test_decisions_that_repeat_are_each_about_their_own_request(ways: tuple[Way, Way]) -> None:
    """Which request a gateway asks about is read once for all that repeat it, its key each time."""
    requests = []
    for path in ("/api/v1/orders", "/api/v1/pings", "/api/v1/notes"):
        more = f"X-Original-Method: POST\r\nX-Original-URI: {path}\r\n"
        head = ("GET /edge/decide", more, TOKENS[0], "", SPELLINGS[0])
        requests += [written(head, (key, "")) for key in ("d1", "d2", "a:b", "d3")]
    short, long = ([told(answer) for answer in way.converse(requests)] for way in ways)
    assert len(short) == len(requests)
    assert short == long
