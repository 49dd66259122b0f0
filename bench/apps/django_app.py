"""Django under gunicorn's threads: the handler as a plain view, the guard as Django wires it."""

import os
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import django
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.urls import path

from bench.apps.handler import SLOW_SECONDS, create_order, runs

GUARD = os.environ.get("BENCH_GUARD", "bare")


def _database() -> dict[str, Any]:
    """The project's database: PostgreSQL where the guard keeps its records there, else SQLite."""
    if not GUARD.endswith("-postgres"):
        name = Path(os.environ["BENCH_SCRATCH"]) / "django.db"
        return {"ENGINE": "django.db.backends.sqlite3", "NAME": name}
    url = urlsplit(os.environ["BENCH_POSTGRES_URL"])
    return {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": url.hostname,
        "PORT": url.port,
        "USER": url.username,
        "NAME": url.path.strip("/"),
        "CONN_MAX_AGE": None,
    }


def _guard_settings() -> dict[str, Any]:
    match GUARD:
        case "drf-idempotency-postgres":
            return _drf_idempotency("database.DatabaseBackend")
        case "drf-idempotency-redis":
            return _drf_idempotency("redis.RedisBackend", url=os.environ["BENCH_REDIS_URL"])
        case "django-idempotency-key-memory":
            return {
                "MIDDLEWARE": ["idempotency_key.middleware.IdempotencyKeyMiddleware"],
                # Its default turns every replay into a 409.
                "IDEMPOTENCY_KEY": {"CONFLICT_STATUS_CODE": None},
            }
        case "oncekey-sqlite" | "oncekey-postgres":
            return {
                "INSTALLED_APPS": ["oncekey.django"],
                "MIDDLEWARE": ["oncekey.django.IdempotencyMiddleware"],
            }
        case _:
            return {}


def _drf_idempotency(backend: str, **options: Any) -> dict[str, Any]:
    return {
        "INSTALLED_APPS": ["drf_idempotency"],
        "MIDDLEWARE": ["drf_idempotency.middleware.IdempotencyMiddleware"],
        "IDEMPOTENCY": {
            "BACKEND": f"drf_idempotency.backends.{backend}",
            "BACKEND_OPTIONS": options,
        },
    }


settings.configure(
    ALLOWED_HOSTS=["127.0.0.1"],
    ROOT_URLCONF=__name__,
    SECRET_KEY="bench",
    DATABASES={"default": _database()},
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    USE_TZ=True,
    **_guard_settings(),
)
django.setup()


def orders(request: HttpRequest) -> HttpResponse:
    return HttpResponse(create_order(request.body), status=201, content_type="application/json")


def slow(request: HttpRequest) -> HttpResponse:
    time.sleep(SLOW_SECONDS)
    return orders(request)


def count(_: HttpRequest) -> HttpResponse:
    return HttpResponse(runs(), content_type="application/json")


urlpatterns = [
    path("orders", orders),
    path("slow", slow),
    path("runs", count),
]


def wsgi() -> Any:
    from django.core.wsgi import get_wsgi_application

    return get_wsgi_application()
