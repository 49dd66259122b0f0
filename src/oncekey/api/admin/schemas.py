"""The answers to admins as JSON Schema. The rooms beside this one make what is described here."""

from __future__ import annotations

from enum import IntEnum
from typing import get_args

from oncekey.api.admin.work_schemas import LEAD
from oncekey.api.admin.work_schemas import SCHEMAS as WORK
from oncekey.api.schema_parts import (
    ANY,
    NUMBER,
    TEXT,
    TEXT_OR_NULL,
    TIME,
    TIME_OR_NULL,
    YES_NO,
    Schema,
    looked_page,
    object_of,
    page,
    ref,
    words,
)
from oncekey.api.schemas import CONTROLLED, DOCUMENT, FAILURE
from oncekey.core.api_keys import Role
from oncekey.core.deliveries import Verdict
from oncekey.core.execution import PromiseState, Status
from oncekey.core.model import Kind, LinkKind, State
from oncekey.core.webhooks import Repeats


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def _counts(kind: type[IntEnum]) -> Schema:
    return object_of("How many.", {each.name.lower(): NUMBER for each in kind})


_SECONDS: Schema = {"type": "number", "exclusiveMinimum": 0}
_RATE: Schema = {"type": "number", "description": "In a second."}
_SPAN: Schema = {"type": ["number", "null"], "description": "Milliseconds; null without requests."}
_SAMPLE = object_of(
    "Since the one before it.",
    {
        "at": TIME,
        **dict.fromkeys(
            ("requests", "replays", "conflicts", "mismatches", "refused", "failed"), _RATE
        ),
        **dict.fromkeys(("p50", "p95", "p99"), _SPAN),
        "in_flight": NUMBER,
    },
)
_SECRET: Schema = {
    "type": ["string", "null"],
    "description": "Told once; null when it was given, and to whoever asks again.",
}
_KEY: Schema = {
    "operation_id": TEXT,
    "key": TEXT,
    "endpoint": TEXT,
    "namespace": TEXT,
    "tenant": TEXT_OR_NULL,
    "state": words(State),
    "holder": {"enum": ["alive", "lapsed", None], "description": "Of one that is in progress."},
    "attempts": NUMBER,
    "request_id": TEXT_OR_NULL,
    "retention": TEXT,
    "status": {"type": ["integer", "null"]},
    "created_at": TIME,
    "completed_at": TIME_OR_NULL,
    "expires_at": TIME_OR_NULL,
}
_STANDS_FOR: Schema = {"kind": {"enum": list(get_args(LinkKind))}, "id": TEXT}
_OUTCOME = object_of(
    "What was answered, its body up to 64 KiB.",
    {
        "kind": words(Kind),
        "status": {"type": ["integer", "null"]},
        "headers": {"type": "array", "items": {"type": "array", "items": TEXT}},
        "bytes": NUMBER,
        "whole": YES_NO,
    },
    {"body": TEXT, "body_base64": {**TEXT, "description": "Of a body that is no text."}},
)
_WEBHOOK: Schema = {
    "id": TEXT,
    "tenant": TEXT,
    "project": TEXT,
    "provider": TEXT,
    "then": TEXT,
    "label": TEXT,
    "repeats": {"enum": list(get_args(Repeats))},
    "path": {**TEXT, "description": "Where the provider delivers."},
    "created_at": TIME,
}
_SECRETS: Schema = {
    "type": ["array", "null"],
    "description": "When each is good, newest first; null when they cannot be read.",
    "items": object_of("", {"created_at": TIME_OR_NULL, "until": TIME_OR_NULL}),
}
_DELIVERY: Schema = {
    "id": TEXT,
    "at": TIME,
    "verdict": {"enum": list(get_args(Verdict))},
    "identifier": TEXT,
    "operation_id": TEXT_OR_NULL,
    "reason": TEXT,
    "bytes": NUMBER,
    "times": {**NUMBER, "description": "How many it stands for."},
}
_ANY_DELIVERY: Schema = {
    **_DELIVERY,
    "webhook": TEXT,
    "tenant": {**TEXT_OR_NULL, "description": "Null when the webhook is gone."},
    "provider": TEXT_OR_NULL,
}
_API_KEY: Schema = {
    "id": TEXT,
    "role": {"enum": list(get_args(Role))},
    "tenant": TEXT,
    "project": TEXT,
    "subject": TEXT,
    "label": TEXT,
    "state": {"enum": ["good", "expired", "revoked"]},
    "created_at": TIME,
    "expires_at": TIME_OR_NULL,
    "revoked_at": TIME_OR_NULL,
}
_SCHEDULE: Schema = {
    "id": TEXT,
    "tenant": TEXT,
    "paused": YES_NO,
    "last_at": TIME_OR_NULL,
    "next_at": TIME,
    "updated_at": TIME,
}
_DECLARED: Schema = {
    "timing": TEXT,
    "workflow": TEXT_OR_NULL,
    "url": TEXT_OR_NULL,
    "missed": TEXT,
    "declared_by": TEXT,
    "error": {**TEXT, "description": "Why it cannot be read."},
}
_RUN = object_of(
    "A tick and what became of it.",
    {
        "tick": TIME,
        "operation_id": TEXT,
        "state": words(State),
        "text": {**TEXT, "description": "What it did, or why it failed."},
        "completed_at": TIME_OR_NULL,
    },
)
_ENDED: Schema = {
    "anyOf": [object_of("How a tick ended.", {"state": TEXT, "text": TEXT}), {"type": "null"}]
}

