"""What a decorated handler says for itself, and what holds for it where it is installed."""

from __future__ import annotations

from typing import Any, NamedTuple

from oncekey.core.errors import ConfigurationError
from oncekey.core.ledger import Ledger
from oncekey.wire.rule import Rule, rule_of


class Terms(NamedTuple):
    """What holds for a handler. `identity` takes the framework's own request."""

    ledger: Ledger
    rule: Rule
    identity: Any = None


class Mark:
    def __init__(self, ledger: Ledger | None, identity: Any, options: dict[str, Any]) -> None:
        self.ledger = ledger
        self._identity = identity
        self._options = options
        self.rule = rule_of(None, **options)
        self._known: tuple[Terms | None, Terms] | None = None

    def rule_under(self, installed: Terms | None) -> Rule:
        return self.rule if installed is None else rule_of(installed.rule, **self._options)

    def terms(self, installed: Terms | None, where: str) -> Terms:
        """With what the app's extension says where the handler is silent."""
        if self._known is None or self._known[0] is not installed:
            self._known = (installed, self._terms(installed, where))
        return self._known[1]

    def _terms(self, installed: Terms | None, where: str) -> Terms:
        ledger = self.ledger or (installed.ledger if installed else None)
        if ledger is None:
            raise ConfigurationError(
                f"{where} is marked @idempotent, but there is no ledger for it: "
                "install Idempotency(app, ledger=...) or write @idempotent(ledger=...)"
            )
        identity = self._identity or (installed.identity if installed else None)
        return Terms(ledger, self.rule_under(installed), identity)
