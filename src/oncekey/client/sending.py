"""The walk of a caller: freeze the request, send it until its answer is known, keep the answer.

One source for blocking and async clients: each walk is a generator of steps that a client drives.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple, NoReturn

import httpx

from oncekey.client.answer import Answer, Kept, Lines, Source
from oncekey.client.backoff import Backoff
from oncekey.client.dialect import Dialect
from oncekey.client.errors import (
    ClientError,
    GaveUp,
    InFlight,
    IntentChanged,
    IntentTooOld,
    NotRecovered,
)
from oncekey.client.happenings import Answered, Attempted, Failed, Happening, Retrying
from oncekey.client.intents import Frozen, Intents, Record
from oncekey.client.verdict import Again, Stop, Verdict, verdict_of
from oncekey.core.clock import Clock
from oncekey.core.errors import StoreUnavailable
from oncekey.core.steps import Steps

log = logging.getLogger("oncekey.client")

_LARGEST_REMEMBERED = 1 << 20
_BY_KEY = "/by-idempotency-key/"
_UNKNOWN = "not-found"


class Send(NamedTuple):
    """Send it once. The answer is what came, or the `httpx.RequestError` that it ended with."""

    request: Frozen
    key: str
    credentials: Lines
    left: float
    """Seconds that there are for it."""


class Rest(NamedTuple):
    seconds: float


class Keep(NamedTuple):
    """A verb of the store, which may wait for the disk."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Terms:
    """What a client was told when it was made."""

    intents: Intents
    dialect: Dialect
    backoff: Backoff
    remember: float
    safe_for: float
    clock: Clock
    random: Callable[[], float]
    hook: Callable[[Happening], object] | None

    def tell(self, happening: Happening) -> None:
        if self.hook is None:
            return
        try:
            self.hook(happening)
        except Exception:
            log.exception("a hook of the client failed; the request goes on")


