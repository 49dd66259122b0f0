"""ASGI: `IdempotencyMiddleware` for Starlette, FastAPI and any other app."""

from oncekey.integrations.asgi import IdempotencyMiddleware

__all__ = ["IdempotencyMiddleware"]
