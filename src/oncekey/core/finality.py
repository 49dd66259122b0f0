"""Which outcomes are kept. Everything else is released, so that a retry runs again."""

from __future__ import annotations

from oncekey.core.model import Kind, Outcome

# The caller can mend these (sign in, wait, retry) and must then be able to use the same key.
_MENDABLE = frozenset({401, 403, 408, 409, 425, 429})


def is_final(outcome: Outcome, *, server_errors: bool = False) -> bool:
    """Whether this outcome is everyone's answer from now on."""
    return outcome.kind is not Kind.RESPONSE or is_final_status(outcome.status, server_errors)


def is_final_status(status: int, server_errors: bool) -> bool:
    """The same for the status of an HTTP answer; `server_errors` says whether 5xx are kept too."""
    if status >= 500:
        return server_errors
    return status not in _MENDABLE
