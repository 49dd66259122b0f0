"""What `[[providers]]` declare, and what must hold for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oncekey.config.reader import Reader
from oncekey.config.webhook_settings import ProviderSettings
from oncekey.core.errors import InvalidInput

if TYPE_CHECKING:
    from oncekey.webhooks.providers.declared import DeclaredProvider

_PARTS = {
    "identifier": "identifier",
    "JSON pointer": "identifier",
    "signature": "signature",
    "signed": "signature",
}


def declared_of(each: ProviderSettings) -> DeclaredProvider:
    """Raises `InvalidInput` for a provider that cannot work."""
    from oncekey.webhooks.providers.declared import (
        DeclaredProvider,
        IdentifierAt,
        SignatureAt,
        TimestampAt,
    )

    identifier, signature = each.identifier, each.signature
    at = signature.timestamp
    return DeclaredProvider(
        each.name,
        IdentifierAt(identifier.header, identifier.json, identifier.form),
        SignatureAt(
            signature.header or "",
            signature.algorithm,
            signature.encoding,
            signature.prefix,
            signature.signed,
            None if at is None else TimestampAt(at.header or "", at.tolerance),
        ),
    )


def check_providers(providers: tuple[ProviderSettings, ...], reader: Reader) -> None:
    if not providers:
        return
    from oncekey.webhooks.providers.registry import providers_of

    known = dict.fromkeys(providers_of(), "OnceKey knows a provider of that name already")
    for index, each in enumerate(providers):
        path = ("providers", index)
        if reader.is_bad_within(path):
            continue
        if not each.name:
            reader.complain(path, 'a provider needs a name, such as name = "acme"')
            continue
        if each.name in known:
            message = f"provider {each.name}: {known[each.name]}; choose another"
            reader.complain((*path, "name"), message)
            continue
        known[each.name] = f"providers[{index}] has that name"
        try:
            declared_of(each)
        except InvalidInput as error:
            reader.complain((*path, _part_of(str(error))), str(error))


def _part_of(message: str) -> str:
    """Which part of a provider is wrong: the one that is named first."""
    named = [word for word in _PARTS if word in message]
    return _PARTS[min(named, key=message.index)] if named else "name"
