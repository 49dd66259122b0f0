"""FastAPI: the `@idempotent` decorator, and `Idempotency` for the whole app."""

from oncekey.integrations.fastapi import Idempotency, check, idempotent

__all__ = ["Idempotency", "check", "idempotent"]
