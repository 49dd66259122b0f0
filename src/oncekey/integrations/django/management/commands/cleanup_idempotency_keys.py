"""`manage.py cleanup_idempotency_keys`: delete expired keys now, in small batches."""

from __future__ import annotations

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from oncekey.core.errors import OnceKeyError
from oncekey.core.ledger import Ledger
from oncekey.integrations.django.ledgers import ledgers
from oncekey.integrations.django.preferences import preferences


class Command(BaseCommand):
    help = (
        "Deletes idempotency keys past their time. Safe at any moment and while serving: "
        "an expired key counts as new whether it has been deleted or not."
    )

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("--dry-run", action="store_true", help="count, delete nothing")
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        parser.add_argument("--database", help="the database; IDEMPOTENCY_DATABASE unless given")

    def handle(self, *args: Any, **options: Any) -> None:
        alias = options["database"] or preferences().database
        try:
            ledger = ledgers().for_operators(alias)
            if options["dry_run"]:
                found = ledger.store.count_expired(ledger.clock.now())
                self._tell({"expired": found}, f"{_keys(found)} expired", options["json"])
            else:
                found = self._sweep(ledger)
                self._tell({"deleted": found}, f"{_keys(found)} deleted", options["json"])
        except OnceKeyError as error:
            raise CommandError(str(error)) from error

    def _sweep(self, ledger: Ledger) -> int:
        if not self.stderr.isatty():
            return ledger.sweep()

        def show(done: int, total: int) -> None:
            self.stderr.write(f"\r{done} of {total} keys deleted", ending="")

        found = ledger.sweep(progress=show)
        self.stderr.write("\r\033[K", ending="")
        return found

    def _tell(self, values: dict[str, int], text: str, as_json: bool) -> None:
        self.stdout.write(json.dumps(values) if as_json else text)


def _keys(count: int) -> str:
    return f"{count} key" if count == 1 else f"{count} keys"
