"""Requests no decent client sends, over a raw socket: no server error, none run unprotected."""

from collections.abc import Iterator

import pytest

from tests.fixtures.caller import Answer, send
from tests.fixtures.street import Server, Street

DEEP = 100_000
MEGABYTE = 1 << 20


@pytest.fixture(
    scope="module",
    params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)],
)
def street(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Street]:
    folder = tmp_path_factory.mktemp("hostile")
    if request.param == "postgres":
        server = request.getfixturevalue("postgres_for_the_run")
        url = server.url(server.create_database())
    else:
        url = f"sqlite:///{folder}/oncekey.db"
    made = Street(url, folder)
    yield made
    made.close()


@pytest.fixture(scope="module")
def server(street: Street) -> Server:
    return street.open()


def raw(
    key: bytes,
    *lines: bytes,
    line: bytes = b"POST /rerun HTTP/1.1",
    body: bytes = b"{}",
    length: bool = True,
) -> bytes:
    """A request whose every byte is the test's; the key stands in the middle of its lines."""
    given = [line, b"host: shop", b"connection: close", b"idempotency-key: " + key, *lines]
    if length:
        given.append(b"content-length: %d" % len(body))
    return b"\r\n".join([*given, b"", b""]) + body


# What may be run, as long as it is run once: strange, but nobody's harm.
STRANGE = {
    "json-nested-100000-deep": lambda key: raw(
        key, b"content-type: application/json", body=b"[" * DEEP + b"]" * DEEP
    ),
    "json-never-closed": lambda key: raw(
        key, b"content-type: application/json", body=b'{"a":' * DEEP
    ),
    "json-with-huge-number": lambda key: raw(
        key, b"content-type: application/json", body=b"1" * 10_000
    ),
    "json-that-is-not-utf8": lambda key: raw(
        key, b"content-type: application/json", body=b'{"a": "\xff\xfe"}'
    ),
    "json-with-lone-surrogates": lambda key: raw(
        key, b"content-type: application/json", body=rb'{"\ud800": "\udfff"}'
    ),
    "json-with-nul": lambda key: raw(
        key, b"content-type: application/json", body=b'{"a": "\\u0000"}\0'
    ),
    "json-with-same-names": lambda key: raw(
        key, b"content-type: application/json", body=b'{"a": 1, "a": 2}'
    ),
    "form-of-separators": lambda key: raw(
        key, b"content-type: application/x-www-form-urlencoded", body=b"&&==&%zz&%&=" * 1000
    ),
    "multipart-without-boundary": lambda key: raw(
        key, b"content-type: multipart/form-data", body=b"--x\r\n\r\n--x--"
    ),
    "multipart-with-empty-boundary": lambda key: raw(
        key, b'content-type: multipart/form-data; boundary=""', body=b"----"
    ),
    "multipart-never-closed": lambda key: raw(
        key, b"content-type: multipart/form-data; boundary=x", body=b"--x\r\n" * 1000
    ),
    "multipart-with-huge-boundary": lambda key: raw(
        key, b"content-type: multipart/form-data; boundary=" + b"x" * 50_000, body=b"--x"
    ),
    "content-type-of-other-bytes": lambda key: raw(key, b"content-type: \xff\xfe;\xfd=\xfc"),
    "content-type-twice": lambda key: raw(
        key, b"content-type: application/json", b"content-type: text/plain"
    ),
    "credentials-of-other-bytes": lambda key: raw(key, b"authorization: \xff\xfe\xfd"),
    "cookies-without-end": lambda key: raw(key, b"cookie: " + b"session=;=;" * 5_000),
    "request-id-of-other-bytes": lambda key: raw(key, b"x-request-id: \xff\x80\xfe"),
    "request-id-too-long": lambda key: raw(key, b"x-request-id: " + b"x" * 10_000),
    "path-with-nul": lambda key: raw(key, line=b"POST /a%00b HTTP/1.1"),
    "path-that-is-not-utf8": lambda key: raw(key, line=b"POST /%ff%fe HTTP/1.1"),
    "path-with-surrogates": lambda key: raw(key, line=b"POST /%ed%a0%80 HTTP/1.1"),
    "path-of-60000": lambda key: raw(key, line=b"POST /" + b"x" * 60_000 + b" HTTP/1.1"),
    "path-with-quotes": lambda key: raw(key, line=b"POST /'%22;--%0d%0aset-cookie:a=b HTTP/1.1"),
    "query-of-other-bytes": lambda key: raw(key, line=b"POST /rerun?%00=%ff&&=&%zz HTTP/1.1"),
    "http-1-0": lambda key: raw(key, line=b"POST /rerun HTTP/1.0"),
    "a-whole-address": lambda key: raw(key, line=b"POST http://other/rerun HTTP/1.1"),
    "header-of-10-megabytes": lambda key: raw(key, b"x-large: " + b"x" * (10 * MEGABYTE)),
    "ten-thousand-headers": lambda key: raw(key, *(b"x-%d: y" % n for n in range(10_000))),
}

