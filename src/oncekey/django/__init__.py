"""Django: put `oncekey.django` into INSTALLED_APPS, then decorate views or mix into viewsets."""

from oncekey.integrations.django.decorator import idempotent
from oncekey.integrations.django.middleware import IdempotencyMiddleware
from oncekey.integrations.django.mixin import IdempotentMixin

__all__ = ["IdempotencyMiddleware", "IdempotentMixin", "idempotent"]
