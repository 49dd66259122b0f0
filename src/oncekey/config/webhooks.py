"""What must hold for `[webhooks]` and `[[providers]]`."""

from __future__ import annotations

from urllib.parse import urlsplit

from oncekey.config.lines import Path
from oncekey.config.providers import check_providers
from oncekey.config.reader import Reader
from oncekey.config.settings import Settings
from oncekey.config.webhook_settings import VaultSettings, WebhookSettings
from oncekey.core.errors import InvalidInput
from oncekey.webhooks.then import parse_then

_VAULT = ("webhooks", "vault")


def check_webhooks(settings: Settings, reader: Reader) -> None:
    _check_public_url(settings.webhooks, reader)
    _check_vault(settings.webhooks, reader)
    check_providers(settings.providers, reader)
    _check_demo(settings.webhooks, reader)


def _check_public_url(webhooks: WebhookSettings, reader: Reader) -> None:
    path: Path = ("webhooks", "public_url")
    if webhooks.public_url is None:
        return
    parts = urlsplit(webhooks.public_url)
    if parts.path not in {"", "/"} or parts.query:
        message = "webhooks.public_url is what stands before the path of a webhook: leave it at "
        reader.complain(path, f"{message}{parts.scheme}://{parts.netloc}")


def _check_demo(webhooks: WebhookSettings, reader: Reader) -> None:
    path: Path = ("webhooks", "demo", "then")
    if webhooks.demo is None or reader.is_bad(path):
        return
    try:
        parse_then(webhooks.demo.then)
    except InvalidInput as error:
        reader.complain(path, f"webhooks.demo.then: {error}")


def _check_vault(webhooks: WebhookSettings, reader: Reader) -> None:
    vault = webhooks.vault
    if reader.told(("webhooks",), "secrets", "vault") or reader.told(_VAULT, "url"):
        return
    if webhooks.secrets == "vault":
        if vault.url is None:
            message = 'webhooks.secrets = "vault" needs to know where it is: add [webhooks.vault] '
            reader.complain(("webhooks", "secrets"), f'{message}with url = "https://vault:8200"')
    elif vault != VaultSettings():
        message = 'webhooks.vault is only asked with webhooks.secrets = "vault"'
        reader.complain(_VAULT, f"{message}; add that, or take it out")
    if (vault.role_id_env is None) != (vault.secret_id_env is None):
        given = "role_id_env" if vault.role_id_env is not None else "secret_id_env"
        message = "an AppRole has two halves: give role_id_env and secret_id_env, or none of them"
        reader.complain((*_VAULT, given), message)
