"""The operation or step that runs here and now, for whoever names the calls that it makes.

It goes where a context goes: into tasks that are begun, and threads that are given it. It is over
when its outcome is everyone's: whoever still runs for it then is nobody's retry. One that failed or
was taken over is not over, and what is left of it sends the keys that its retry sends.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import blake2b
from typing import Any, Protocol

from oncekey.core.outgoing import Outgoing


class Current(Protocol):
    """What runs. `seed` is the same at every attempt of it, and nobody else's."""

    outgoing: Outgoing | None
    """The calls of this attempt; made by the first of them."""

    over: bool
    """Whether nobody will do it again."""

    def seed(self) -> bytes: ...


_MAKING = threading.Lock()
CURRENT: ContextVar[Current | None] = ContextVar("oncekey", default=None)


class Attempt:
    """One attempt of a step: `name` is that of the step, and where it stands."""

    __slots__ = ("_name", "outgoing", "over")

    def __init__(self, *name: str | int) -> None:
        self._name = name
        self.over = False
        self.outgoing: Outgoing | None = None

    def seed(self) -> bytes:
        return blake2b(repr(self._name).encode(), digest_size=32).digest()


@contextmanager
def within(current: Current) -> Iterator[None]:
    """While the code inside runs, it runs for `current`."""
    token = CURRENT.set(current)
    try:
        yield
    finally:
        CURRENT.reset(token)


def under(current: Current, function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, plain or async, run for `current`."""

    def call(*args: Any, **kwargs: Any) -> Any:
        with within(current):
            result = function(*args, **kwargs)
        return _awaited(current, result) if inspect.isawaitable(result) else result

    return call


async def _awaited(current: Current, result: Any) -> Any:
    with within(current):
        return await result


def outgoing() -> Outgoing | None:
    """The calls of what runs here; None outside of an operation, or when that is over."""
    current = CURRENT.get()
    if current is None or current.over:
        return None
    with _MAKING:
        # Two threads of one operation may come at once; they count together.
        if current.outgoing is None:
            current.outgoing = Outgoing(current.seed())
        return current.outgoing
