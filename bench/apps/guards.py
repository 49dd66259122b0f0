"""Each guard puts one product, with one store, in front of an ASGI application.

Every product runs with its defaults; only the address of its store is set.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

ASGIApp = Any


def guarded(app: ASGIApp) -> ASGIApp:
    """The application behind the guard that BENCH_GUARD names, or bare."""
    name = os.environ.get("BENCH_GUARD", "bare")
    return app if name == "bare" else GUARDS[name](app)


def _scratch(name: str) -> str:
    return str(Path(os.environ["BENCH_SCRATCH"]) / name)


def _redis_url() -> str:
    return os.environ["BENCH_REDIS_URL"]


def _postgres_url() -> str:
    return os.environ["BENCH_POSTGRES_URL"]


def _redis() -> Any:
    from redis.asyncio import Redis

    return Redis.from_url(_redis_url())


def _oncekey(app: ASGIApp, url: str, **options: Any) -> ASGIApp:
    import oncekey
    from oncekey.asgi import IdempotencyMiddleware

    return IdempotencyMiddleware(app, ledger=oncekey.open(url), **options)


def _sqlite_url() -> str:
    return f"sqlite:///{_scratch('oncekey.db')}"


def oncekey_memory(app: ASGIApp) -> ASGIApp:
    return _oncekey(app, "memory://")


def oncekey_sqlite(app: ASGIApp) -> ASGIApp:
    return _oncekey(app, _sqlite_url())


def oncekey_postgres(app: ASGIApp) -> ASGIApp:
    return _oncekey(app, _postgres_url())


def oncekey_sqlite_attach(app: ASGIApp) -> ASGIApp:
    return _oncekey(app, _sqlite_url(), in_flight="attach")


def asgi_header_memory(app: ASGIApp) -> ASGIApp:
    from idempotency_header_middleware import IdempotencyHeaderMiddleware
    from idempotency_header_middleware.backends import MemoryBackend

    return IdempotencyHeaderMiddleware(app, backend=MemoryBackend())


def asgi_header_redis(app: ASGIApp) -> ASGIApp:
    from idempotency_header_middleware import IdempotencyHeaderMiddleware
    from idempotency_header_middleware.backends import RedisBackend

    return IdempotencyHeaderMiddleware(app, backend=RedisBackend(redis=_redis()))


def fastapi_key_memory(app: ASGIApp) -> ASGIApp:
    from fastapi_idempotency_key import IdempotencyMiddleware, MemoryBackend

    return IdempotencyMiddleware(app, backend=MemoryBackend())


def fastapi_key_sqlite(app: ASGIApp) -> ASGIApp:
    from fastapi_idempotency_key import IdempotencyMiddleware, SQLiteBackend

    return IdempotencyMiddleware(app, backend=SQLiteBackend(database_path=_scratch("peer.db")))


def fastapi_key_redis(app: ASGIApp) -> ASGIApp:
    from fastapi_idempotency_key import IdempotencyMiddleware, RedisBackend

    return IdempotencyMiddleware(app, backend=RedisBackend(redis_url=_redis_url()))


def idemkit_memory(app: ASGIApp) -> ASGIApp:
    from idemkit import IdempotencyMiddleware, InMemoryBackend

    return IdempotencyMiddleware(app, backend=InMemoryBackend())


def idemkit_redis(app: ASGIApp) -> ASGIApp:
    from idemkit import IdempotencyMiddleware, RedisBackend

    return IdempotencyMiddleware(app, backend=RedisBackend.from_url(_redis_url()))


def idemkit_postgres(app: ASGIApp) -> ASGIApp:
    from idemkit import IdempotencyMiddleware, PostgresBackend

    return IdempotencyMiddleware(app, backend=PostgresBackend.from_url(_postgres_url()))


def fastapi_idempotency_memory(app: ASGIApp) -> ASGIApp:
    from fastapi_idempotency import IdempotencyMiddleware, MemoryStore

    return IdempotencyMiddleware(app, store=MemoryStore())


def fastidempotent_memory(app: ASGIApp) -> ASGIApp:
    from fastidempotent import IdempotencyMiddleware, MemoryBackend

    # Its middleware asks every POST for a key unless told that the key is optional.
    return IdempotencyMiddleware(app, backend=MemoryBackend(), optional=True)


def fastidempotent_redis(app: ASGIApp) -> ASGIApp:
    from fastidempotent import IdempotencyMiddleware, RedisBackend

    backend = RedisBackend(url=_redis_url())
    guard = IdempotencyMiddleware(app, backend=backend, optional=True)

    async def connected(scope: Any, receive: Any, send: Any) -> None:
        # The backend asks the application to connect it when it starts.
        if scope["type"] == "lifespan":
            await backend.init()
        await guard(scope, receive, send)

    return connected


GUARDS: dict[str, Callable[[ASGIApp], ASGIApp]] = {
    "oncekey-memory": oncekey_memory,
    "oncekey-sqlite": oncekey_sqlite,
    "oncekey-sqlite-attach": oncekey_sqlite_attach,
    "oncekey-postgres": oncekey_postgres,
    "asgi-idempotency-header-memory": asgi_header_memory,
    "asgi-idempotency-header-redis": asgi_header_redis,
    "fastapi-idempotency-key-memory": fastapi_key_memory,
    "fastapi-idempotency-key-sqlite": fastapi_key_sqlite,
    "fastapi-idempotency-key-redis": fastapi_key_redis,
    "idemkit-memory": idemkit_memory,
    "idemkit-redis": idemkit_redis,
    "idemkit-postgres": idemkit_postgres,
    "fastapi-idempotency-memory": fastapi_idempotency_memory,
    "fastidempotent-memory": fastidempotent_memory,
    "fastidempotent-redis": fastidempotent_redis,
}
