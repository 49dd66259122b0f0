"""The middle of an exchange: claim, run the view, keep its answer, then let it out.

A view outside of a transaction runs between claim and outcome. A view inside of one, its own or
that of ATOMIC_REQUESTS, shares it with the outcome: both are committed, or neither.
"""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

from django.core.exceptions import BadRequest, SuspiciousOperation
from django.core.handlers.exception import response_for_exception
from django.db import DatabaseError, connections, transaction
from django.http import Http404
from django.http.multipartparser import MultiPartParserError
from django.http.response import HttpResponseBase

from oncekey.core.claim import Claim
from oncekey.core.decision import Decision, Proceed
from oncekey.core.errors import ClaimLost, LedgerClosed, StoreError, StoreUnavailable, TerminalError
from oncekey.core.finality import is_final_status
from oncekey.core.ledger import Ledger
from oncekey.core.model import Kind, Operation, Outcome, Record
from oncekey.core.scope import Scope
from oncekey.core.steps import Steps
from oncekey.integrations.django.database import is_atomic
from oncekey.integrations.django.events import keep_events
from oncekey.integrations.django.exchange import (
    django_response,
    endpoint_of_request,
    mark,
    outcome_of_response,
    request_of,
)
from oncekey.integrations.django.identity import namespace_of_request
from oncekey.integrations.django.ledgers import is_inside, ledgers
from oncekey.integrations.django.preferences import preferences
from oncekey.integrations.django.steps import Run, Work, attach, begin, release, settle
from oncekey.integrations.environ import CLAIM
from oncekey.integrations.gatherer import Gatherer
from oncekey.integrations.watching import Request as Watched
from oncekey.wire.answer import WINNER_WAIT, first_marks
from oncekey.wire.body import Body
from oncekey.wire.exchange import operation_of, replay_of, response_of, terminal_outcome
from oncekey.wire.headers import Lines
from oncekey.wire.problem import Response, problem, problem_of, ran_but_not_stored
from oncekey.wire.rule import Rule

log = logging.getLogger("oncekey.django")

# Exceptions that Django itself answers with a 4xx; 403 is not among them, it is never kept.
_ANSWERED = (Http404, BadRequest, SuspiciousOperation, MultiPartParserError)


