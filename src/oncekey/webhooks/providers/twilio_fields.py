"""What names a form of Twilio: the SID of what it is about, and what became of it.

Names and values of a form are signed without anything between them. Whoever has a signed form can
move the ends of its fields, so a name counts only if it cannot be had by moving them: no SID has a
capital beyond F in its middle, a status is a known word, and is signed after the SID, so that one
that is cut short has none.
"""

from __future__ import annotations

import re

from oncekey.core.errors import IdentifierMissing
from oncekey.webhooks import identifiers
from oncekey.webhooks.signing import Fields

_SID = re.compile(r"[A-Z]{2}[0-9a-zA-F]{1,62}")
_OF_MESSAGES = frozenset(
    """accepted scheduled canceled queued sending sent delivered undelivered failed receiving
    received read partially_delivered""".split()
)
_OF_RECORDINGS = frozenset("in-progress completed absent failed".split())
_OF_CALLS = frozenset(
    "queued initiated ringing in-progress completed busy failed no-answer canceled".split()
)
# What Twilio sends under two names, as one thing, has one identifier under both.
_KINDS = (
    ("MessageSid", ("MessageStatus", "SmsStatus"), _OF_MESSAGES),
    ("SmsSid", ("SmsStatus",), _OF_MESSAGES),
    ("RecordingSid", ("RecordingStatus",), _OF_RECORDINGS),
    ("CallSid", ("CallStatus",), _OF_CALLS),
)


def name_in(fields: Fields) -> str:
    """`MessageSid:MessageStatus`, or what other products have in its place."""
    for named, statuses, known in _KINDS:
        sid, status = identifiers.field_of(fields, named), _first(fields, statuses)
        if sid is None or status not in known or not _SID.fullmatch(sid):
            continue
        if not (named == "CallSid" and _is_a_turn(fields, status)):
            return f"{sid}:{status}"
    raise IdentifierMissing(
        "the delivery has neither a token of Twilio nor a SID with its status, such as "
        "MessageSid and MessageStatus"
    )


def _first(fields: Fields, names: tuple[str, ...]) -> str | None:
    return next((value for name in names if (value := identifiers.field_of(fields, name))), None)


def _is_a_turn(fields: Fields, status: str) -> bool:
    """A call asks many times what to do while it is in progress: each is something of its own."""
    return status == "in-progress" and "CallbackSource" not in fields
