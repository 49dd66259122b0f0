"""Flask: the `Idempotency` extension and the `@idempotent` decorator."""

from oncekey.compose import open_ledger
from oncekey.core.ledger import Ledger
from oncekey.integrations.flask import Idempotency as _Idempotency
from oncekey.integrations.flask import idempotent

__all__ = ["Idempotency", "idempotent"]


class Idempotency(_Idempotency):
    __doc__ = _Idempotency.__doc__

    def open_ledger(self, url: str) -> Ledger:
        return open_ledger(url)
