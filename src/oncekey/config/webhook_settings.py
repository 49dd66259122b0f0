"""Settings of `[webhooks]` and `[[providers]]`."""

from __future__ import annotations

from dataclasses import dataclass

from oncekey.config.addresses import url
from oncekey.config.field import section, setting
from oncekey.config.kinds import (
    Section,
    choice,
    duration_between,
    header_name,
    size,
    text,
    text_or_nothing,
    text_or_words,
    variable,
)


@dataclass(frozen=True, slots=True)
class VaultSettings:
    """OpenBao or Vault, KV version 2."""

    url: str | None = setting(url)
    mount: str = setting(text, "secret")
    token_env: str = setting(variable, "VAULT_TOKEN")
    role_id_env: str | None = setting(variable)
    """With `secret_id_env`: an AppRole to log in with, in place of a token."""
    secret_id_env: str | None = setting(variable)
    field: str = setting(text, "secret")
    """Where in the entry the secret is."""


@dataclass(frozen=True, slots=True)
class DemoSettings:
    """A webhook that is made when the server starts, and shown: for trying things out."""

    provider: str = setting(text, "stripe")
    then: str = setting(text, "event:provider")


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    public_url: str | None = setting(url)
    """Where providers find this server; some sign it. As the request says, unless given."""
    max_body: int = setting(size(1, 256 << 20), 5 << 20)
    secrets: str = setting(choice("local", "vault"), "local")
    """Where secrets are kept: encrypted in the ledger's store, or in a vault."""
    key_env: str = setting(variable, "ONCEKEY_WEBHOOK_KEY")
    """The variable with the key that local secrets are encrypted with."""
    key_file: str | None = setting(text)
    """Or the file with it."""
    vault: VaultSettings = section(VaultSettings)
    demo: DemoSettings | None = setting(Section(DemoSettings))


@dataclass(frozen=True, slots=True)
class IdentifierSettings:
    """One of these."""

    header: str | None = setting(header_name)
    json: str | None = setting(text)
    """A JSON pointer: `/event/id`."""
    form: tuple[str, ...] | None = setting(text_or_words)
    """Fields of a form, which together are the identifier."""


@dataclass(frozen=True, slots=True)
class TimestampSettings:
    header: str | None = setting(header_name)
    tolerance: float = setting(duration_between(1.0, 86400.0), 300.0)


@dataclass(frozen=True, slots=True)
class SignatureSettings:
    header: str | None = setting(header_name)
    algorithm: str = setting(choice("hmac-sha256", "hmac-sha512", "hmac-sha1"), "hmac-sha256")
    encoding: str = setting(choice("hex", "base64", "base64url"), "hex")
    prefix: str = setting(text_or_nothing, "")
    signed: str = setting(text, "body")
    timestamp: TimestampSettings | None = setting(Section(TimestampSettings))


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """A provider declared without code; `webhooks.providers.declared` gives it its meaning."""

    name: str = setting(text, "")
    identifier: IdentifierSettings = section(IdentifierSettings)
    signature: SignatureSettings = section(SignatureSettings)
