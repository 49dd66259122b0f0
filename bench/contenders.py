"""Who runs: one entry per contender, each compared with the bare application of its framework."""

import importlib.util
from dataclasses import dataclass
from importlib import metadata

HTTP_SCENARIOS = frozenset({"new-keys", "replays", "duplicates"})

# Read, but not run beside the others; the report repeats the reason.
NOT_RUN = {
    "aws-lambda-powertools": "a decorator for synchronous functions, not an HTTP guard",
    "idemptx": "a decorator for single routes; runs the handler twice under a race",
    "fastapi-idempotent": "needs aioredis, which no longer imports on Python 3.11",
    "flask-idempotent": "needs a Flask private removed in Flask 2.3",
    "node-idempotency and other languages": "another runtime: the bare application would differ",
}


@dataclass(frozen=True)
class Contender:
    """One product with one store on one framework; `product == "bare"` is what ratios divide by."""

    framework: str
    product: str
    store: str = ""
    module: str = ""
    variant: str = ""
    quick: bool = False
    scenarios: frozenset[str] = HTTP_SCENARIOS
    requires: tuple[str, ...] = ()

    @property
    def guard(self) -> str:
        return "-".join(part for part in (self.product, self.store, self.variant) if part)

    @property
    def name(self) -> str:
        return f"{self.framework}:{self.guard}"

    @property
    def label(self) -> str:
        detail = ", ".join(part for part in (self.store, self.variant) if part)
        return f"{self.product} ({detail})" if detail else f"{self.product} {self.framework}"

    @property
    def is_bare(self) -> bool:
        return self.product == "bare"

    @property
    def is_durable(self) -> bool:
        return self.store in {"sqlite", "postgres"}

    def missing(self) -> str:
        """Why it cannot run here, or nothing."""
        absent = [name for name in (self.module, *self.requires) if name and not _importable(name)]
        return f"not installed: {', '.join(absent)}" if absent else ""

    def version(self) -> str:
        try:
            return metadata.version(FRAMEWORKS[self.framework] if self.is_bare else self.product)
        except metadata.PackageNotFoundError:
            return "not installed"


FRAMEWORKS = {"asgi": "uvicorn", "starlette": "starlette", "fastapi": "fastapi", "django": "django"}


def _importable(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _bare(framework: str) -> Contender:
    return Contender(framework, "bare", module=FRAMEWORKS[framework], quick=True)


def _oncekey(framework: str, store: str, *, quick: bool = False, **more: object) -> Contender:
    module = "oncekey.django" if framework == "django" else "oncekey.asgi"
    return Contender(framework, "oncekey", store, module, quick=quick, **more)  # type: ignore[arg-type]


def _peer(product: str, module: str, *stores: str, quick: tuple[str, ...] = ()) -> list[Contender]:
    return [
        Contender(
            "starlette", product, store, module, quick=store in quick, requires=DRIVERS[store]
        )
        for store in stores
    ]


DRIVERS: dict[str, tuple[str, ...]] = {
    "memory": (),
    "redis": ("redis",),
    "postgres": ("asyncpg",),
    "sqlite": ("aiosqlite",),
}

_DUPLICATES_ONLY = frozenset({"duplicates"})

CONTENDERS: tuple[Contender, ...] = (
    _bare("asgi"),
    _oncekey("asgi", "sqlite", quick=True),
    _oncekey("asgi", "postgres", quick=True),
    _oncekey("asgi", "memory", quick=True),
    _oncekey("asgi", "sqlite", quick=True, variant="attach", scenarios=_DUPLICATES_ONLY),
    _bare("starlette"),
    _oncekey("starlette", "sqlite", quick=True),
    _oncekey("starlette", "postgres"),
    _oncekey("starlette", "memory", quick=True),
    _oncekey("starlette", "sqlite", quick=True, variant="attach", scenarios=_DUPLICATES_ONLY),
    *_peer(
        "asgi-idempotency-header",
        "idempotency_header_middleware",
        "memory",
        "redis",
        quick=("memory",),
    ),
    *_peer(
        "fastapi-idempotency-key",
        "fastapi_idempotency_key",
        "memory",
        "sqlite",
        "redis",
        quick=("memory", "sqlite"),
    ),
    *_peer("idemkit", "idemkit", "memory", "redis", "postgres", quick=("redis",)),
    *_peer("fastapi-idempotency", "fastapi_idempotency", "memory"),
    *_peer("fastidempotent", "fastidempotent", "memory", "redis"),
    _bare("fastapi"),
    _oncekey("fastapi", "sqlite", quick=True),
    _oncekey("fastapi", "postgres"),
    Contender(
        "fastapi", "fastapi-idempotency-key", "memory", "fastapi_idempotency_key", quick=True
    ),
    Contender("fastapi", "idemkit", "redis", "idemkit", requires=("redis",)),
    Contender("django", "bare", module="django"),
    _oncekey("django", "sqlite"),
    _oncekey("django", "postgres"),
    Contender("django", "drf-idempotency", "redis", "drf_idempotency", requires=("redis",)),
    Contender("django", "drf-idempotency", "postgres", "drf_idempotency"),
    Contender("django", "django-idempotency-key", "memory", "idempotency_key"),
)