SCHEMAS: dict[str, Schema] = {
    **WORK,
    "Failure": FAILURE,
    "Census": object_of(
        "How much there is of what.",
        {
            "counted_at": TIME,
            "claims_in_progress": {**NUMBER, "description": "Durable work is not among them."},
            "oldest_claim_at": TIME_OR_NULL,
            "workflows": _counts(Status),
            "tasks": _counts(Status),
            "oldest_waiting_at": {**TIME_OR_NULL, "description": "Of a workflow or a task."},
            "promises": _counts(PromiseState),
            "oldest_pending_at": {**TIME_OR_NULL, "description": "Of a promise."},
        },
    ),
    "Pulse": object_of(
        "How the server has been.",
        {
            "every_seconds": {"type": "number"},
            "samples": {"type": "array", "items": _SAMPLE},
        },
    ),
    "Key": object_of(
        "A key, and what became of it.",
        {**_KEY, "stands_for": _or_null(object_of("What it is more than a request.", _STANDS_FOR))},
    ),
    "Record": object_of(
        "A key with its answer.",
        {
            **_KEY,
            "stands_for": _or_null(
                object_of(
                    "What it is more than a request, and its own state; null when it is gone.",
                    {**_STANDS_FOR, "state": TEXT_OR_NULL},
                )
            ),
            "outcome": _or_null(_OUTCOME),
            "leads_to": {"type": "array", "items": ref("Lead")},
            "deliveries": {
                "type": "array",
                "items": ref("Delivery"),
                "description": "Those that were this key or came again, the newest 20.",
            },
            "timeline": {
                "type": "array",
                "items": object_of("What happened when.", {"at": TIME, "what": TEXT}),
            },
        },
    ),
    "Purged": object_of(
        "A key that is forgotten; `purged` counts it and what was remembered of its body.",
        {"operation_id": TEXT, "key": TEXT, "purged": NUMBER},
    ),
    "Webhook": object_of("Where a provider delivers.", _WEBHOOK),
    "WholeWebhook": object_of(
        "Where a provider delivers, and with how many secrets.", {**_WEBHOOK, "secrets": _SECRETS}
    ),
    "NewWebhook": object_of("Where a provider delivers.", {**_WEBHOOK, "secret": _SECRET}),
    "Delivery": object_of("What came, and what became of it.", _DELIVERY),
    "AnyDelivery": object_of("What came, to whom, and what became of it.", _ANY_DELIVERY),
    "Lead": LEAD,
    "WholeDelivery": object_of(
        "What came, and where it led.",
        {
            **_ANY_DELIVERY,
            "then": {**TEXT_OR_NULL, "description": "What follows deliveries to the webhook now."},
            "key": {"anyOf": [ref("Key"), {"type": "null"}]},
            "leads_to": {"type": "array", "items": ref("Lead")},
            "advice": {**TEXT_OR_NULL, "description": "What to do, where there is something."},
        },
    ),
    "Tried": object_of(
        "What became of a test delivery.",
        {
            "status": {**NUMBER, "description": "What its provider would have heard."},
            "answer": {**TEXT, "description": "The beginning of it."},
            "sent": {**TEXT, "description": "The beginning of the body."},
            "items": {**NUMBER, "description": "How many it told of; the rest is of the first."},
            "verdict": {"enum": [*get_args(Verdict), None]},
            "reason": TEXT,
            "identifier": TEXT,
            "operation_id": TEXT_OR_NULL,
            "delivery_id": TEXT_OR_NULL,
        },
    ),
    "ApiKey": object_of("Who calls.", _API_KEY),
    "NewApiKey": object_of("Who calls, and with what.", {**_API_KEY, "secret": _SECRET}),
    "RetentionClass": object_of(
        "How long outcomes are kept.",
        {
            "class": TEXT,
            "seconds": _SECONDS,
            "from": {"enum": ["store", "configuration", "default"]},
        },
    ),
    "Retention": object_of(
        "Every class.", {"classes": {"type": "array", "items": ref("RetentionClass")}}
    ),
    "Schedule": object_of("What ticks when.", _SCHEDULE, _DECLARED),
    "ListedSchedule": object_of(
        "What ticks when, and whether that goes well.",
        {
            **_SCHEDULE,
            "last_state": {
                "enum": ["failed", "paused", None],
                "description": "Of its last run, if among the newest that did not end well.",
            },
            "overdue": {**YES_NO, "description": "Whether nobody began the next tick in time."},
        },
        _DECLARED,
    ),
    "WholeSchedule": object_of(
        "What ticks when, and what became of it.",
        {
            **_SCHEDULE,
            "data": ANY,
            "last_outcome": _ENDED,
            "upcoming": {"type": "array", "items": TIME},
            "runs": {
                "type": "array",
                "items": _RUN,
                "description": "The newest 10, of those kept.",
            },
        },
        _DECLARED,
    ),
    "Controlled": CONTROLLED,
    "AuditEntry": object_of(
        "Who changed what, and when.",
        {
            "id": TEXT,
            "at": TIME,
            "actor": TEXT,
            "action": TEXT,
            "target": TEXT,
            "tenant": TEXT_OR_NULL,
            "details": {"type": "object"},
        },
    ),
    "Document": DOCUMENT,
    "KeysPage": looked_page("Key", "keys"),
    "WebhooksPage": page("Webhook", "webhooks", "next_before", TEXT_OR_NULL),
    "AnyDeliveriesPage": looked_page("AnyDelivery", "deliveries"),
    "DeliveriesPage": page("Delivery", "deliveries", "next_before", TEXT_OR_NULL),
    "ApiKeysPage": page("ApiKey", "api_keys", "next_before", TEXT_OR_NULL),
    "SchedulesPage": page("ListedSchedule", "schedules", "next_after", TEXT_OR_NULL),
    "AuditPage": page("AuditEntry", "entries", "next_before", TEXT_OR_NULL),
}
