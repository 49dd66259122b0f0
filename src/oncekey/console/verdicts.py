"""Verdicts of deliveries in plain words: what one means, why it came to be, and what to do."""

from __future__ import annotations

import re

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
    "parked": "Nobody waited for it yet: it is parked until a promise with its key is made.",
    "published": "It was published as an event.",
    "resolved": "It resolved a promise.",
    "resolved-before": "The promise had been settled before, so this changed nothing.",
    "started": "It started a workflow.",
}
_CODE = re.compile(r"([a-z-]+): (.+)")


def meaning_of(verdict: str) -> str:
    return _MEANINGS.get(verdict, "")


def reason_of(reason: str) -> str:
    """The reason of the log as a sentence; what is not known is shown as it is."""
    if reason in _DONE:
        return _DONE[reason]
    found = _CODE.fullmatch(reason)
    if found is None:
        return reason
    word, rest = found.groups()
    if word in _DONE:
        return f"{_DONE[word].rstrip('.')} ({rest})."
    return sentence_of(rest)