class Exchange:
    """One request with a key. `request` may be REST framework's, `http` is Django's own."""

    _ledger: Ledger

    def __init__(
        self,
        request: Any,
        http: Any,
        rule: Rule,
        lines: Lines,
        key: str,
        body: Body,
        *,
        atomic: bool,
        blocking: bool,
    ) -> None:
        self.http = http
        self._request = request
        self._rule = rule
        self._lines = lines
        self._key = key
        self._body = body
        self._atomic = atomic
        self._blocking = blocking
        self._shares = False
        self._running = False
        self._lost = False
        self.watched: Watched | None = None

    def steps(self) -> Steps[Any]:
        rule = self._rule
        try:
            operation = yield Work(self._plan)
            decision: Decision = yield begin(
                self._ledger,
                operation,
                wait=rule.wait,
                recover=rule.recover,
                seen=None if self.watched is None else self.watched.seen,
            )
        except (StoreError, LedgerClosed) as error:
            return (yield from self._without_ledger(error))
        if isinstance(decision, Proceed):
            return (yield from self._hold(decision.claim))
        return django_response(response_of(decision))

    def _plan(self) -> Operation:
        """Blocking: which ledger, in whose transaction, and what the operation is."""
        alias = preferences().database
        self._connection = connections[alias]
        self._ledger = ledgers().of(alias)
        # Async code has no transactions: there, claim and outcome are written one by one.
        self._shares = self._blocking and (self._atomic or is_atomic(self._connection))
        namespace = namespace_of_request(self._request, self._lines)
        if self.watched is not None:
            self.watched.is_of(namespace, self._key)
        return operation_of(
            request_of(self.http, self._lines, self._body),
            self._key,
            self._rule,
            Scope(namespace, endpoint_of_request(self.http)),
            self._lines.request_id,
        )

    def _without_ledger(self, error: StoreError | LedgerClosed) -> Steps[Any]:
        endpoint = endpoint_of_request(self.http)
        log.error("%s: the ledger cannot be used: %s", endpoint, error)
        if not self._rule.fail_open:
            return django_response(problem_of(error))
        if self.watched is not None:
            self.watched.pass_unprotected(namespace_of_request(self._request, self._lines))
        elif hasattr(self, "_ledger"):
            self._ledger.observe("unprotected", endpoint)
        return (yield Run())

    # -- the view and its outcome --------------------------------------------------------

    def _hold(self, claim: Claim) -> Steps[Any]:
        kept: Record | None = None
        self.http.META[CLAIM] = claim
        try:
            with self._transaction():
                self._lock(claim)
                self._running = True
                response = yield Run(claim)
                if self._keeps_events(response):
                    return self._tee(claim, response)
                outcome = self._final(response)
                if self._shares:
                    kept = self._settle_inside(claim, response, outcome)
        except TerminalError as error:
            outcome = terminal_outcome(error)
            response = django_response(Response(outcome.status, outcome.headers, outcome.body))
        except _ANSWERED as error:
            response = yield Work(partial(_answer_to, self.http, error))
            outcome = self._final(response)
        except Exception as error:
            yield from self._let_go(claim)
            if isinstance(error, StoreUnavailable) and not self._running:
                return django_response(problem_of(error))
            raise
        except BaseException:
            # Cut off in the middle: nobody knows how far it came, so it ends as a crash would.
            claim.abandon()
            raise
        if self._lost:
            return (yield from self._answer_of_winner(claim))
        if kept is not None:
            self._publish(claim, kept)
            return self._marked(claim, response, outcome)
        return (yield from self._conclude(claim, response, outcome))

    def _transaction(self) -> AbstractContextManager[None]:
        if not self._shares:
            return nullcontext()
        block: AbstractContextManager[None] = transaction.atomic(using=self._connection.alias)
        return block

    def _lock(self, claim: Claim) -> None:
        """SQLite refuses to write in a transaction that read before others wrote: write at once."""
        if not self._shares or self._connection.vendor != "sqlite" or is_inside(self._ledger):
            return
        from oncekey.integrations.django.models import IdempotencyKey

        try:
            IdempotencyKey.touch(self._connection.alias, claim.id)
        except DatabaseError as error:
            raise StoreUnavailable(f"SQLite: {error}") from error

    def _keeps_events(self, response: Any) -> bool:
        return (
            self._rule.store_events
            and not self._shares
            and getattr(response, "streaming", False)
            and response.get("Content-Type", "").startswith("text/event-stream")
            and self._is_final(response.status_code)
        )

    def _tee(self, claim: Claim, response: Any) -> Any:
        keep_events(response, Gatherer(self._ledger, self._rule, claim))
        mark(response, first_marks(claim.operation_id))
        return response

    def _is_final(self, status: int) -> bool:
        return is_final_status(status, self._rule.store_server_errors)

    def _final(self, response: Any) -> Outcome | None:
        """The outcome to keep; None for an answer that a retry may change."""
        # Django itself refuses what is no response; then nothing was answered.
        if not isinstance(response, HttpResponseBase) or not self._is_final(response.status_code):
            return None
        return outcome_of_response(response, self._rule)

    def _settle_inside(self, claim: Claim, response: Any, outcome: Outcome | None) -> Record | None:
        """Write the outcome into the view's transaction; None when that is to be rolled back."""
        # REST framework has turned an exception into this answer.
        failed = getattr(response, "exception", False) is True
        if failed or (outcome is None and self._atomic):
            self._connection.set_rollback(True)
        if outcome is None or self._connection.needs_rollback or claim.concluded:
            return None
        try:
            return claim.settle(outcome, transaction=self._connection)
        except ClaimLost:
            self._lost = True
            self._connection.set_rollback(True)
            return None

    def _publish(self, claim: Claim, kept: Record) -> None:
        """Committed: whoever attached to it in this process need not ask the store."""
        if not self._connection.in_atomic_block:
            claim.end(kept)

    def _conclude(self, claim: Claim, response: Any, outcome: Outcome | None) -> Steps[Any]:
        if claim.concluded and (outcome is not None or not claim.joined):
            # The view has settled it by itself.
            return self._marked(claim, response, outcome)
        try:
            if outcome is None:
                yield release(self._ledger, claim)
            else:
                yield settle(self._ledger, claim, outcome)
        except ClaimLost:
            return (yield from self._answer_of_winner(claim))
        except StoreError as error:
            log.warning("%s: the outcome is not stored yet: %s", claim.operation_id, error)
            return django_response(ran_but_not_stored(claim.operation_id))
        return self._marked(claim, response, outcome)

    def _let_go(self, claim: Claim) -> Steps[None]:
        if claim.concluded and not claim.joined:
            return
        try:
            yield release(self._ledger, claim)
        except ClaimLost:
            # What was settled in a transaction stays, if that was committed.
            return
        except StoreError as error:
            log.warning("%s: not released: %s", claim.operation_id, error)

    def _answer_of_winner(self, claim: Claim) -> Steps[Any]:
        """Our claim was taken over: the answer is the one that was kept, if there is one yet."""
        record: Record | None = yield attach(self._ledger, claim.operation, WINNER_WAIT)
        if record is None:
            return django_response(problem("claim-lost", operation_id=claim.operation_id))
        return django_response(replay_of(record))

    def _marked(self, claim: Claim, response: Any, outcome: Outcome | None) -> Any:
        if isinstance(response, HttpResponseBase):
            unkept = outcome is not None and outcome.kind is Kind.UNKEPT
            stored = not response.streaming and not unkept
            mark(response, first_marks(claim.operation_id, stored=stored))
        return response


def _answer_to(request: Any, error: Exception) -> Any:
    """Django's own answer to an exception; it looks for the one that is being handled."""
    try:
        raise error
    except _ANSWERED:
        return response_for_exception(request, error)
