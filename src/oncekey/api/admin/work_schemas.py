"""Durable work as admins see it, as JSON Schema."""

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
    looked_page,
    object_of,
    ref,
    words,
)
from oncekey.api.schemas import EXECUTION, EXECUTION_ENDS, PROMISE, PROMISE_ENDS
from oncekey.core.execution import PromiseKind, Status, Step


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


_WHOLE: Schema = {
    **YES_NO,
    "description": "False when a value is more than 64 KiB: then it is the beginning of its text.",
}
_PROMISE: Schema = {"tenant": TEXT, **PROMISE, "whole": _WHOLE}
_STEP = object_of(
    "A finished step.",
    {
        "seq": {**TEXT, "description": "Its position in the code; of no meaning but its own."},
        "from_step": {"type": "integer", "minimum": 1, "description": "As `fork` takes it."},
        "kind": words(Step),
        "name": TEXT,
        "started_at": TIME,
        "at": {**TIME, "description": "When it ended."},
        "duration_ms": NUMBER,
        "attempts": NUMBER,
        "failed": YES_NO,
        "value": {**TEXT, "description": "JSON, at most 4 KiB of it; of a failure if it failed."},
        "whole": YES_NO,
        "promise_id": TEXT_OR_NULL,
        "key": {**TEXT_OR_NULL, "description": "Of the promise."},
        "settled_by": {**TEXT_OR_NULL, "description": "A request key, or the id of an event."},
        "called": {**TEXT_OR_NULL, "description": "The workflow or task it called or started."},
    },
)
_WAIT = object_of(
    "Something that is waited for now.",
    {
        "kind": words(PromiseKind),
        "name": TEXT,
        "promise_id": TEXT_OR_NULL,
        "key": TEXT_OR_NULL,
        "since": TIME,
        "due_at": TIME_OR_NULL,
        "topic": TEXT_OR_NULL,
        "condition": TEXT_OR_NULL,
        "trouble": {
            **TEXT_OR_NULL,
            "description": "Why the condition could not be told, or the last attempt failed.",
        },
        "attempts": NUMBER,
        "target": {**TEXT_OR_NULL, "description": "The workflow or task whose end it is."},
    },
)
_EXECUTION: Schema = {
    "tenant": TEXT,
    **EXECUTION,
    "whole": _WHOLE,
    "waits_for": {
        **_or_null(_WAIT),
        "description": "An attempt to come, an event or a promise; in a list if among the newest.",
    },
}
LEAD = object_of(
    "Something that followed. Its `state` is `gone` when it is not kept any more.",
    {
        "kind": {"enum": ["workflow", "task", "promise", "event", "service"]},
        "id": TEXT_OR_NULL,
        "name": TEXT_OR_NULL,
        "state": TEXT,
        "detail": TEXT,
    },
)
_EVENT: Schema = {
    "tenant": TEXT,
    "id": TEXT,
    "key": {**TEXT, "description": "What workflows wait for."},
    "data": ANY,
    "headers": ANY,
    "created_at": TIME,
    "expires_at": TIME,
    "whole": _WHOLE,
    "matched": {**YES_NO, "description": "Whether every wait it could fit has been looked at."},
}


SCHEMAS: dict[str, Schema] = {
    "AnyExecution": object_of("A workflow or a task of any tenant.", _EXECUTION, EXECUTION_ENDS),
    "WholeExecution": object_of(
        "A workflow or a task of any tenant, and what has to do with it.",
        {
            **_EXECUTION,
            "operation_id": {**TEXT_OR_NULL, "description": "Of its key."},
            "holder": {"enum": ["alive", "lapsed", None], "description": "Of one that is running."},
            "must_end_by": TIME_OR_NULL,
            "called_by": {**TEXT_OR_NULL, "description": "The execution that waits for its end."},
            "forked_at": {"type": ["integer", "null"], "description": "A step of `forked_from`."},
            "forks": {
                "type": "array",
                "items": TEXT,
                "description": "Ids, of those among the newest 200 of its name.",
            },
        },
        EXECUTION_ENDS,
    ),
    "Timeline": object_of(
        "Steps, a page of them, and what is waited for; `next_after` is null on the last page.",
        {
            "steps": {"type": "array", "items": _STEP},
            "count": {**NUMBER, "description": "Of all finished steps."},
            "next_after": {"type": ["integer", "null"], "minimum": 1},
            "waits": {"type": "array", "items": _WAIT},
        },
    ),
    "AnyPromise": object_of("Something that is waited for, of any tenant.", _PROMISE, PROMISE_ENDS),
    "WholePromise": object_of(
        "Something that is waited for, by whom, and who settled it.",
        {
            **_PROMISE,
            "operation_id": {**TEXT_OR_NULL, "description": "Of its key."},
            "waiter": _or_null(
                object_of("Who waits.", {"id": TEXT, "name": TEXT, "status": words(Status)})
            ),
            "settled_by": _or_null(
                object_of(
                    "Who settled it; `id` is that of an admin's API key, or of a webhook.",
                    {
                        "kind": {"enum": ["request", "admin", "delivery"]},
                        "key": TEXT,
                        "operation_id": TEXT_OR_NULL,
                        "id": TEXT_OR_NULL,
                    },
                )
            ),
        },
        PROMISE_ENDS,
    ),
    "AnySettled": object_of(
        "What became of a resolution or a rejection.",
        {"promise": ref("AnyPromise"), "already_resolved": YES_NO},
    ),
    "AnyEvent": object_of("An event of any tenant, as it was published.", _EVENT),
    "WholeEvent": object_of(
        "An event of any tenant, and who went on with it.",
        {
            **_EVENT,
            "woke": {
                "type": "array",
                "items": object_of("Who waited for it.", {"id": TEXT, "name": TEXT}),
                "description": "Looked for among the 50 waits that ended of those made before it.",
            },
        },
    ),
    "AnyPublished": object_of(
        "What became of an event; `matched` counts what it woke.",
        {"event_id": TEXT, "matched": NUMBER},
    ),
    "AnyEventsPage": looked_page("AnyEvent", "events"),
    "AnyExecutionsPage": looked_page("AnyExecution", "workflows"),
    "AnyPromisesPage": looked_page("AnyPromise", "promises"),
}
