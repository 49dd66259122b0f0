"""Verdicts of deliveries in plain words: what one means, why it came to be, and what to do."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from oncekey.console.wording import sentence_of

_MEANINGS = {
    "accepted": "It was the first with its identifier, and what follows was done.",
    "failed": "It was the first with its identifier, and what follows failed for good.",
    "replayed": "It came before: its provider was answered as then, and nothing was done again.",
    "repeated-body": "Its body came before under another identifier, so nothing was done.",
    "in-flight": "Another attempt was being worked on, so this one was to come again.",
    "released": "What follows could not be done then, so it was to come again.",
    "uncertain": "Whether what follows was done is not known.",
    "refused": "It was not believed, so nothing was done.",
}
_DONE = {
    "done-before": "An earlier attempt had done it already.",
    "outcome-unknown": "The process that worked on it died before it could say how it ended.",
    "internal-error": "Something broke in this server; its log says what.",
    "parked": "It came before anybody asked for it.",
    "published": "It was published as an event.",
    "resolved": "It resolved a promise.",
    "resolved-before": "The promise had been settled before, so this changed nothing.",
    "started": "It started a workflow.",
}
_PARKED = {
    True: "It came before anybody asked for it, and was taken when somebody did.",
    False: "Nobody has asked for it so far: it is parked until a promise with its key is made.",
}
_CODE = re.compile(r"([a-z-]+): (.+)")


def meaning_of(verdict: str) -> str:
    return _MEANINGS.get(verdict, "")


def reason_of(reason: str, *, taken: bool | None = None) -> str:
    """The reason of the log as a sentence; what is not known is shown as it is. `taken` tells
    whether what came early has been asked for since, where that is known."""
    found = _CODE.fullmatch(reason)
    word, rest = (reason, "") if found is None else found.groups()
    if word not in _DONE:
        return sentence_of(rest) if rest else reason
    meant = _DONE[word] if word != "parked" or taken is None else _PARKED[taken]
    return f"{meant.rstrip('.')} ({rest})." if rest else meant


def was_taken(leads: Sequence[Mapping[str, Any]]) -> bool | None:
    """Whether what came early has been asked for, by what the delivery led to; None where nothing
    tells."""
    promises = [each["id"] is not None for each in leads if each["kind"] == "promise"]
    return promises[0] if promises else None
