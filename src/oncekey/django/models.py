"""What the ledger holds, for reading with Django's ORM."""

from oncekey.integrations.django.models import IdempotencyKey, IdempotencyOutcome

__all__ = ["IdempotencyKey", "IdempotencyOutcome"]
