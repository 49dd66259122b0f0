"""Which variables of the environment hold the secrets that the settings name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from oncekey.config.settings import Settings


class Variable(NamedTuple):
    setting: str
    name: str


def variables_of(settings: Settings) -> Iterator[Variable]:
    """Those without which the server would not start."""
    auth, webhooks = settings.auth, settings.webhooks
    if auth.jwt is not None and auth.jwt.secret_env is not None:
        yield Variable("auth.jwt.secret_env", auth.jwt.secret_env)
    if auth.api_keys.provider == "unkey":
        yield Variable("auth.unkey.root_key_env", auth.unkey.root_key_env)
    if webhooks.secrets == "vault":
        vault = webhooks.vault
        if vault.role_id_env is not None and vault.secret_id_env is not None:
            yield Variable("webhooks.vault.role_id_env", vault.role_id_env)
            yield Variable("webhooks.vault.secret_id_env", vault.secret_id_env)
        else:
            yield Variable("webhooks.vault.token_env", vault.token_env)
    for index, each in enumerate(settings.schedules):
        if each.secret_env is not None:
            yield Variable(f"schedules[{index}].secret_env", each.secret_env)
