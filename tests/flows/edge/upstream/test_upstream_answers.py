"""Asking an upstream: requests and answers of every shape, on every kind of address."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from oncekey.core.errors import InvalidInput
from tests.fixtures.asking import OK, post, send
from tests.fixtures.http.servers import serving
from tests.fixtures.puppets import Heard, Line, puppet, reaching, says

pytestmark = pytest.mark.anyio


# Answers.


async def test_a_request_arrives_as_it_was_written_and_is_answered_whole() -> None:
    async with puppet(says(OK)) as behind, reaching(behind.url + "/base") as upstream:
        heard = Heard()
        headers = [(b"content-type", b"application/json"), (b"x-a", b"1"), (b"x-a", b"2")]
        upstream.ask(b"POST", b"/orders?a=b", headers, b'{"a": 1}', heard)
        await heard.end()
    assert heard.told == ["whole"]
    assert (heard.status, heard.body) == (200, b"ok")
    [seen] = behind.requests
    assert seen.line == b"POST /base/orders?a=b HTTP/1.1"
    assert seen.headers == [
        (b"host", behind.url.removeprefix("http://").encode()),
        *headers,
        (b"content-length", b"8"),
    ]
    assert seen.body == b'{"a": 1}'


async def test_an_answer_of_a_known_small_length_is_told_whole_though_it_comes_in_pieces() -> None:
    async with (
        puppet(says(*[bytes([byte]) for byte in OK])) as behind,
        reaching(behind.url) as upstream,
    ):
        for _ in range(3):
            heard = Heard()
            upstream.ask(b"POST", b"/", [], b"", heard)
            await heard.end()
            assert heard.told == ["whole"]
            assert (heard.status, heard.body) == (200, b"ok")
    assert len(behind.lines) == 1


@pytest.mark.parametrize(
    "raw, body",
    [
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX: y\r\n\r\n",
            b"ok",
        ),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b""),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK, b"ok"),
        (b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\nHTTP/1.1 102 Wait\r\n\r\n" + OK, b"ok"),
        (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok", b"ok"),
    ],
)
@pytest.mark.parametrize("dribble", [False, True])
async def test_an_answer_that_ends_in_a_place_of_its_own_leaves_the_connection_usable(
    raw: bytes, body: bytes, dribble: bool
) -> None:
    pieces = [bytes([byte]) for byte in raw] if dribble else [raw]
    async with puppet(says(*pieces)) as behind, reaching(behind.url) as upstream:
        for _ in range(3):
            answer = await post(upstream)
            assert (answer.status, answer.body, answer.rest) == (200, body, None)
            assert b"x" not in dict(answer.headers)
    assert len(behind.lines) == 1


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 200 OK\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
    ],
)
async def test_an_answer_that_ends_with_its_connection_is_followed_by_a_new_one(raw: bytes) -> None:
    async def play(line: Line) -> None:
        await line.request()
        await line.say(raw)

    async with puppet(play) as behind, reaching(behind.url) as upstream:
        for _ in range(2):
            assert (await post(upstream)).body == b"ok"
            assert upstream.load.idle == 0
    assert len(behind.lines) == 2


@pytest.mark.parametrize(
    "method, status",
    [(b"HEAD", b"200 OK"), (b"GET", b"204 No Content"), (b"GET", b"304 Not Modified")],
)
async def test_answers_without_a_body_end_with_their_head(method: bytes, status: bytes) -> None:
    raw = b"HTTP/1.1 " + status + b"\r\nContent-Length: 42\r\nEtag: x\r\n\r\n"
    async with puppet(says(raw)) as behind, reaching(behind.url) as upstream:
        for _ in range(3):
            answer = await send(upstream, method, b"/", [])
            assert answer.body == b""
            assert dict(answer.headers) == {b"content-length": b"42", b"etag": b"x"}
        assert upstream.load.idle == 1
    assert len(behind.lines) == 1


async def test_a_head_that_was_asked_for_with_get_has_its_body_again() -> None:
    async def play(line: Line) -> None:
        for raw in [OK, OK[:-2], OK]:
            await line.request()
            await line.say(raw)

    async with puppet(play) as behind, reaching(behind.url) as upstream:
        bodies = [
            (await send(upstream, method, b"/", [])).body for method in (b"GET", b"HEAD", b"GET")
        ]
    assert bodies == [b"ok", b"", b"ok"]


async def test_redirects_are_answers_and_no_proxy_of_the_environment_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ["http_proxy", "HTTP_PROXY", "ALL_PROXY"]:
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    raw = b"HTTP/1.1 307 There\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n"
    async with puppet(says(raw)) as behind, reaching(behind.url) as upstream:
        answer = await post(upstream)
    assert answer.status == 307
    assert (b"location", b"/elsewhere") in answer.headers
    assert len(behind.requests) == 1


@pytest.mark.parametrize(
    "options",
    [
        {"method": b"PO\r\nST"},
        {"target": b"/a\r\nX: y"},
        {"headers": [(b"a\r\nb", b"c")]},
        {"headers": [(b"a", b"b\r\nc: d")]},
        {"headers": [(b"transfer-encoding", b"chunked")]},
    ],
)
async def test_what_would_break_the_framing_is_never_sent(options: dict[str, bytes]) -> None:
    async with puppet(says(OK)) as behind, reaching(behind.url) as upstream:
        asked = {"method": b"POST", "target": b"/", "headers": [], **options}
        with pytest.raises(InvalidInput):
            await send(upstream, **asked, body=b"")  # type: ignore[arg-type]
        await post(upstream)
    assert len(behind.requests) == 1


# Where upstreams are.


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
async def test_an_upstream_has_an_address_or_a_name(host: str) -> None:
    async with puppet(says(OK), host=host) as behind, reaching(behind.url) as upstream:
        assert (await post(upstream)).status == 200


async def test_an_upstream_may_listen_on_a_unix_socket(tmp_path: Path) -> None:
    async with (
        puppet(says(OK), path=str(tmp_path / "app.sock")) as behind,
        reaching(behind.url + "/base") as upstream,
    ):
        assert (await post(upstream)).status == 200
    assert behind.requests[0].line == b"POST /base/orders HTTP/1.1"


# A real server.


async def service(scope: dict[str, str], receive, send) -> None:  # type: ignore[no-untyped-def]
    body = b""
    more = True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    headers = [] if scope["path"] == "/stream" else [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 201, "headers": headers})
    for start in range(0, len(body), 1000):
        piece = body[start : start + 1000]
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


@pytest.fixture(scope="module")
def uvicorn_url() -> Iterator[str]:
    with serving("asgi", service) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.mark.parametrize("target", [b"/", b"/stream"])
@pytest.mark.parametrize("size", [0, 10, 1000, 100_000])
async def test_uvicorn_answers_as_it_does_to_others(
    uvicorn_url: str, target: bytes, size: int
) -> None:
    body = bytes(range(250)) * (size // 250) + b"x" * (size % 250)
    async with reaching(uvicorn_url) as upstream, httpx.AsyncClient(base_url=uvicorn_url) as other:
        for given in [body, [body[:7], body[7:]]]:
            answer = await send(upstream, b"POST", target, [], given)
            assert (answer.status, answer.body) == (201, body)
        theirs = await other.post(target.decode(), content=body)
        assert theirs.content == body
        assert upstream.load == (0, 1, 0, 0)


async def test_uvicorn_under_a_crowd(uvicorn_url: str) -> None:
    async with reaching(uvicorn_url, max_connections=16) as upstream:
        bodies = [b"%d" % number * 50 for number in range(500)]
        answers = await asyncio.gather(*[post(upstream, body) for body in bodies])
        assert [answer.body for answer in answers] == bodies
