"""Settings of `[auth]`: who is calling."""

from __future__ import annotations

from dataclasses import dataclass

from oncekey.config.addresses import networks, url
from oncekey.config.field import hidden, section, setting
from oncekey.config.kinds import (
    Section,
    algorithms,
    choice,
    duration_between,
    flag,
    header_name,
    pem,
    secret,
    slug,
    text,
    text_or_words,
    variable,
)


@dataclass(frozen=True, slots=True)
class ApiKeySettings:
    provider: str = setting(choice("local", "unkey"), "local")
    demo: bool = setting(flag, False)
    """Make a key when the server starts, and show it: for trying things out on one machine."""


@dataclass(frozen=True, slots=True)
class ClaimSettings:
    """Which claims of a token say who is calling. A dot goes into a claim that is an object."""

    tenant: str = setting(text, "tenant_id")
    project: str = setting(text, "project_id")
    subject: str = setting(text, "sub")


@dataclass(frozen=True, slots=True)
class JwtSettings:
    """Exactly one of the first six says where the keys are."""

    jwks_url: str | None = setting(url)
    jwks_file: str | None = setting(text)
    secret: str | None = hidden(secret)
    secret_env: str | None = setting(variable)
    public_key: str | None = setting(pem)
    public_key_file: str | None = setting(text)
    algorithms: tuple[str, ...] | None = setting(algorithms)
    """Those that fit the keys, unless given."""
    issuer: str | None = setting(text)
    audience: tuple[str, ...] | None = setting(text_or_words)
    """Any of these is right."""
    claims: ClaimSettings = section(ClaimSettings)
    leeway: float = setting(duration_between(0.0, 300.0), 30.0)
    refresh: float = setting(duration_between(1.0, 86400.0), 600.0)
    """How old keys from `jwks_url` may be before they are fetched again."""
    subject_type: str = setting(
        choice("typed", "user", "service", "tenant_member", "client"), "typed"
    )
    """`typed`: the claim has the type in it, as in `user:42`. Else all subjects are of one type."""
    tenant: str | None = setting(slug)
    """The tenant of every token, for issuers whose tokens name none."""


@dataclass(frozen=True, slots=True)
class UnkeySettings:
    url: str = setting(url, "https://api.unkey.com")
    root_key_env: str = setting(variable, "UNKEY_ROOT_KEY")
    cache: float = setting(duration_between(0.0, 300.0), 10.0)
    timeout: float = setting(duration_between(0.01, 60.0), 3.0)


@dataclass(frozen=True, slots=True)
class GatewayHeaderSettings:
    tenant: str = setting(header_name, "X-Tenant-Id")
    project: str = setting(header_name, "X-Project-Id")
    subject: str = setting(header_name, "X-Subject")


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    """Identity headers are believed from these addresses; from nobody unless there are some."""

    trusted: tuple[str, ...] = setting(networks, ())
    headers: GatewayHeaderSettings = section(GatewayHeaderSettings)


@dataclass(frozen=True, slots=True)
class AuthSettings:
    api_keys: ApiKeySettings = section(ApiKeySettings)
    jwt: JwtSettings | None = setting(Section(JwtSettings))
    """None: tokens are not accepted."""
    unkey: UnkeySettings = section(UnkeySettings)
    """Asked where `api_keys.provider` is unkey."""
    gateway: GatewaySettings = section(GatewaySettings)
