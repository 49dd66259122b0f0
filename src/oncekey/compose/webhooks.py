"""Settings to objects: webhooks, their secrets and their providers."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from oncekey.compose.address import Postgres, Restate, address_of
from oncekey.config.providers import declared_of
from oncekey.config.settings import Settings
from oncekey.config.webhook_settings import VaultSettings
from oncekey.core.errors import ConfigurationError
from oncekey.core.ledger import Ledger
from oncekey.webhooks.keys import HOW_TO_MAKE, keys_in_file, keys_in_variable, make_key_file
from oncekey.webhooks.provider import Provider
from oncekey.webhooks.providers.registry import providers_of
from oncekey.webhooks.secrets import LocalSecrets, SecretKeeper
from oncekey.webhooks.sources import Sources
from oncekey.webhooks.vault import VaultSecrets
from oncekey.webhooks.vault_client import AppRole, Token

KEY_FILE = "oncekey-webhooks.key"


def sources_of(settings: Settings, ledger: Ledger) -> Sources:
    return Sources(ledger, keeper_of(settings))


class SharedSources:
    """The same for all who ask under one configuration: what admins change of a webhook holds for
    the next delivery to this process."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._last: tuple[Settings, Sources] | None = None

    def under(self, settings: Settings) -> Sources:
        if self._last is None or self._last[0] is not settings:
            self._last = (settings, sources_of(settings, self._ledger))
        return self._last[1]


def keeper_of(settings: Settings) -> SecretKeeper:
    """Where secrets are kept. Unless a key is configured, there is a file for it beside the
    configuration, which is made when the first secret is: on one machine, that is all it takes."""
    webhooks = settings.webhooks
    if webhooks.secrets == "vault":
        return _vault_of(webhooks.vault)
    path = key_file_of(settings)

    def keys() -> tuple[bytes, ...]:
        return keys_in_variable(webhooks.key_env, os.environ) or keys_in_file(path)

    def make() -> None:
        # What is for trying things out is for one machine.
        shared = webhooks.demo is None
        if shared and isinstance(address_of(settings.store.url), Postgres | Restate):
            # Another machine would make another key, and neither could open what the other seals.
            raise ConfigurationError(
                f"there is no key to seal secrets with: set {webhooks.key_env} to one, the same "
                f"for every process, or put it into {path} with mode 600; {HOW_TO_MAKE}"
            )
        make_key_file(path)

    return LocalSecrets(keys, make=make)


def key_file_of(settings: Settings) -> Path:
    return settings.folder / (settings.webhooks.key_file or KEY_FILE)


def providers_for(settings: Settings) -> Mapping[str, Provider]:
    """Those known by heart, and those of the configuration."""
    return providers_of(declared_of(each) for each in settings.providers)


def _vault_of(vault: VaultSettings) -> VaultSecrets:
    if vault.url is None:
        raise ConfigurationError("webhooks.vault.url says where the vault is; add it")
    return VaultSecrets(vault.url, _login_of(vault), mount=vault.mount, field=vault.field)


def _login_of(vault: VaultSettings) -> Token | AppRole:
    if vault.role_id_env is not None and vault.secret_id_env is not None:
        return AppRole(_variable(vault.role_id_env), _variable(vault.secret_id_env))
    return Token(_variable(vault.token_env))


def _variable(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        raise ConfigurationError(f"the vault needs the variable {name}, and it is not set")
    return value
