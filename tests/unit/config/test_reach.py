"""No setting is out of the environment's reach, and each is read as its own kind."""

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import pytest

from oncekey.config import Settings, load
from oncekey.config.environment import variable_of
from oncekey.config.kinds import Named, Section, Sections

PEM = "-----BEGIN PUBLIC KEY-----\nMFkw\n-----END PUBLIC KEY-----"
SECRET = "s" * 32
JWT = {"auth.jwt.jwks_url": "https://id.example/keys"}
PLAIN = {"routes.0.path": "/a", "routes.0.policy": "ACCEPTED"}
ROUTE = {**PLAIN, "routes.0.upstream": "orders", "upstreams.orders.url": "http://a"}
RECOVERED = {**ROUTE, "routes.0.takeover": "recover", "routes.0.recover": "a:b"}
SCHEDULE = {"schedules.0.id": "a", "schedules.0.cron": "* * * * *", "schedules.0.workflow": "w"}
CALL = {
    "schedules.0.id": "a",
    "schedules.0.cron": "* * * * *",
    "schedules.0.url": "https://a",
    "schedules.0.secret_env": "S",
}
PROVIDER = {
    "providers.0.name": "acme",
    "providers.0.identifier.header": "X-Id",
    "providers.0.signature.header": "X-Signature",
}
TIMED = {
    **PROVIDER,
    "providers.0.signature.signed": "{timestamp}.{body}",
    "providers.0.signature.timestamp.header": "X-Time",
}
VAULT = {"webhooks.secrets": "vault", "webhooks.vault.url": "https://vault"}
TRUSTED = {"auth.gateway.trusted": "10.0.0.1"}

