"""What admins look after, as JSON: the words that their API and the command line both answer with.

Records have theirs in `records.py`, webhooks in `sources.py`."""

from __future__ import annotations

from collections.abc import Container

from oncekey.core.api_keys import ApiKey
from oncekey.core.audit import AuditEntry
from oncekey.core.ledger import Ledger
from oncekey.durable.shapes import Shape, time_of


def shape_of_api_key(key: ApiKey, now: int) -> Shape:
    return {
        "id": key.id,
        "role": key.role,
        "tenant": key.tenant,
        "project": key.project,
        "subject": key.subject,
        "label": key.label,
        "state": state_of_api_key(key, now),
        "created_at": time_of(key.created_at),
        "expires_at": time_of(key.expires_at),
        "revoked_at": time_of(key.revoked_at),
    }


def state_of_api_key(key: ApiKey, now: int) -> str:
    if key.revoked_at is not None:
        return "revoked"
    return "good" if key.is_good(now) else "expired"


def tenant_of_api_key(key: ApiKey) -> str | None:
    """None for admins, who look after all of them."""
    return None if key.role == "admin" else key.tenant


def facts_of_api_key(key: ApiKey) -> dict[str, str]:
    """What the audit feed tells of it."""
    return {"role": key.role, "subject": key.subject, "label": key.label}


def shape_of_audit_entry(entry: AuditEntry) -> Shape:
    return {
        "id": entry.public_id,
        "at": time_of(entry.at),
        "actor": entry.actor,
        "action": entry.action,
        "target": entry.target,
        "tenant": entry.tenant,
        "details": entry.facts,
    }


def shapes_of_retention(ledger: Ledger, configured: Container[str]) -> list[Shape]:
    """The classes in force, and where each is from. Asks the store."""
    seconds, stored = ledger.retention(), ledger.store.retention()

    def origin_of(name: str) -> str:
        if name in stored:
            return "store"
        return "configuration" if name in configured else "default"

    return [
        {"class": name, "seconds": kept, "from": origin_of(name)} for name, kept in seconds.items()
    ]