class Sending:
    """One intent on its way to its answer."""

    def __init__(self, terms: Terms, record: Record) -> None:
        self._terms = terms
        self.record = record
        self._attempts = 0
        """Of the walk that is under way."""
        self._credentials: Lines = ()

    def send(self, request: Frozen, credentials: Lines = ()) -> Steps[Answer]:
        """Send the request, or learn what became of it."""
        self._begin(credentials)
        now = self._terms.clock.now()
        kept: Record = yield Keep(self._terms.intents.freeze, (self.record, request, now))
        assert kept.request is not None
        if kept.request.fingerprint != request.fingerprint:
            raise IntentChanged(
                f"the intent {kept.name!r} was captured with another request; "
                "another effect needs another name",
                key=kept.key,
            )
        self.record = kept
        if kept.answer is not None:
            remembered = self._answer(kept.answer, "remembered")
            return (yield from self._over(remembered, keep=False))
        return (yield from self._until_known(kept.request))

    def resume(self, credentials: Lines = (), *, force: bool = False) -> Steps[Answer | None]:
        """Send what was frozen; nothing if it never was, or was given up."""
        self._begin(credentials)
        known = yield from self._look()
        if known is not None or self.record.request is None:
            return known
        return (yield from self._until_known(self.record.request, force=force))

    def recover(self, credentials: Lines = ()) -> Steps[Answer | None]:
        """Ask what became of it, and cause nothing."""
        self._begin(credentials)
        known = yield from self._look()
        asked = self.record.request
        if known is not None or asked is None:
            return known
        if not self._terms.dialect.recovers:
            raise self._failed(NotRecovered("this server cannot be asked", key=self.record.key))
        path = httpx.URL(asked.url).copy_with(query=None, fragment=None)
        url = f"{str(path).rstrip('/')}{_BY_KEY}{self.record.key}"
        answer = yield from self._ask(Frozen("GET", url, (), b"", b""), "recovered")
        return (yield from self._recovered(answer))

    def _recovered(self, answer: Answer) -> Steps[Answer | None]:
        """Only what is marked is the answer to the intent; and only who knows of the routes may
        say that there is none."""
        if answer.replayed:
            return (yield from self._over(answer))
        if answer.status_code == 404 and answer.code == _UNKNOWN:
            return None
        verdict = self._verdict(answer)
        error: type[ClientError] = NotRecovered
        if answer.status_code == 202:
            error = InFlight
        elif isinstance(verdict, Stop):
            error = verdict.error
        raise self._failed(error(key=self.record.key, answer=answer))

    def _begin(self, credentials: Lines) -> None:
        self._attempts, self._credentials = 0, credentials

    def _look(self) -> Steps[Answer | None]:
        """What is kept of it by now, maybe by somebody else: its answer, if that is there."""
        kept: Record | None = yield Keep(self._terms.intents.find, (self.record,))
        bare = Record(self.record.origin, self.record.name, self.record.key, self.record.created_at)
        self.record = kept or bare
        if kept is None or kept.answer is None:
            return None
        return (yield from self._over(self._answer(kept.answer, "remembered"), keep=False))

    # -- until it is known ---------------------------------------------------------------

    def _until_known(self, request: Frozen, *, force: bool = False) -> Steps[Answer]:
        self._check_age(force)
        answer = yield from self._ask(request, "sent")
        return (yield from self._over(answer))

    def _check_age(self, force: bool) -> None:
        record, now = self.record, self._terms.clock.now()
        sent_at = now if record.sent_at is None else record.sent_at
        if force or now - sent_at <= self._terms.safe_for * 1000:
            return
        raise self._failed(
            IntentTooOld(
                f"the intent {record.name!r} was first sent more than {self._terms.safe_for:g} "
                "seconds ago, and the server may have forgotten its key: recover() asks for the "
                "answer, resume(force=True) sends it all the same, abandon() gives it up",
                key=record.key,
            )
        )

    def _ask(self, request: Frozen, source: Source) -> Steps[Answer]:
        """An answer that there is no use in asking for again."""
        terms, started, failures = self._terms, self._terms.clock.steady(), 0
        for tries in count(1):
            self._attempts += 1
            terms.tell(Attempted(self.record.name, self.record.key, self._attempts))
            left = terms.backoff.deadline - (terms.clock.steady() - started) / 1000
            reply = yield Send(request, self.record.key, self._credentials, left)
            answer, again = self._judge(reply, source)
            if again is None:
                assert answer is not None
                return answer
            failures += not again.running
            pause = terms.backoff.pause(tries, again.after, terms.random)
            if again.running:
                # One that was taken over may be asked for at once, and may run for long.
                pause = max(pause, terms.backoff.first)
            spent = (terms.clock.steady() - started) / 1000
            if failures >= terms.backoff.attempts or spent + pause > terms.backoff.deadline:
                self._give_up(again.reason, answer, reply)
            name, key = self.record.name, self.record.key
            terms.tell(Retrying(name, key, self._attempts, again.reason, pause))
            yield Rest(pause)
        raise AssertionError("there is always another attempt")

    def _judge(
        self, reply: Kept | httpx.RequestError, source: Source
    ) -> tuple[Answer | None, Again | None]:
        if isinstance(reply, httpx.RequestError):
            return None, Again(f"{type(reply).__name__}: {reply}".rstrip(": "))
        answer = self._answer(reply, source)
        verdict = self._verdict(answer)
        return answer, verdict if isinstance(verdict, Again) else None

    def _verdict(self, answer: Answer) -> Verdict:
        return verdict_of(answer, self._terms.dialect, self._terms.clock.now() / 1000)

    def _give_up(self, reason: str, answer: Answer | None, reply: Any) -> NoReturn:
        error = GaveUp(
            f"no answer to {self.record.name!r} after {self._attempts} attempts, the last one: "
            f"{reason}; the intent is pending, resume() goes on with it",
            key=self.record.key,
            answer=answer,
        )
        raise self._failed(error) from (reply if isinstance(reply, Exception) else None)

    # -- what the caller gets ------------------------------------------------------------

    def _over(self, answer: Answer, *, keep: bool = True) -> Steps[Answer]:
        """There is no use in asking again: keep what is known, and tell it."""
        verdict = self._verdict(answer)
        if keep and not (isinstance(verdict, Stop) and not verdict.final):
            yield from self._keep(answer)
        if isinstance(verdict, Stop):
            raise self._failed(verdict.error(key=self.record.key, answer=answer))
        self._terms.tell(Answered(self.record.name, self.record.key, answer))
        return answer

    def _keep(self, answer: Answer) -> Steps[None]:
        terms, record = self._terms, self.record
        kept = answer.kept if len(answer.kept.body) <= _LARGEST_REMEMBERED else None
        settle = Keep(terms.intents.settle, (record, kept, terms.clock.now()))
        try:
            yield settle if terms.remember > 0 else Keep(terms.intents.forget, (record,))
        except StoreUnavailable:
            # The caller has its answer all the same; the intent stays pending, and is replayed.
            log.exception("the answer to the intent %r cannot be kept", record.name)

    def _answer(self, kept: Kept, source: Source) -> Answer:
        asked = self.record.request
        assert asked is not None
        return Answer(
            kept,
            httpx.Request(asked.method, asked.url),
            key=self.record.key,
            source=source,
            attempts=self._attempts,
            dialect=self._terms.dialect,
        )

    def _failed(self, error: ClientError) -> ClientError:
        self._terms.tell(Failed(self.record.name, self.record.key, error))
        return error
