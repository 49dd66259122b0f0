"""What an operator can do about a delivery that did not lead where it should, in a sentence."""

from __future__ import annotations

_PARKED = "parked"

# By verdict, and by what its reason holds; the first that fits is told.
_ADVICE: tuple[tuple[str, str, str], ...] = (
    (
        "refused",
        "the timestamp is",
        (
            "The delivery is older or newer than its provider allows: compare the clock of this "
            "server with the provider's. One that was sent long ago must be sent anew by the "
            "provider."
        ),
    ),
    (
        "refused",
        "there is no header",
        (
            "It was not signed, so it was not the provider, or signing is not turned on there: "
            "look at the webhook in the provider's settings."
        ),
    ),
    (
        "refused",
        "signature-invalid",
        (
            "Nobody with a secret of this webhook signed it. Was the secret changed at the "
            "provider? Give it here, in the console or with `oncekey webhooks rotate`; and where "
            "the URL is signed, `webhooks.public_url` must be what the provider has. Or somebody "
            "else sent it: then there is nothing to do."
        ),
    ),
    (
        "refused",
        "identifier-missing",
        (
            "It is signed, but has no identifier to make a key of, or one that is too long: the "
            "provider sends something else to this address than the webhook is for."
        ),
    ),
    (
        "refused",
        "not-found",
        "The webhook was deleted. Make another, and give its address to the provider.",
    ),
    (
        "released",
        "secrets-unavailable",
        (
            "The secrets could not be read: the key that opens them is missing or another, or the "
            "vault does not answer. The provider delivers it again."
        ),
    ),
    (
        "released",
        "name-unknown",
        (
            "No process has told that it runs this workflow: start the one that has its code, or "
            "correct what follows the webhook. The provider delivers it again."
        ),
    ),
    (
        "released",
        "upstream-unreachable",
        "The service behind could not be reached: start it. The provider delivers it again.",
    ),
    (
        "released",
        "the service behind answered",
        (
            "The service behind answered that it cannot do it now; its own log tells why. The "
            "provider delivers it again."
        ),
    ),
    (
        "released",
        "configuration",
        (
            "Nothing takes it here: add the route, or change what follows the webhook. The "
            "provider delivers it again."
        ),
    ),
    (
        "released",
        "",
        (
            "It could not be done then, and nothing was kept: the provider delivers it again. If "
            "it does not, send it once more from the provider's own pages."
        ),
    ),
    (
        "failed",
        "promise-over",
        (
            "It came too late: the promise had timed out or was cancelled, or its key had "
            "expired. Fork the workflow, or settle by hand what waits now."
        ),
    ),
    (
        "failed",
        "condition-invalid",
        (
            "The expression of the webhook does not fit this body. Change what follows, forget the "
            "key and have it delivered again."
        ),
    ),
    (
        "failed",
        "the service behind answered",
        (
            "The service behind refused it for good; its own log tells why. Forget the key to let "
            "the next attempt run."
        ),
    ),
    (
        "failed",
        "",
        (
            "What follows cannot be done with this delivery. Once that is mended, forget the key "
            "and have it delivered again."
        ),
    ),
    (
        "uncertain",
        "",
        (
            "The service behind was asked, and its answer was lost. Look there whether it was "
            "done; if not, forget the key and have it delivered again."
        ),
    ),
    (
        "in-flight",
        "",
        (
            "Another attempt to deliver it was being handled. If that one is not over by now, its "
            "process died: the next attempt takes over."
        ),
    ),
    (
        "repeated-body",
        "",
        (
            "The same body came before under another identifier, which this provider does not "
            "sign: somebody may have captured it. If the provider does that, set `repeats` to "
            "`allow`."
        ),
    ),
    (
        "accepted",
        _PARKED,
        (
            "Nobody waits for that key so far. If nobody does in the end, the key that the "
            "webhook makes and the one that the workflow waits for are not the same text."
        ),
    ),
    (
        "accepted",
        "fits 0 waits",
        (
            "Nobody waited for that event, or no condition held; one that waits with `lookback` "
            "finds it still."
        ),
    ),
)


def advice_on(verdict: str, reason: str, *, awaited: bool) -> str | None:
    """None where there is nothing to do. `awaited` tells that what was parked has not been taken so
    far."""
    for fits, part, advice in _ADVICE:
        if part == _PARKED and not awaited:
            continue
        if verdict == fits and part in reason:
            return advice
    return None
