"""The one effect of a tick.

A tick is claimed in the ledger under its own key before anything is done, so that of any number of
schedulers one dispatches it. One that dies in between leaves its claim behind: the next takes it
over and dispatches once more under the same key, by which the engine or the receiver knows it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from oncekey.core.claim import Claim
from oncekey.core.decision import Proceed, Replay
from oncekey.core.errors import ClaimLost, ConfigurationError, KeyReused, OnceKeyError
from oncekey.core.execution import Sort
from oncekey.core.ledger import Ledger
from oncekey.core.model import Kind, Operation, Outcome, Ref
from oncekey.core.schedules import StoredSchedule
from oncekey.core.scope import Scope, namespace_of
from oncekey.durable.engine import Engine
from oncekey.schedules.calling import Done, Letter, Post
from oncekey.schedules.schedule import Spec, key_of

log = logging.getLogger("oncekey")

ENDPOINT = "schedule"
SUBJECT = "service:oncekey"

# Known longer than a scheduler is likely to be away between an effect and what is noted of it.
_RETENTION = "webhook"
_FAILED = 500
_encode = msgspec.json.Encoder().encode


class Elsewhere(NamedTuple):
    """Somebody else is at this tick."""


class NotHere(NamedTuple):
    """This process cannot do it now; another may, or this one later."""

    reason: str


class Dispatcher:
    """`secrets` are by schedule id, for those that name no variable of `environ`."""

    def __init__(
        self,
        ledger: Ledger,
        engine: Engine | None,
        post: Post,
        secrets: Mapping[str, str],
        environ: Mapping[str, str],
    ) -> None:
        self._ledger = ledger
        self._engine = engine
        self._post = post
        self._secrets = secrets
        self._environ = environ

    async def dispatch(
        self, stored: StoredSchedule, spec: Spec, tick: int
    ) -> Done | Elsewhere | NotHere:
        ref = ref_of(stored, tick)
        match await self._ledger.abegin(Operation(ref, retention=_RETENTION), observed=False):
            case Proceed(claim):
                return await self._run(claim, stored, spec, tick)
            case Replay(record):
                assert record.outcome is not None
                return done_of(record.outcome)
            case _:
                return Elsewhere()

    async def _run(
        self, claim: Claim, stored: StoredSchedule, spec: Spec, tick: int
    ) -> Done | Elsewhere | NotHere:
        try:
            done = await self._effect(stored, spec, tick)
            if isinstance(done, Done):
                await claim.asettle(_outcome_of(done))
                _tell(stored, tick, done)
            else:
                await claim.arelease()
        except ClaimLost:
            return Elsewhere()
        finally:
            # Cut off in the middle: whoever is next asks under the same key what came of it.
            claim.abandon()
        return done

    async def _effect(self, stored: StoredSchedule, spec: Spec, tick: int) -> Done | NotHere:
        if spec.url is not None:
            return await self._call(spec.url, stored, spec, tick)
        return await self._start(spec.workflow or "", stored, spec, tick)

    async def _start(
        self, name: str, stored: StoredSchedule, spec: Spec, tick: int
    ) -> Done | NotHere:
        if self._engine is None:
            return NotHere("this process has no engine to start workflows with")
        key, value = key_of(stored.id, tick), _encode(spec.data)
        try:
            answer = await self._engine.start(stored.tenant, Sort.WORKFLOW, name, value, key=key)
        except KeyReused:
            return Done(True, "started before, with another input")
        except OnceKeyError as error:
            text = f"{error.code}: {error}"
            return NotHere(text) if error.retryable else Done(False, text)
        return Done(True, answer.execution.public_id)

    async def _call(
        self, url: str, stored: StoredSchedule, spec: Spec, tick: int
    ) -> Done | NotHere:
        if spec.secret_env is not None:
            secret, missing = self._environ.get(spec.secret_env), f"no variable {spec.secret_env}"
        else:
            secret, missing = self._secrets.get(stored.id), "no secret of its own for it"
        if not secret:
            return NotHere(f"this process has {missing}, and nothing is sent unsigned")
        body = _encode({"schedule_id": stored.id, "tick": tick, "data": spec.data})
        key = key_of(stored.id, tick)
        try:
            return await self._post.send(
                Letter(url, key, body, secret, spec.timeout, spec.attempts)
            )
        except ConfigurationError as error:
            return NotHere(str(error))


def ref_of(stored: StoredSchedule, tick: int) -> Ref:
    """Where the ledger keeps what became of a tick."""
    namespace = namespace_of(stored.tenant, subject=SUBJECT)
    return Ref(Scope(namespace, ENDPOINT), key_of(stored.id, tick))


def done_of(outcome: Outcome) -> Done:
    if outcome.kind is Kind.ERROR:
        return Done(False, outcome.body.decode())
    return Done(True, msgspec.json.decode(outcome.body, type=str))


def _tell(stored: StoredSchedule, tick: int, done: Done) -> None:
    if done.ok:
        log.info("schedule %s: tick %d: %s", stored.id, tick, done.text)
    else:
        log.error("schedule %s: tick %d failed: %s", stored.id, tick, done.text)


def _outcome_of(done: Done) -> Outcome:
    if done.ok:
        return Outcome(Kind.VALUE, body=_encode(done.text))
    return Outcome(Kind.ERROR, _FAILED, (), done.text.encode())
