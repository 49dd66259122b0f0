"""From one configuration to the next: what takes over, and what waits for a restart."""

from typing import Any

from oncekey.config import Settings, load
from oncekey.config.changes import change_of

ROUTES = [{"path": "/a", "policy": "ACCEPTED"}]
SCHEDULES = [{"id": "a", "every": "1h", "workflow": "w"}]


def settings(**options: Any) -> Settings:
    named = {name.replace("__", "."): value for name, value in options.items()}
    return load(None, {}, {"store.url": "memory://", **named})


def test_what_is_the_same_changes_nothing() -> None:
    old = settings(routes=ROUTES, schedules=SCHEDULES)
    assert change_of(old, settings(routes=ROUTES, schedules=SCHEDULES)) == (old, ())


def test_what_can_take_over_does() -> None:
    new = settings(
        routes=ROUTES,
        retention={"nightly": "1d"},
        upstreams={"orders": {"url": "http://a"}},
        auth__jwt__jwks_url="https://a",
        edge__decide=False,
        admin__enabled=False,
        webhooks__max_body="1MB",
    )
    assert change_of(settings(), new) == (new, ())


def test_the_rest_stays_and_is_named() -> None:
    old = settings()
    new = settings(
        store__lease="9s",
        server__port=1,
        server__grpc_port=2,
        app__target="a:b",
        schedules=SCHEDULES,
        auth__api_keys__demo=True,
        webhooks__demo={},
        routes=ROUTES,
    )
    changed, waiting = change_of(old, new)
    assert (changed.store, changed.server, changed.app) == (old.store, old.server, old.app)
    assert (changed.schedules, changed.auth) == (old.schedules, old.auth)
    assert (changed.webhooks, changed.routes) == (old.webhooks, new.routes)
    assert waiting == (
        "store.lease",
        "server.port",
        "server.grpc_port",
        "app.target",
        "schedules",
        "auth.api_keys.demo",
        "webhooks.demo",
    )
