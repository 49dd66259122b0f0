"""The short way and the long way give the same answers: every request is sent to both."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.fixtures.edge_site import token
from tests.fixtures.ways import Way, plain

TOKEN = token(exp=4102444800)
OTHER = token(subject="user:bob", exp=4102444800)


METHODS = st.sampled_from(["POST", "GET", "PUT", "HEAD", "DELETE", "OPTIONS"])
PATHS = st.sampled_from(
    [
        "/api/v1/orders",
        "/api/v1/orders/7/pay",
        "/api/v1/orders/a%20b/pay",
        "/api/v1/orders/%2e%2e/pay",
        "/api/v1/orders/a%2fb/pay",
        "/api/v1/orders/",
        "//api/v1/orders",
        "/api/v1/notes",
        "/api/v1/notes?b=2&a=1",
        "/api/v1/notes?a=1&b=2",
        "/api/v1/notes?q=%00",
        "/api/v1/pings",
        "/api/v1/members",
        "/hooks/in",
        "/open/notes",
        "/nowhere",
        "/edge/decide",
        "/edge/decide?refuse=403",
        "/api/v1/orders/by-idempotency-key/k1/output",
        "/api/v1/operations/op_0000000000000001",
    ]
)
KEYS = st.sampled_from(
    [None, "k1", '"k1"', "k2", "t-acme:k", "a:b", "", " k1 ", "k\u00e9", "x" * 256]
)
BODIES = st.sampled_from(["", "{}", '{"a": 1}', '{ "a":1.0 }', "[1]", "x" * 70_000])
BEARERS = st.sampled_from(
    [None, f"Bearer {TOKEN}", f"Bearer {OTHER}", "Bearer x.y.z", "Basic eA=="]
)
LINES = st.sampled_from(
    [
        "",
        "X-Tenant-Id: other\r\n",
        "Connection: x-tenant-id, idempotency-key\r\n",
        "Idempotency-Key: k9\r\n",
        "X-Original-Method: POST\r\nX-Original-URI: /api/v1/orders\r\n",
        "X-Forwarded-For: 1.2.3.4\r\n",
        "Upgrade: h2c\r\n",
    ]
)


@settings(max_examples=250, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(METHODS, PATHS, KEYS, BODIES, BEARERS, LINES, st.booleans())
def test_both_ways_answer_alike(
    ways: tuple[Way, Way],
    method: str,
    path: str,
    key: str | None,
    body: str,
    bearer: str | None,
    more: str,
    chunked: bool,
) -> None:
    lines = f"Host: edge\r\nConnection: close\r\nContent-Type: application/json\r\n{more}"
    if key is not None:
        lines += f"Idempotency-Key: {key}\r\n"
    if bearer is not None:
        lines += f"Authorization: {bearer}\r\n"
    if chunked:
        lines += "Transfer-Encoding: chunked\r\n"
        content = f"{len(body):x}\r\n{body}\r\n0\r\n\r\n" if body else "0\r\n\r\n"
    else:
        lines += f"Content-Length: {len(body)}\r\n"
        content = body
    request = f"{method} {path} HTTP/1.1\r\n{lines}\r\n{content}".encode("latin-1")
    short, long = ways
    assert plain(short.ask(request)) == plain(long.ask(request))