# The setting, what the environment says, what that means, and what must be said beside it.
CASES: list[tuple[str, str, Any, dict[str, str]]] = [
    ("store.url", "memory://", "memory://", {}),
    ("store.lease", "1m", 60.0, {}),
    ("store.heartbeat", "2s", 2.0, {}),
    ("store.sweep_interval", "1h", 3600.0, {}),
    ("store.cache_bytes", "0", 0, {}),
    ("server.host", "::1", "::1", {}),
    ("server.port", "1", 1, {}),
    ("server.workers", "3", 3, {}),
    ("server.grace", "5s", 5.0, {}),
    ("server.api", "yes", True, {}),
    ("server.grpc_port", "9", 9, {}),
    ("app.target", "a:b", "a:b", {}),
    ("app.workflows", "a:b", "a:b", {}),
    ("app.examples", "a, b", ("a", "b"), {}),
    ("auth.api_keys.provider", "unkey", "unkey", {}),
    ("auth.api_keys.demo", "on", True, {}),
    ("auth.jwt.jwks_url", "https://id.example/keys", "https://id.example/keys", {}),
    ("auth.jwt.jwks_file", "keys.json", "keys.json", {}),
    ("auth.jwt.secret", SECRET, SECRET, {}),
    ("auth.jwt.secret_env", "JWT_SECRET", "JWT_SECRET", {}),
    ("auth.jwt.public_key", PEM, PEM, {}),
    ("auth.jwt.public_key_file", "key.pem", "key.pem", {}),
    ("auth.jwt.algorithms", "RS256,ES256", ("RS256", "ES256"), JWT),
    ("auth.jwt.issuer", "https://id.example", "https://id.example", JWT),
    ("auth.jwt.audience", "orders,stock", ("orders", "stock"), JWT),
    ("auth.jwt.claims.tenant", "org", "org", JWT),
    ("auth.jwt.claims.project", "team", "team", JWT),
    ("auth.jwt.claims.subject", "uid", "uid", JWT),
    ("auth.jwt.leeway", "0s", 0.0, JWT),
    ("auth.jwt.refresh", "1m", 60.0, JWT),
    ("auth.jwt.subject_type", "client", "client", JWT),
    ("auth.jwt.tenant", "acme", "acme", JWT),
    ("auth.unkey.url", "https://unkey.example", "https://unkey.example", {}),
    ("auth.unkey.root_key_env", "ROOT", "ROOT", {}),
    ("auth.unkey.cache", "0", 0.0, {}),
    ("auth.unkey.timeout", "1s", 1.0, {}),
    ("auth.gateway.trusted", "10.0.0.1,fd00::/8", ("10.0.0.1", "fd00::/8"), {}),
    ("auth.gateway.headers.tenant", "X-Org", "X-Org", TRUSTED),
    ("auth.gateway.headers.project", "X-Team", "X-Team", TRUSTED),
    ("auth.gateway.headers.subject", "X-User", "X-User", TRUSTED),
    ("retention.nightly", "36h", 129600.0, {}),
    ("edge.head_timeout", "1s", 1.0, {}),
    ("edge.body_timeout", "2s", 2.0, {}),
    ("edge.decide", "off", False, {}),
    ("admin.enabled", "0", False, {}),
    ("console.enabled", "0", False, {}),
    ("console.demo", "1", True, {}),
    ("upstreams.orders.url", "unix:/run/a.sock", "http+unix://%2Frun%2Fa.sock", {}),
    ("upstreams.orders.timeout", "1s", 1.0, ROUTE),
    ("upstreams.orders.connect_timeout", "50ms", 0.05, ROUTE),
    ("upstreams.orders.max_connections", "2", 2, ROUTE),
    ("routes.0.path", "/orders", "/orders", PLAIN),
    ("routes.0.methods", "post", ("POST",), PLAIN),
    ("routes.0.policy", "REQUIRED_B", "REQUIRED_B", ROUTE),
    ("routes.0.required", "true", True, {"routes.0.path": "/a"}),
    ("routes.0.upstream", "orders", "orders", ROUTE),
    ("routes.0.level", "platform", "platform", ROUTE),
    ("routes.0.identity", "optional", "optional", ROUTE),
    ("routes.0.uncertain", "recover", "recover", RECOVERED),
    ("routes.0.source", "wh_1", "wh_1", {**ROUTE, "routes.0.policy": "REQUIRED_B"}),
    ("routes.0.title", "Pay", "Pay", PLAIN),
    ("routes.0.in_flight", "attach", "attach", PLAIN),
    ("routes.0.attach_timeout", "1s", 1.0, PLAIN),
    ("routes.0.takeover", "refuse", "refuse", PLAIN),
    ("routes.0.recover", "c:d", "c:d", RECOVERED),
    ("routes.0.retention", "webhook", "webhook", PLAIN),
    ("routes.0.fingerprint", "a,b", ("a", "b"), PLAIN),
    ("routes.0.store_server_errors", "1", True, PLAIN),
    ("routes.0.store_events", "1", True, PLAIN),
    ("routes.0.max_stored_body", "1", 1, PLAIN),
    ("routes.0.max_request_body", "1", 1, PLAIN),
    ("routes.0.drop_headers", "X-A", ("X-A",), PLAIN),
    ("routes.0.fail_open", "1", True, PLAIN),
    ("routes.0.example", "{}", "{}", PLAIN),
    ("webhooks.public_url", "https://hooks.example", "https://hooks.example", {}),
    ("webhooks.max_body", "1MB", 1 << 20, {}),
    ("webhooks.secrets", "vault", "vault", VAULT),
    ("webhooks.key_env", "KEY", "KEY", {}),
    ("webhooks.key_file", "a.key", "a.key", {}),
    ("webhooks.vault.url", "https://v", "https://v", VAULT),
    ("webhooks.vault.mount", "kv", "kv", VAULT),
    ("webhooks.vault.token_env", "T", "T", VAULT),
    ("webhooks.vault.role_id_env", "R", "R", {**VAULT, "webhooks.vault.secret_id_env": "S"}),
    ("webhooks.vault.secret_id_env", "S", "S", {**VAULT, "webhooks.vault.role_id_env": "R"}),
    ("webhooks.vault.field", "key", "key", VAULT),
    ("webhooks.demo.provider", "github", "github", {}),
    ("webhooks.demo.then", "workflow:pay", "workflow:pay", {}),
    ("providers.0.name", "other", "other", PROVIDER),
    ("providers.0.identifier.header", "X-Other", "X-Other", PROVIDER),
    ("providers.0.signature.header", "X-Other", "X-Other", PROVIDER),
    ("providers.0.signature.algorithm", "hmac-sha1", "hmac-sha1", PROVIDER),
    ("providers.0.signature.encoding", "base64", "base64", PROVIDER),
    ("providers.0.signature.prefix", "v1=", "v1=", PROVIDER),
    ("providers.0.signature.signed", "{url}{body}", "{url}{body}", PROVIDER),
    ("providers.0.signature.timestamp.header", "X-At", "X-At", TIMED),
    ("providers.0.signature.timestamp.tolerance", "1m", 60.0, TIMED),
    ("schedules.0.id", "b", "b", SCHEDULE),
    ("schedules.0.cron", "0 3 * * *", "0 3 * * *", SCHEDULE),
    ("schedules.0.timezone", "Europe/Berlin", "Europe/Berlin", SCHEDULE),
    ("schedules.0.tenant", "acme", "acme", SCHEDULE),
    ("schedules.0.workflow", "v", "v", SCHEDULE),
    ("schedules.0.input", '{"a": 1}', {"a": 1}, SCHEDULE),
    ("schedules.0.url", "https://b", "https://b", CALL),
    ("schedules.0.data", "[1]", [1], CALL),
    ("schedules.0.secret_env", "T", "T", CALL),
    ("schedules.0.timeout", "1s", 1.0, CALL),
    ("schedules.0.attempts", "2", 2, CALL),
    ("schedules.0.missed", "all", "all", SCHEDULE),
    ("schedules.0.paused", "1", True, SCHEDULE),
    ("restate.headers", "X-Shop, X-Till", ("x-shop", "x-till"), {}),
    ("restate.max_attempts", "70", 70, {}),
    ("restate.on_max_attempts", "kill", "kill", {}),
    ("restate.startup_timeout", "2m", 120.0, {}),
    ("metrics.enabled", "no", False, {}),
    ("metrics.path", "/oncekey/metrics", "/oncekey/metrics", {}),
    ("metrics.access", "anyone", "anyone", {}),
    ("metrics.max_tenants", "7", 7, {}),
    ("metrics.max_endpoints", "9", 9, {}),
    ("log.format", "json", "json", {}),
    ("log.level", "warning", "warning", {}),
    ("log.requests", "all", "all", {}),
    ("traces.endpoint", "http://127.0.0.1:4318", "http://127.0.0.1:4318", {}),
    ("traces.sample", "0.25", 0.25, {}),
    ("traces.service", "till", "till", {}),
]
INSTEAD = [
    ("providers.0.identifier.json", "/id", "/id", "providers.0.identifier.header", PROVIDER),
    ("providers.0.identifier.form", "a,b", ("a", "b"), "providers.0.identifier.header", PROVIDER),
    ("schedules.0.every", "1h", 3600.0, "schedules.0.cron", SCHEDULE),
    ("schedules.0.secret", SECRET, SECRET, "schedules.0.secret_env", CALL),
]
ALL = [
    *CASES,
    *(
        (name, text, meaning, {key: value for key, value in beside.items() if key != instead})
        for name, text, meaning, instead, beside in INSTEAD
    ),
]


