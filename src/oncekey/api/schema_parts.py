"""What schemas of answers are made of."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
TEXT_OR_NULL: Schema = {"type": ["string", "null"]}
TIME: Schema = {"type": "string", "format": "date-time"}
TIME_OR_NULL: Schema = {"type": ["string", "null"], "format": "date-time"}
YES_NO: Schema = {"type": "boolean"}
NUMBER: Schema = {"type": "integer", "minimum": 0}
ANY: Schema = {}


def words(kind: type[IntEnum]) -> Schema:
    return {"type": "string", "enum": [each.name.lower() for each in kind]}


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def object_of(description: str, required: Schema, optional: Schema | None = None) -> Schema:
    return {
        "type": "object",
        "description": description,
        "required": list(required),
        "properties": {**required, **(optional or {})},
        "additionalProperties": False,
    }


def page(of: str, member: str, cursor: str, cursor_schema: Schema) -> Schema:
    return object_of(
        f"A page; `{cursor}` leads to the next one, and is null on the last.",
        {member: {"type": "array", "items": ref(of)}, cursor: cursor_schema},
    )


def looked_page(of: str, member: str) -> Schema:
    """Of a list that looks at so many at most."""
    return object_of(
        "Those found. `next_before` leads to the next page, also of one that is not full, and is "
        "null on the last.",
        {
            member: {"type": "array", "items": ref(of)},
            "next_before": TEXT_OR_NULL,
            "looked_back_to": {
                **TIME_OR_NULL,
                "description": "How far back was looked, when that is why the page is not full.",
            },
        },
    )
