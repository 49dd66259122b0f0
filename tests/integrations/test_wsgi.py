"""WSGI corners that no framework shows: write(), file wrappers, exc_info, close()."""

import io
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any
from wsgiref.util import FileWrapper, setup_testing_defaults
from wsgiref.validate import validator

import pytest

import oncekey
from oncekey import ConfigurationError, route
from oncekey.core.errors import RetentionUnknown
from oncekey.wsgi import IdempotencyMiddleware

App = Callable[[dict[str, Any], Any], Iterable[bytes]]


class Server:
    """Calls an app as a server does, and holds it to the letter of the protocol."""

    def __init__(self, app: App, **options: Any) -> None:
        self.ledger = oncekey.open("memory://")
        self.app = IdempotencyMiddleware(app, ledger=self.ledger, **options)

    def post(self, key: str | None = "k", body: bytes = b"", **variables: Any) -> "Answer":
        environ: dict[str, Any] = {
            "REQUEST_METHOD": "POST",
            "SCRIPT_NAME": "",
            "PATH_INFO": "/orders",
            "CONTENT_LENGTH": str(len(body)),
            "CONTENT_TYPE": "text/plain",
            "wsgi.input": io.BytesIO(body),
            "QUERY_STRING": "",
        }
        if key is not None:
            environ["HTTP_IDEMPOTENCY_KEY"] = key
        environ |= {name: value for name, value in variables.items() if value is not None}
        for name in [name for name, value in variables.items() if value is None]:
            environ.pop(name, None)
        setup_testing_defaults(environ)
        return Answer(validator(self.app), environ)


