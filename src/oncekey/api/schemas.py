"""The answers of the API as JSON Schema. `durable/shapes.py` makes what is described here."""

from __future__ import annotations

from typing import Any

from oncekey.core.execution import PromiseState, Sort, Status, Step

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_TEXT_OR_NULL: Schema = {"type": ["string", "null"]}
_TIME: Schema = {"type": "string", "format": "date-time"}
_TIME_OR_NULL: Schema = {"type": ["string", "null"], "format": "date-time"}
_YES_NO: Schema = {"type": "boolean"}
_NUMBER: Schema = {"type": "integer", "minimum": 0}
_ANY: Schema = {}


def _words(words: type[Sort | Status | Step | PromiseState]) -> Schema:
    return {"type": "string", "enum": [each.name.lower() for each in words]}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(description: str, required: Schema, optional: Schema | None = None) -> Schema:
    return {
        "type": "object",
        "description": description,
        "required": list(required),
        "properties": {**required, **(optional or {})},
        "additionalProperties": False,
    }


def _page(of: str, member: str, cursor: str, cursor_schema: Schema) -> Schema:
    return _object(
        f"A page; `{cursor}` leads to the next one, and is null on the last.",
        {member: {"type": "array", "items": _ref(of)}, cursor: cursor_schema},
    )


_PROMISE: Schema = {
    "id": _TEXT,
    "name": _TEXT,
    "state": _words(PromiseState),
    "key": _TEXT_OR_NULL,
    "key_expires_at": _TIME_OR_NULL,
    "timeout_at": _TIME_OR_NULL,
    "resolved_by": _TEXT_OR_NULL,
    "created_at": _TIME,
    "settled_at": _TIME_OR_NULL,
    "workflow_id": _TEXT_OR_NULL,
}
_PROMISE_ENDS: Schema = {
    "value": {"description": "What it was resolved with."},
    "error": {"description": "What it was rejected with."},
}

SCHEMAS: dict[str, Schema] = {
    "Failure": {
        "type": "object",
        "description": "Why something failed.",
        "required": ["code", "message"],
        "properties": {"code": _TEXT, "message": _TEXT, "data": _ANY, "status": _NUMBER},
    },
    "Execution": _object(
        "A workflow or a task.",
        {
            "id": _TEXT,
            "kind": _words(Sort),
            "name": _TEXT,
            "status": _words(Status),
            "key": _TEXT_OR_NULL,
            "input": _ANY,
            "created_at": _TIME,
            "completed_at": _TIME_OR_NULL,
            "expires_at": _TIME_OR_NULL,
            "forked_from": _TEXT_OR_NULL,
        },
        {
            "result": {"description": "What it succeeded with."},
            "error": {"anyOf": [_ref("Failure"), {"type": "null"}]},
        },
    ),
    "Entry": _object(
        "A finished step.",
        {
            "step": {"type": "integer", "minimum": 1},
            "kind": _words(Step),
            "name": _TEXT,
            "failed": _YES_NO,
            "attempts": _NUMBER,
            "started_at": _TIME,
            "at": _TIME,
        },
        {"value": _ANY, "error": _ANY},
    ),
    "Promise": _object("Something that is waited for.", _PROMISE, _PROMISE_ENDS),
    "NewPromise": _object(
        "A promise, with its token when one was asked for.",
        _PROMISE,
        {**_PROMISE_ENDS, "token": {"type": "string", "description": "Told once, here."}},
    ),
    "Settled": _object(
        "What became of a resolution or a rejection.",
        {
            "promise": {"anyOf": [_ref("Promise"), {"type": "null"}]},
            "already_resolved": _YES_NO,
            "idempotency_key_used": _YES_NO,
            "idempotency_key_new": _YES_NO,
            "resolved_by": _TEXT_OR_NULL,
            "parked_until": _TIME_OR_NULL,
        },
    ),
    "Published": _object(
        "What became of an event.",
        {
            "event_id": _TEXT,
            "matched": _NUMBER,
            "idempotency_key_used": _YES_NO,
            "idempotency_key_new": _YES_NO,
        },
    ),
    "Controlled": _object(
        "What became of a workflow.",
        {"workflow_id": _TEXT, "status": _TEXT, "idempotency_replayed": _YES_NO},
    ),
    "Event": _object(
        "An event as it was published.",
        {
            "id": _TEXT,
            "key": _TEXT,
            "data": _ANY,
            "headers": _ANY,
            "created_at": _TIME,
            "expires_at": _TIME,
        },
    ),
    "Health": _object("It is fine.", {"status": {"const": "ok"}}),
    "Document": {"type": "object", "description": "An OpenAPI document."},
    "WorkflowsPage": _page("Execution", "workflows", "next_before", _TEXT_OR_NULL),
    "TasksPage": _page("Execution", "tasks", "next_before", _TEXT_OR_NULL),
    "PromisesPage": _page("Promise", "promises", "next_before", _TEXT_OR_NULL),
    "EventsPage": _object(
        "The newest; `more` tells whether some were left out.",
        {"events": {"type": "array", "items": _ref("Event")}, "more": _YES_NO},
    ),
    "JournalPage": _page(
        "Entry", "entries", "next_after", {"type": ["integer", "null"], "minimum": 1}
    ),
}
