"""Who waits for the desk: one after the other, in the order in which they came."""

import threading

import pytest

from oncekey.stores.desk import Queue
from tests.fixtures.stores import until


def test_whoever_came_first_is_next_even_when_the_holder_comes_back() -> None:
    queue, order = Queue(), []

    def wait(name: str) -> None:
        with queue:
            order.append(name)

    queue.acquire()
    threads = []
    for name in ("a", "b", "c"):
        threads.append(threading.Thread(target=wait, args=(name,)))
        threads[-1].start()
        until(lambda: len(queue._waiting) == len(threads))
    queue.release()
    # It has been handed over already: whoever asks now is the last.
    wait("holder")
    for thread in threads:
        thread.join()
    assert order == ["a", "b", "c", "holder"]
    assert not queue._taken


class Interrupted:
    """A turn that never comes, or comes in the moment of an interruption."""

    def __init__(self, queue: Queue, *, late: bool) -> None:
        self._queue = queue
        self._late = late
        self._asked = 0

    def acquire(self) -> None:
        self._asked += 1
        if self._asked == 2:
            if self._late:
                self._queue.release()
            raise KeyboardInterrupt

    def release(self) -> None:
        """It is told that it is its turn."""


@pytest.mark.parametrize("late", [False, True])
def test_whoever_is_interrupted_leaves_the_queue(
    monkeypatch: pytest.MonkeyPatch, *, late: bool
) -> None:
    queue = Queue()
    queue.acquire()
    turn = Interrupted(queue, late=late)
    with monkeypatch.context() as patched:
        patched.setattr(threading, "Lock", lambda: turn)
        with pytest.raises(KeyboardInterrupt):
            queue.acquire()
    assert not queue._waiting
    if not late:
        queue.release()
    assert not queue._taken