class Answer:
    def __init__(self, app: App, environ: dict[str, Any]) -> None:
        self.sent: list[bytes] = []
        iterable = app(environ, self._start)
        try:
            for chunk in iterable:
                assert self.status, "a chunk came before the first lines"
                self.sent.append(chunk)
        finally:
            iterable.close()  # type: ignore[attr-defined]

    def _start(self, status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
        if exc_info is not None and self.sent:
            raise exc_info[1]
        self.status, self.headers = status, dict(headers)
        return self.sent.append

    @property
    def body(self) -> bytes:
        return b"".join(self.sent)

    @property
    def is_replay(self) -> bool:
        return self.headers.get("idempotent-replayed") == "true"


PLAIN = [("Content-Type", "text/plain")]


def test_an_app_that_writes() -> None:
    def app(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        write = start_response("201 Created", [*PLAIN, ("Content-Length", "6")])
        write(b"one")
        write(b"two")
        return []

    server = Server(app)
    first, second = server.post(), server.post()

    assert first.body == second.body == b"onetwo"
    assert first.status == second.status == "201 Created"
    assert second.is_replay


def test_an_app_that_writes_a_stream() -> None:
    def app(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        write = start_response("200 OK", PLAIN)
        write(b"one")
        write(b"two")
        return [b"three"]

    server = Server(app)
    first = server.post()

    assert first.body == b"onetwothree"
    assert first.headers["idempotency-stored"] == "false"
    assert server.post().status == "409 Conflict"


def test_an_app_that_starts_when_it_is_iterated() -> None:
    def app(environ: dict[str, Any], start_response: Any) -> Iterator[bytes]:
        start_response("200 OK", PLAIN)
        yield b"late"

    server = Server(app)
    assert server.post().body == b"late"
    assert server.post().is_replay


def test_a_file() -> None:
    files = []

    def app(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        start_response("200 OK", [*PLAIN, ("Content-Length", "100000")])
        files.append(io.BytesIO(b"x" * 100000))
        return FileWrapper(files[-1])

    server = Server(app)
    assert server.post().body == server.post().body == b"x" * 100000
    assert len(files) == 1
    assert files[0].closed


def test_several_chunks_that_are_all_there_are_kept() -> None:
    def app(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        start_response("200 OK", PLAIN)
        return [b"one", b"", b"two"]

    server = Server(app)
    assert server.post().body == server.post().body == b"onetwo"


def test_one_chunk_that_is_too_large_is_not_kept() -> None:
    def app(environ: dict[str, Any], start_response: Any) -> Iterator[bytes]:
        start_response("200 OK", PLAIN)
        yield b"x" * 1001

    server = Server(app, max_stored_body=1000)
    first = server.post()

    assert len(first.body) == 1001
    assert first.headers["idempotency-stored"] == "false"
    assert server.post().status == "409 Conflict"


def test_an_error_page_takes_the_place_of_what_was_begun() -> None:
    def app(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        start_response("200 OK", PLAIN)(b"begun")
        try:
            int("no")
        except ValueError:
            start_response("400 Bad Request", PLAIN, sys.exc_info())
        return [b"sorry"]

    server = Server(app)
    first = server.post()

    assert (first.status, first.body) == ("400 Bad Request", b"sorry")
    assert server.post().is_replay


def test_an_error_after_the_first_lines_left_is_raised() -> None:
    def app(environ: dict[str, Any], start_response: Any) -> Iterator[bytes]:
        start_response("200 OK", PLAIN)
        yield b"one"
        yield b"two"
        try:
            int("no")
        except ValueError:
            start_response("500 Internal Server Error", PLAIN, sys.exc_info())

    with pytest.raises(ValueError, match="no"):
        Server(app).post()


class Closed:
    """Chunks that know whether they were closed."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self.closed = 0

    def __iter__(self) -> Iterator[bytes]:
        return self._chunks

    def close(self) -> None:
        self.closed += 1


def _raising() -> Iterator[bytes]:
    yield b"one"
    raise ValueError("no")


@pytest.mark.parametrize(
    "chunks, key",
    [
        ([b"one"], "k"),
        ([b"one", b"two", b"three"], "k"),
        (_raising(), "k"),
        ([], "k"),
        ([b"one"], None),
    ],
    ids=["whole", "stream", "raising", "empty", "without-key"],
)
def test_what_the_app_gives_is_closed_once(chunks: Iterable[bytes], key: str | None) -> None:
    given = Closed(chunks)

    def app(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        start_response("200 OK", PLAIN)
        return given

    with suppress(ValueError):
        Server(app).post(key)
    assert given.closed == 1


def test_an_app_that_gives_no_first_lines_fails_and_may_run_again() -> None:
    runs = []

    def app(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        runs.append(1)
        if len(runs) > 1:
            start_response("200 OK", PLAIN)
        return [b"body"]

    server = Server(app)
    with pytest.raises(AssertionError):
        server.post()
    assert server.post().status == "200 OK"


def test_an_app_that_is_cut_off_leaves_its_outcome_unknown() -> None:
    def app(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        raise SystemExit

    server = Server(app, takeover="refuse")
    with pytest.raises(SystemExit):
        server.post()
    assert b"outcome-unknown" in server.post().body


def read_all(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    length = environ.get("CONTENT_LENGTH", "none")
    body = environ["wsgi.input"].read(int(length) if length.isdigit() else 0)
    start_response("200 OK", PLAIN)
    return [f"{length} ".encode() + body]


def test_a_body_of_unknown_length_gets_one() -> None:
    server = Server(read_all)
    terminated = {"CONTENT_LENGTH": None, "wsgi.input_terminated": True}
    assert server.post(body=b"chunks", **terminated).body == b"6 chunks"


def test_a_body_without_length_or_end_is_not_read() -> None:
    server = Server(read_all)
    assert server.post(body=b"more", CONTENT_LENGTH=None).body == b"none "


def test_a_body_shorter_than_its_length_does_not_run() -> None:
    answer = Server(read_all).post(body=b"short", CONTENT_LENGTH="100")
    assert answer.status == "400 Bad Request"
    assert b"request-incomplete" in answer.body


def test_the_endpoint_is_the_pattern_of_the_route() -> None:
    seen = []

    def app(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        seen.append(environ["oncekey.claim"].operation.ref.scope)
        start_response("204 No Content", [])
        return []

    def whose(environ: dict[str, Any]) -> str:
        return f"user:{environ['REMOTE_USER']}"

    server = Server(app, routes=[route("/shops/{shop}/orders")], identity=whose)
    paths = {"SCRIPT_NAME": "/shops", "PATH_INFO": "/7/orders", "REMOTE_USER": "ada"}
    server.post(**paths)

    assert seen[0].endpoint == "POST /shops/{shop}/orders"
    assert seen[0].namespace == "t-default:_tenant:user:ada"


def test_a_mistake_in_the_rule_is_an_error_and_not_an_outage() -> None:
    with pytest.raises(RetentionUnknown):
        Server(read_all, retention="forever").post()
    with pytest.raises(ConfigurationError):
        Server(read_all, retries=3)