# What must be refused, by the server or by us: nothing of it runs.
BROKEN = {
    "key-of-10-megabytes": lambda key: raw(key + b"x" * (10 * MEGABYTE)),
    "key-with-nul": lambda key: raw(key + b"\0"),
    "key-of-other-bytes": lambda key: raw(key + b"\xff"),
    "key-folded-over-lines": lambda key: raw(key + b"\r\n folded"),
    "key-twice": lambda key: raw(key, b"Idempotency-Key: " + key),
    "key-twice-in-one-line": lambda key: raw(key + b", " + key),
    "key-empty": lambda key: raw(b""),
    "key-with-parameters": lambda key: raw(b'"' + key + b'"; a=1'),
    "key-never-closed": lambda key: raw(b'"' + key),
    "key-reserved": lambda key: raw(b"t-default:" + key),
    "name-with-a-space": lambda key: raw(key).replace(b"idempotency-key:", b"idempotency-key :"),
    "length-too-large": lambda key: raw(key, b"content-length: 1000", length=False),
    "length-negative": lambda key: raw(key, b"content-length: -1", length=False),
    "length-of-words": lambda key: raw(key, b"content-length: two", length=False),
    "length-beyond-all": lambda key: raw(key, b"content-length: " + b"9" * 40, length=False),
    "two-lengths": lambda key: raw(key, b"content-length: 1"),
    "length-and-chunks": lambda key: raw(key, b"transfer-encoding: chunked", body=b"0\r\n\r\n"),
    "chunks-of-nonsense": lambda key: raw(
        key, b"transfer-encoding: chunked", body=b"zz\r\n{}\r\n", length=False
    ),
    "chunks-never-ending": lambda key: raw(
        key, b"transfer-encoding: chunked", body=b"2\r\n{}\r\n", length=False
    ),
    "half-a-request": lambda key: raw(key)[:60],
    "no-http": lambda key: b"\x16\x03\x01\x02\x00\x01" + key,
}


# Those of which a server waits for the rest.
UNFINISHED = {"length-too-large", "length-beyond-all", "chunks-never-ending", "half-a-request"}


def attempt(server: Server, request: bytes, *, hang_up: bool = False) -> Answer | None:
    answer = send(server.port, request, hang_up=hang_up)
    assert answer is None or answer.status < 500, answer
    return answer


@pytest.mark.parametrize("name", STRANGE)
def test_a_strange_request_runs_once(server: Server, street: Street, name: str) -> None:
    request = STRANGE[name](name.encode())
    first, second = attempt(server, request), attempt(server, request)
    executions = street.effects(name)
    if first is not None and first.status == 201:
        assert second is not None
        assert (second.status, second.replayed, second.body) == (201, True, first.body)
        assert executions == [first.json["execution"]]
    else:
        assert executions == []
    assert street.effects("unprotected") == []


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_request_does_not_run(server: Server, street: Street, name: str) -> None:
    for _ in range(2):
        answer = attempt(server, BROKEN[name](name.encode()), hang_up=name in UNFINISHED)
        assert answer is None or 400 <= answer.status < 500
    assert street.effects(name) == []
    assert street.effects("unprotected") == []
    # The server is none the worse for it.
    assert server.ask("/rerun", f"after-{name}").status == 201


def test_what_follows_a_short_body_is_not_part_of_it(server: Server, street: Street) -> None:
    """The rest is taken for another request, which is none."""
    request = raw(b"short", b"content-length: 2", body=b"{}garbage", length=False)
    answer = attempt(server, request)
    assert answer is None or answer.status == 201
    assert len(street.effects("short")) <= 1
    assert street.effects("unprotected") == []
