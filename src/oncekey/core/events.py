"""What happens, told to whoever observes. Observers must be quick and never raise."""

from __future__ import annotations

from collections import Counter
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from oncekey.core.model import Record

Way = Literal["new", "replay", "conflict", "mismatch", "refused", "passed", "failed"]
"""How a request was answered: by the handler (`new`, or `passed` without protection), by what was
kept, by a refusal, or not as it should have been."""


TRACEPARENT = b"oncekey-traceparent"
"""A line that is kept with an answer, as the last one, and never shown: the span it was made in."""


class Observer(Protocol):
    """`namespace` says whose it was, `detail` what else there is to know of this event."""

    def __call__(
        self, event: str, endpoint: str, namespace: str = "", detail: str | int = ""
    ) -> None: ...


class Tally:
    """Counts events by name; the observer when nothing else is asked for."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def __call__(
        self, event: str, endpoint: str, namespace: str = "", detail: str | int = ""
    ) -> None:
        self.counts[event] += 1


class Seen:
    """One request while it is answered. Whoever handles it writes down what it turns out to be."""

    # Defaults of the class: most requests have little to add, and making one must cost nothing.
    namespace = ""
    key = ""
    way: Way = "new"
    case = ""
    policy = ""
    source = ""
    operation = 0
    """Its number, once there is one."""
    invocation = ""
    """Of Restate, where that carried it."""
    code = ""
    """Of the problem that was its answer."""
    told = False
    """Whether it was counted as one without a key."""
    span: Any = None

    def __init__(self, endpoint: str, began: float) -> None:
        self.endpoint = endpoint
        self.began = began


class Watch:
    """An observer who sees whole requests as well, and what the store does for them."""

    observe: Observer
    tracing: Any = None
    """Who makes spans of requests and of runs; see `observe/traces.py`."""

    def begin(self, endpoint: str, began: float | None = None) -> Seen:
        """A request has come, now or when `perf_counter` said `began`; `end` must follow."""
        return Seen(endpoint, perf_counter() if began is None else began)

    def end(self, seen: Seen, status: int) -> None:
        """It was answered so; 0 when it was left without an answer."""

    def replayed(
        self,
        endpoint: str,
        namespace: str,
        key: str,
        record: Record,
        status: int,
        began: float,
        policy: str = "",
    ) -> None:
        """A request with a key in its header was answered from memory, at once: all there is to say
        of it, in one call."""

    def committed(self, size: int, seconds: float) -> None:
        """The store has written a group of `size` requests."""

    def swept(self, deleted: int, seconds: float) -> None:
        """What was expired is gone."""
