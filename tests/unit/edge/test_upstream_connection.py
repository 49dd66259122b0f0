"""A connection, byte by byte: whatever pieces an answer comes in, its listener is told the same."""

import asyncio
import socket
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oncekey.upstream import Upstream
from oncekey.upstream.connection import Connection
from tests.fixtures.answers import Case, answers, split
from tests.fixtures.puppets import Heard

Told = tuple[int, object, bytes]


class Wire(asyncio.Transport):
    """Takes what is written; the test says what comes back."""

    def __init__(self, line: socket.socket) -> None:
        super().__init__({"socket": line})
        self.written: list[bytes] = []
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = True


@pytest.fixture(scope="module")
def line() -> Iterator[socket.socket]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours


def connected(line: socket.socket) -> tuple[Upstream, Connection]:
    upstream = Upstream("http://shop", idle=600)
    connection = Connection(upstream, 600)
    connection.connection_made(Wire(line))
    upstream.rest(connection)
    return upstream, connection


def told(upstream: Upstream, connection: Connection, case: Case, pieces: list[bytes]) -> Told:
    heard = Heard()
    upstream.ask(b"HEAD" if case.bodiless else b"GET", b"/", [], b"", heard)
    for piece in pieces:
        connection.data_received(piece)
    if heard.told[-1] not in {"whole", "ended"}:
        assert case.ends == "closed"
        connection.eof_received()
    assert heard.error is None
    return heard.status, heard.headers, heard.body


@given(case=answers(), cuts=st.lists(st.integers(0, 600), max_size=12))
def test_a_listener_is_told_the_same_in_whatever_pieces_an_answer_comes(
    line: socket.socket, case: Case, cuts: list[int]
) -> None:
    ways = [[case.raw], split(case.raw, cuts), [bytes([byte]) for byte in case.raw], [case.raw]]
    upstream, connection = connected(line)
    ends = []
    for pieces in ways:
        if not upstream.load.idle:
            upstream, connection = connected(line)
        ends.append(told(upstream, connection, case, pieces))
    assert len(set(ends)) == 1
    assert (ends[0][0], ends[0][2]) == (case.status, case.body)


@given(case=answers(), more=st.binary(min_size=1, max_size=20))
def test_a_connection_with_bytes_beyond_an_answer_is_never_used_again(
    line: socket.socket, case: Case, more: bytes
) -> None:
    for pieces in [[case.raw + more], [case.raw, more]]:
        upstream, connection = connected(line)
        heard = Heard()
        upstream.ask(b"HEAD" if case.bodiless else b"GET", b"/", [], b"", heard)
        for piece in pieces:
            connection.data_received(piece)
        assert not upstream.load.idle
        if heard.error is not None:
            assert "was asked" in str(heard.error)