def environ_of(settings: dict[str, str]) -> dict[str, str]:
    return {variable_of(tuple(name.split("."))): value for name, value in settings.items()}


def value_at(settings: Any, name: str) -> Any:
    for part in name.split("."):
        if isinstance(settings, tuple):
            settings = settings[int(part)]
        elif isinstance(settings, dict):
            settings = settings[part]
        else:
            settings = getattr(settings, part)
    return settings


@pytest.mark.parametrize("name, text, meaning, beside", ALL, ids=[each[0] for each in ALL])
def test_the_environment_reaches_it(
    name: str, text: str, meaning: Any, beside: dict[str, str]
) -> None:
    assert value_at(load(None, environ_of({**beside, name: text})), name) == meaning


def names(kind: type[Any] = Settings, path: str = "") -> Iterator[str]:
    for each in fields(kind):
        match each.metadata.get("kind"):
            case None:
                continue
            case Sections(inner):
                yield from names(inner, f"{path}{each.name}.0.")
            case Section(inner):
                yield from names(inner, f"{path}{each.name}.")
            case Named(_, Section(inner)):
                yield from names(inner, f"{path}{each.name}.orders.")
            case Named():
                yield f"{path}{each.name}.nightly"
            case _:
                yield f"{path}{each.name}"


def test_no_setting_is_left_out() -> None:
    assert sorted(each[0] for each in ALL) == sorted(names())


def test_a_file_and_the_environment_make_one_upstream(tmp_path: Any) -> None:
    file = tmp_path / "oncekey.toml"
    file.write_text("[upstreams.orders]\nurl = 'http://a'\ntimeout = '5s'\n")
    settings = load(
        file, environ_of({"upstreams.orders.url": "http://b", "upstreams.s.url": "http://c"})
    )
    assert {name: each.url for name, each in settings.upstreams.items()} == {
        "orders": "http://b",
        "s": "http://c",
    }
    assert settings.upstreams["orders"].timeout == 5.0
