"""What goes wrong for a caller. Those that the server names have the class that it has there.

ClientError                 `answer` is the server's, where there is one; `key` is the intent's
├── GaveUp                  no answer within the attempts and the time; the intent is pending
├── InFlight                it is still running there; ask again
├── NotRecovered            asked what became of it, the server says something else
├── KeyReused               the server knows the key with another request (422)
├── OutcomeUnknown          the server does not know whether it took effect (409)
├── OutcomeNotKept          it took effect, and its answer was not kept (409)
├── KeyRefused              the server does not take the key: malformed, or not wanted here (400)
├── Redirected              the server has it elsewhere (301, 302, 307, 308); nothing was done
├── CredentialsRefused      the server does not let the caller in (401, 403); the intent is pending
├── IntentChanged           the intent was captured with another request
├── IntentTooOld            the server may have forgotten the key: sending it again may repeat it
└── OutsideOperation        an outbound call where there is no operation to derive a key from
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oncekey.core import errors
from oncekey.core.errors import OnceKeyError

if TYPE_CHECKING:
    from oncekey.client.answer import Answer


class ClientError(OnceKeyError):
    """The call failed."""

    code = "client"

    def __init__(
        self, message: str | None = None, *, key: str = "", answer: Answer | None = None
    ) -> None:
        told = answer and answer.detail
        super().__init__(
            message or (f"{(self.__doc__ or '').splitlines()[0]} {told}" if told else None)
        )
        self.key = key
        self.answer = answer


class GaveUp(ClientError):
    """There was no answer in time; the intent is pending, and can be resumed."""

    code = "gave-up"
    retryable = True


class InFlight(ClientError):
    """It is still running; ask again in a moment."""

    code = "in-flight"
    retryable = True


class NotRecovered(ClientError):
    """The server did not say what became of it: its answer is not marked as the stored one."""

    code = "not-recovered"


class KeyReused(errors.KeyReused, ClientError):
    """The server knows this key with another request."""


class OutcomeUnknown(errors.OutcomeUnknown, ClientError):
    """The server does not know whether it took effect."""


class OutcomeNotKept(errors.OutcomeNotKept, ClientError):
    """It took effect, but its answer was not kept."""


class KeyRefused(ClientError):
    """The server does not take this key."""

    code = "key-refused"


class Redirected(ClientError):
    """The server has this address elsewhere, and did nothing; send it there, as another intent."""

    code = "redirected"


class CredentialsRefused(ClientError):
    """The server does not let this caller in; the intent is pending."""

    code = "credentials-refused"


class IntentChanged(ClientError):
    """The intent was captured with another request; another effect needs another name."""

    code = "intent-changed"


class IntentTooOld(ClientError):
    """The server may have forgotten the key by now, and sending it again may repeat the effect."""

    code = "intent-too-old"


class OutsideOperation(ClientError):
    """The call is made outside of every operation, so that no key can be derived for it."""

    code = "outside-operation"
