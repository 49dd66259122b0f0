"""WSGI: `IdempotencyMiddleware` for any app."""

from oncekey.integrations.wsgi import IdempotencyMiddleware

__all__ = ["IdempotencyMiddleware"]
