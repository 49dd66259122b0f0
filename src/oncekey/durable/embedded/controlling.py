"""Control operations: the key that each takes, and its answer, or what keeps it from being done."""

from __future__ import annotations

import json

from oncekey.core.answers import Controlled
from oncekey.core.errors import ControlRefused, NotFound, RequestKeyInvalid
from oncekey.core.work import Control
from oncekey.durable.engine import ControlAnswer

_MAX_REQUEST_KEY = 200
_DONE = {"cancel": "cancelled", "resume": "resumed", "fork": "forked"}


def check_request_key(key: str) -> str:
    """Trimmed. Raises `RequestKeyInvalid`."""
    if not isinstance(key, str):
        raise RequestKeyInvalid
    trimmed = key.strip()
    if not trimmed or len(trimmed.encode("utf-8", "surrogatepass")) > _MAX_REQUEST_KEY:
        raise RequestKeyInvalid
    if "\0" in trimmed or any("\ud800" <= each <= "\udfff" for each in trimmed):
        raise RequestKeyInvalid("a request key is text that can be stored, without NUL")
    return trimmed


def controlled_by(answer: Controlled, asked: Control, id: str) -> ControlAnswer:  # noqa: A002
    told = json.loads(answer.answer) if answer.answer else {}
    match answer.verdict:
        case "done" | "replayed":
            replayed = answer.verdict == "replayed"
            return ControlAnswer(told["workflow_id"], told["status"], replayed)
        case "unknown":
            raise unknown(id)
        case "failed":
            raise ControlRefused(f"{id} cannot be {_DONE[asked.action]}: {told['error']}")
        case "failed-before":
            raise ControlRefused(
                f"this request key was used before, and the {asked.action} failed: "
                f"{told['error']}; use a new key to try again"
            )
        case "other":
            raise ControlRefused(
                "this request key was used for another action, workflow or parameters; "
                "use a new key"
            )


def unknown(text: str) -> NotFound:
    return NotFound(f"there is no workflow or task {text[:100]!r}")
