"""The writer: what it is unsure of, it takes back before it takes the same again."""

import threading
from typing import Any

import pytest

from oncekey.core.errors import StoreUnavailable
from oncekey.core.ports import Abandon, Held, Peek, Take
from oncekey.core.waiting import ThreadWaiter
from oncekey.stores.writer import Writer

TAKE = Take(7, b"d" * 16, 1)


class Flaky:
    """A session that loses the first group, and knows which thread carried the others out."""

    def __init__(self) -> None:
        self.carried_out: list[tuple[int, Any]] = []
        self.is_lost = False

    def commit(self, requests: list[Any]) -> list[Any]:
        if not self.is_lost:
            self.is_lost = True
            raise StoreUnavailable("severed")
        self.carried_out += [(threading.get_ident(), request) for request in requests]
        return [Held(2) for _ in requests]

    def beat(self) -> None: ...

    def close(self) -> None: ...


def ask(writer: Writer, request: Any) -> Any:
    waiter = ThreadWaiter()
    writer.submit(request, waiter)
    return waiter.wait()


@pytest.mark.parametrize("threads", [1, 2])
def test_a_takeover_in_doubt_is_taken_back_before_the_next(threads: int) -> None:
    session = Flaky()
    writer = Writer(lambda: session, threads=threads)
    writer.start()
    with pytest.raises(StoreUnavailable):
        raise ask(writer, TAKE)
    assert ask(writer, TAKE) == Held(2)
    writer.close()
    assert [request for _, request in session.carried_out] == [Abandon(7, 2), TAKE]
    assert len({thread for thread, _ in session.carried_out}) == 1


def test_whoever_need_not_wait_for_that_goes_by_another_writer() -> None:
    session = Flaky()
    writer = Writer(lambda: session, threads=2)
    writer.start()
    with pytest.raises(StoreUnavailable):
        raise ask(writer, TAKE)
    assert ask(writer, Peek(b"d" * 16)) == Held(2)
    writer.close()
    assert [type(request) for _, request in session.carried_out] == [Peek, Abandon]
