"""What commands change is in the audit feed, under the account that ran them."""

from __future__ import annotations

import getpass
import os
from typing import Any

from oncekey.core.audit import Audit
from oncekey.core.ledger import Ledger


def audited(
    ledger: Ledger, action: str, target: str, *, tenant: str | None = None, **details: Any
) -> None:
    Audit(ledger).write(actor(), action, target, tenant=tenant, **details)


def actor() -> str:
    """`cli:` and the name of the account."""
    try:
        return f"cli:{getpass.getuser()}"
    except (ImportError, KeyError, OSError):
        # An account that has no name, as in many containers.
        return f"cli:{os.getuid()}"
