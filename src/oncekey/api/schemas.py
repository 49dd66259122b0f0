"""The answers of the API as JSON Schema. `durable/shapes.py` makes what is described here."""

from __future__ import annotations

from oncekey.api.schema_parts import (
    ANY,
    NUMBER,
    TEXT,
    TEXT_OR_NULL,
    TIME,
    TIME_OR_NULL,
    YES_NO,
    Schema,
    object_of,
    page,
    ref,
    words,
)
from oncekey.core.execution import PromiseState, Sort, Status, Step

PROMISE: Schema = {
    "id": TEXT,
    "name": TEXT,
    "state": words(PromiseState),
    "key": TEXT_OR_NULL,
    "key_expires_at": TIME_OR_NULL,
    "timeout_at": TIME_OR_NULL,
    "resolved_by": TEXT_OR_NULL,
    "created_at": TIME,
    "settled_at": TIME_OR_NULL,
    "workflow_id": TEXT_OR_NULL,
}
PROMISE_ENDS: Schema = {
    "value": {"description": "What it was resolved with."},
    "error": {"description": "What it was rejected with."},
}

EXECUTION: Schema = {
    "id": TEXT,
    "kind": words(Sort),
    "name": TEXT,
    "status": words(Status),
    "key": TEXT_OR_NULL,
    "input": ANY,
    "created_at": TIME,
    "completed_at": TIME_OR_NULL,
    "expires_at": TIME_OR_NULL,
    "forked_from": TEXT_OR_NULL,
}
EXECUTION_ENDS: Schema = {
    "result": {"description": "What it succeeded with."},
    "error": {"anyOf": [ref("Failure"), {"type": "null"}]},
}
FAILURE: Schema = {
    "type": "object",
    "description": "Why something failed.",
    "required": ["code", "message"],
    "properties": {"code": TEXT, "message": TEXT, "data": ANY, "status": NUMBER},
}
CONTROLLED = object_of(
    "What became of a workflow.",
    {"workflow_id": TEXT, "status": TEXT, "idempotency_replayed": YES_NO},
)
DOCUMENT: Schema = {"type": "object", "description": "An OpenAPI document."}

SCHEMAS: dict[str, Schema] = {
    "Failure": FAILURE,
    "Execution": object_of("A workflow or a task.", EXECUTION, EXECUTION_ENDS),
    "Entry": object_of(
        "A finished step.",
        {
            "step": {"type": "integer", "minimum": 1},
            "kind": words(Step),
            "name": TEXT,
            "failed": YES_NO,
            "attempts": NUMBER,
            "started_at": TIME,
            "at": TIME,
        },
        {"value": ANY, "error": ANY},
    ),
    "Promise": object_of("Something that is waited for.", PROMISE, PROMISE_ENDS),
    "NewPromise": object_of(
        "A promise, with its token when one was asked for.",
        PROMISE,
        {**PROMISE_ENDS, "token": {"type": "string", "description": "Told once, here."}},
    ),
    "Settled": object_of(
        "What became of a resolution or a rejection.",
        {
            "promise": {"anyOf": [ref("Promise"), {"type": "null"}]},
            "already_resolved": YES_NO,
            "idempotency_key_used": YES_NO,
            "idempotency_key_new": YES_NO,
            "resolved_by": TEXT_OR_NULL,
            "parked_until": TIME_OR_NULL,
        },
    ),
    "Published": object_of(
        "What became of an event.",
        {
            "event_id": TEXT,
            "matched": NUMBER,
            "idempotency_key_used": YES_NO,
            "idempotency_key_new": YES_NO,
        },
    ),
    "Controlled": CONTROLLED,
    "Event": object_of(
        "An event as it was published.",
        {
            "id": TEXT,
            "key": TEXT,
            "data": ANY,
            "headers": ANY,
            "created_at": TIME,
            "expires_at": TIME,
        },
    ),
    "Health": object_of("It is fine.", {"status": {"const": "ok"}}),
    "Document": DOCUMENT,
    "WorkflowsPage": page("Execution", "workflows", "next_before", TEXT_OR_NULL),
    "TasksPage": page("Execution", "tasks", "next_before", TEXT_OR_NULL),
    "PromisesPage": page("Promise", "promises", "next_before", TEXT_OR_NULL),
    "EventsPage": object_of(
        "The newest; `more` tells whether some were left out.",
        {"events": {"type": "array", "items": ref("Event")}, "more": YES_NO},
    ),
    "JournalPage": page(
        "Entry", "entries", "next_after", {"type": ["integer", "null"], "minimum": 1}
    ),
}
