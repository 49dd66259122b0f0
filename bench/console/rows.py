"""A store's tables as an installation has them after a busy day, row by row.

Nothing is random: two fills differ by the time of day only. What is rare is old, where a list comes
to it last.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from oncekey.core.execution import PromiseState, Sort, Status, execution_id_of
from oncekey.core.model import Ref
from oncekey.core.scope import Scope, namespace_of
from oncekey.core.work import ENGINE
from oncekey.stores.rows import encode_headers

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
SPAN_MS = 20 * HOUR_MS
# The number of something carries its millisecond above these bits.
NUMBER_BITS = 21

COMMON_TENANT, RARE_TENANT = "acme", "rarely"
ENDPOINTS = ("POST /orders", "POST /orders", "POST /orders", "POST /refunds", "PATCH /users/{id}")
RARE_ENDPOINT = "POST /rare"
NAMES = ("process_order", "process_order", "send_mail", "import_stock")
RARE_NAME = "rare_report"
WEBHOOKS = tuple(f"wh_{'abcdefghijklmnopqrstuvwxyz2345'[n:] + 'a' * n}" for n in range(20))
VERDICTS = ("accepted", "accepted", "accepted", "replayed", "in-flight")
HEADERS = encode_headers(((b"content-type", b"application/json"), (b"x-request-id", b"r" * 20)))
# The first process that opens a store.
OWNER = 1
IN_FLIGHT = 500
ABOVE_FLOOR = 20_000


class Amounts(NamedTuple):
    keys: int = 1_000_000
    workflows: int = 100_000
    promises: int = 20_000
    """Without a workflow."""
    events: int = 200_000
    deliveries: int = 300_000
    audits: int = 50_000


class Table(NamedTuple):
    name: str
    columns: tuple[str, ...]
    rows: Iterable[tuple[Any, ...]]


class Day:
    """Everything, as of `now`."""

    def __init__(self, now: int, amounts: Amounts) -> None:
        self.now = now
        self.amounts = amounts

    def tables(self) -> Iterator[Table]:
        yield Table("oncekey_claims", _CLAIM, self._claims())
        yield Table("oncekey_outcomes", _OUTCOME, self._outcomes())
        yield Table("oncekey_executions", _EXECUTION, self._executions())
        yield Table("oncekey_journal", _ENTRY, self._journal())
        yield Table("oncekey_promises", _PROMISE, self._promises())
        yield Table("oncekey_events", _EVENT, self._events())
        yield Table("oncekey_webhooks", _WEBHOOK, self._webhooks())
        yield Table("oncekey_deliveries", _DELIVERY, self._deliveries())
        yield Table("oncekey_audit", _AUDIT, self._audit())
        yield Table("oncekey_api_keys", _API_KEY, self._api_keys())

    def number(self, kind: int, place: int, count: int) -> int:
        """Of what is at this place among so many of its kind: old ones have low places."""
        return (self._at(place, count) << NUMBER_BITS) + (place * 8 + kind) % (1 << NUMBER_BITS)

    def _at(self, place: int, count: int) -> int:
        return self.now - SPAN_MS + place * (SPAN_MS - 1000) // count

    def ref(self, place: int) -> Ref:
        """Of a plain key."""
        is_rare = place < 10
        tenant = RARE_TENANT if is_rare else COMMON_TENANT if place % 3 else f"t{place % 200:03}"
        endpoint = RARE_ENDPOINT if is_rare else ENDPOINTS[place % 5]
        namespace = namespace_of(tenant, "web", f"user:{place % 5000}")
        return Ref(Scope(namespace, endpoint), f"order-{place:07}")

    # -- keys ----------------------------------------------------------------------------

    @property
    def floor(self) -> int:
        """Whoever claimed all this is gone, and left something unsettled above this number."""
        return self.number(0, max(0, self.amounts.keys - ABOVE_FLOOR), self.amounts.keys)

    def _claims(self) -> Iterator[tuple[Any, ...]]:
        keys = self.amounts.keys
        for place in range(keys):
            at, owner = self._at(place, keys), 0 if self._is_abandoned(place) else OWNER
            yield self._claim(self.number(0, place, keys), self.ref(place), at, owner)
        for place in range(0, self.amounts.workflows, 2):
            number = self.number(1, place, self.amounts.workflows)
            at, ref = self._at(place, self.amounts.workflows), _keyed("start", f"start-{place}")
            yield self._claim(number, ref, at, ENGINE, workflow=self._workflow_id(place))
        for place in range(self.amounts.promises):
            number = self.number(2, place, self.amounts.promises)
            at, ref = self._at(place, self.amounts.promises), _keyed("promise", f"pay-{place}")
            yield self._claim(number, ref, at, ENGINE, promise=f"pr_{number:016x}:payment")

    def _claim(
        self,
        number: int,
        ref: Ref,
        at: int,
        owner: int,
        *,
        workflow: str | None = None,
        promise: str | None = None,
    ) -> tuple[Any, ...]:
        digest, (scope, key) = ref.digest, ref
        return (
            number, digest, scope.namespace, scope.endpoint, key, digest, owner, 1, "req-1",
            "interactive", at, at + DAY_MS, workflow, promise,
        )  # fmt: skip

    def _outcomes(self) -> Iterator[tuple[Any, ...]]:
        keys, workflows = self.amounts.keys, self.amounts.workflows
        small, large = b'{"ok":true,"filler":"' + b"x" * 250 + b'"}', b'"' + b"y" * 16_000 + b'"'
        for place in range(keys):
            if self._is_in_flight(place) or self._is_abandoned(place):
                continue
            at = self._at(place, keys)
            status = 500 if place % 97 == 0 else 422 if place % 31 == 0 else 201
            body = large if place % 100 == 7 else small
            number = self.number(0, place, keys)
            yield (number, 1, 0, status, HEADERS, body, at + 5, at + 5 + DAY_MS)
        for place in range(0, workflows, 2):
            status = self._status(place)
            if status.is_over:
                at, kind = self._at(place, workflows), 1 if status is Status.SUCCEEDED else 2
                number = self.number(1, place, workflows)
                yield (number, 1, kind, 0, b"", b'"done"', at + 50, at + 50 + DAY_MS)

    def _is_in_flight(self, place: int) -> bool:
        """Of those above the floor."""
        since = self.amounts.keys - ABOVE_FLOOR
        return place > since and (place - since) % (ABOVE_FLOOR // IN_FLIGHT) == 0

    def _is_abandoned(self, place: int) -> bool:
        return place % 20_000 == 19_999

    # -- durable work --------------------------------------------------------------------

    def _status(self, place: int) -> Status:
        if place >= self.amounts.workflows - 40:
            return Status.RUNNING if place % 2 else Status.READY
        if place % 10 == 3:
            return Status.WAITING
        by_rest = {1: Status.FAILED, 2: Status.FAILED, 4: Status.PAUSED, 5: Status.CANCELLED}
        return by_rest.get(place % 100, Status.SUCCEEDED)

    def _workflow_id(self, place: int) -> str:
        return execution_id_of(Sort.WORKFLOW, self.number(1, place, self.amounts.workflows))

    def _executions(self) -> Iterator[tuple[Any, ...]]:
        count = self.amounts.workflows
        given = json.dumps({"id": 42, "items": ["x" * 100] * 2}).encode()
        for place in range(count):
            at, status = self._at(place, count), self._status(place)
            over = at + 50 if status.is_over else None
            result = None if status < Status.SUCCEEDED else _RESULT[status is Status.SUCCEEDED]
            owner = OWNER if status is Status.RUNNING else 0
            name = RARE_NAME if place < 5 else NAMES[place % 4]
            tenant = RARE_TENANT if place < 10 else COMMON_TENANT if place % 3 else "globex"
            yield (
                self.number(1, place, count), tenant, 0, name, given, int(status), owner, 1, at, 0,
                DAY_MS, int(place % 2 == 0), 0, 0, over, None if over is None else over + DAY_MS,
                result,
            )  # fmt: skip

    def _journal(self) -> Iterator[tuple[Any, ...]]:
        count = self.amounts.workflows
        for place in range(count):
            number, at = self.number(1, place, count), self._at(place, count)
            for seq in range(4):
                body = b'{"charge":"ch_1"}'
                yield (number, seq, 0, f"step-{seq}", b"f" * 16, 0, body, 1, at + seq, at + seq)

    def _promises(self) -> Iterator[tuple[Any, ...]]:
        count = self.amounts.workflows
        for place in range(count):
            status, execution = self._status(place), self.number(1, place, count)
            at, number = self._at(place, count), self.number(3, place, count)
            kind = 1 if place % 5 == 0 else 0
            waits = status is Status.WAITING
            state = PromiseState.PENDING if waits else PromiseState.RESOLVED
            due_at = self.now + DAY_MS if waits else None
            yield self._promise(number, kind, state, at, execution, due_at)
        for place in range(self.amounts.promises):
            at, number = self._at(place, self.amounts.promises), 0
            number = self.number(2, place, self.amounts.promises)
            state = PromiseState(place % 5 if place % 50 == 0 else 1)
            yield self._promise(number, 0, state, at, None, None)

    def _promise(
        self,
        number: int,
        kind: int,
        state: PromiseState,
        at: int,
        execution: int | None,
        due_at: int | None,
    ) -> tuple[Any, ...]:
        is_over = state is not PromiseState.PENDING
        return (
            number, COMMON_TENANT, kind, "payment", int(state), at, execution,
            None if execution is None else 9, b"f" * 16, int(execution is None), due_at,
            b'{"paid":true}' if is_over else None, "key-1" if is_over else None,
            at + 40 if is_over else None, 0, self.now + 7 * DAY_MS if is_over else None,
        )  # fmt: skip

    def _events(self) -> Iterator[tuple[Any, ...]]:
        count = self.amounts.events
        for place in range(count):
            at = self._at(place, count)
            tenant = RARE_TENANT if place < 10 else COMMON_TENANT
            topic = "rare:happened" if place < 10 else f"parcel:{place % 50}"
            data = json.dumps({"number": place, "filler": "z" * 150}).encode()
            number = self.number(4, place, count)
            yield (number, tenant, topic, data, b"{}", at, at + 7 * DAY_MS, 1, 0)

    # -- the rest ------------------------------------------------------------------------

    def _webhooks(self) -> Iterator[tuple[Any, ...]]:
        for place, each in enumerate(WEBHOOKS):
            at = self.now - SPAN_MS + place
            yield (
                each, COMMON_TENANT, "web", "stripe", 'event:"paid"', f"shop {place}", "refuse",
                "[]", 1, at, at,
            )  # fmt: skip

    def _deliveries(self) -> Iterator[tuple[Any, ...]]:
        count = self.amounts.deliveries
        for place in range(count):
            at = self._at(place, count)
            is_rare = place < 10
            verdict = "uncertain" if is_rare else VERDICTS[place % 5]
            operation = self.number(0, place % self.amounts.keys, self.amounts.keys)
            yield (
                self.number(5, place, count), WEBHOOKS[-1 if is_rare else place % 19], at, verdict,
                f"evt_{place}", "", operation, 1200, 1, at + 7 * DAY_MS,
            )  # fmt: skip

    def _audit(self) -> Iterator[tuple[Any, ...]]:
        count = self.amounts.audits
        for place in range(count):
            at = self._at(place, count)
            actor = "cli:rare" if place < 5 else f"admin:ak_{place % 7}"
            tenant = COMMON_TENANT if place % 2 else None
            number = self.number(6, place, count)
            yield (number, at, actor, "key.purge", f"op_{place:016x}", tenant, '{"force": false}')

    def _api_keys(self) -> Iterator[tuple[Any, ...]]:
        for place in range(500):
            name = f"ak_{place:020}"
            yield (name, name.encode(), COMMON_TENANT, "web", "service:x", "", self.now, "caller")


def _keyed(endpoint: str, key: str) -> Ref:
    return Ref(Scope(namespace_of(COMMON_TENANT, "_tenant", "service:oncekey"), endpoint), key)


_RESULT = {True: b'"done"', False: b'{"code":"boom","message":"it broke"}'}
_CLAIM = (
    "id", "digest", "namespace", "endpoint", "key", "fingerprint", "owner", "fence", "request_id",
    "retention", "created_at", "expires_at", "workflow_id", "promise_id",
)  # fmt: skip
_OUTCOME = ("id", "fence", "kind", "status", "headers", "body", "completed_at", "expires_at")
_EXECUTION = (
    "id", "tenant", "sort", "name", "input", "status", "owner", "fence", "created_at", "wakes",
    "keep", "keyed", "frees_key", "called", "completed_at", "expires_at", "result",
)  # fmt: skip
_ENTRY = (
    "execution", "seq", "step", "name", "fingerprint", "failed", "body", "attempts", "started_at",
    "at",
)  # fmt: skip
_PROMISE = (
    "id", "tenant", "kind", "name", "state", "created_at", "execution", "seq", "fingerprint",
    "keyed", "due_at", "body", "settled_by", "settled_at", "attempts", "expires_at",
)  # fmt: skip
_EVENT = (
    "id", "tenant", "topic", "data", "headers", "created_at", "expires_at", "matched", "settled",
)  # fmt: skip
_WEBHOOK = (
    "id", "tenant", "project", "provider", "follows", "label", "repeats", "secrets", "version",
    "created_at", "updated_at",
)  # fmt: skip
_DELIVERY = (
    "id", "webhook", "at", "verdict", "identifier", "reason", "operation", "size", "times",
    "expires_at",
)  # fmt: skip
_AUDIT = ("id", "at", "actor", "action", "target", "tenant", "details")
_API_KEY = ("id", "digest", "tenant", "project", "subject", "label", "created_at", "role")
