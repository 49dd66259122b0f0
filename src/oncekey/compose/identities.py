"""Settings to objects: who is calling, at the edge."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from oncekey.config.auth_settings import GatewaySettings, JwtSettings
from oncekey.config.settings import Settings
from oncekey.core.callers import Callers
from oncekey.core.clock import Clock
from oncekey.core.errors import ConfigurationError
from oncekey.core.ledger import Ledger
from oncekey.edge.identity.claims import ClaimRules
from oncekey.edge.identity.gateway import Gateway
from oncekey.edge.identity.identities import Identities
from oncekey.edge.identity.known import Verifier
from oncekey.edge.identity.local_keys import LocalKeys
from oncekey.edge.identity.unkey import Unkey

if TYPE_CHECKING:
    from oncekey.edge.identity.jwk import KeyRing
    from oncekey.edge.identity.jwks import Keys

_LARGEST_FILE = 256 << 10


def identities_of(settings: Settings, ledger: Ledger, callers: Callers | None = None) -> Identities:
    """Who may call, as `[auth]` says. With the `callers` of the process, a key that they revoke is
    refused at once. Raises `ConfigurationError`."""
    auth, clock = settings.auth, ledger.clock
    return Identities(
        jwt=None if auth.jwt is None else _verifier_of(auth.jwt, settings.folder, clock),
        api_keys=LocalKeys(callers or Callers(ledger)),
        unkey=_unkey_of(settings, clock) if auth.api_keys.provider == "unkey" else None,
        gateway=_gateway_of(auth.gateway),
        clock=clock,
    )


def _unkey_of(settings: Settings, clock: Clock) -> Unkey:
    unkey = settings.auth.unkey
    root_key = _secret_in(unkey.root_key_env, "auth.unkey.root_key_env")
    return Unkey(root_key, clock, url=unkey.url, cache=unkey.cache, timeout=unkey.timeout)


def _gateway_of(gateway: GatewaySettings) -> Gateway | None:
    if not gateway.trusted:
        return None
    names = gateway.headers
    return Gateway(
        gateway.trusted, tenant=names.tenant, project=names.project, subject=names.subject
    )


def _verifier_of(jwt: JwtSettings, folder: Path, clock: Clock) -> Verifier:
    try:
        from oncekey.edge.identity.jwt import JwtVerifier
    except ModuleNotFoundError as error:
        missing = f"{error}; [auth.jwt] needs it"
        raise ConfigurationError(f"{missing}: pip install 'oncekey[edge]'") from error
    names = jwt.claims
    rules = ClaimRules(
        issuer=jwt.issuer,
        audience=frozenset(jwt.audience or ()),
        tenant=names.tenant,
        project=names.project,
        subject=names.subject,
        subject_type=jwt.subject_type,
        fixed_tenant=jwt.tenant,
        leeway=jwt.leeway,
    )
    return JwtVerifier(_keys_of(jwt, folder, clock), rules, clock)


def _keys_of(jwt: JwtSettings, folder: Path, clock: Clock) -> Keys:
    from oncekey.edge.identity.jwk import check_algorithms
    from oncekey.edge.identity.jwks import FetchedKeys, GivenKeys

    pinned = None if jwt.algorithms is None else check_algorithms(jwt.algorithms)
    if jwt.jwks_url is not None:
        return FetchedKeys(jwt.jwks_url, clock, algorithms=pinned, refresh=jwt.refresh)
    return GivenKeys(_ring_of(jwt, folder, pinned))


def _ring_of(jwt: JwtSettings, folder: Path, pinned: frozenset[str] | None) -> KeyRing:
    from oncekey.edge.identity.jwk import ring_of_pem, ring_of_secret

    if jwt.jwks_file is not None:
        return _ring_in(folder / jwt.jwks_file, pinned)
    pem, secret = jwt.public_key, jwt.secret
    if jwt.public_key_file is not None:
        pem = _read(folder / jwt.public_key_file, "auth.jwt.public_key_file").decode("latin-1")
    if jwt.secret_env is not None:
        secret = _secret_in(jwt.secret_env, "auth.jwt.secret_env")
    if pem is not None:
        return ring_of_pem(pem, pinned)
    if secret is not None:
        return ring_of_secret(secret, pinned)
    raise ConfigurationError("auth.jwt names no keys: give jwks_url, public_key or secret")


def _ring_in(path: Path, pinned: frozenset[str] | None) -> KeyRing:
    from oncekey.edge.identity.jwk import ring_of_jwks

    document = _read(path, "auth.jwt.jwks_file")
    try:
        ring = ring_of_jwks(document, pinned, secrets=True)
    except ValueError as error:
        raise ConfigurationError(f"auth.jwt.jwks_file: {path} is no JWKS: {error}") from None
    if not ring.keys:
        raise ConfigurationError(f"auth.jwt.jwks_file: {path} has no key that can be used")
    return ring


def _secret_in(variable: str, setting: str) -> str:
    found = os.environ.get(variable, "")
    if not found:
        raise ConfigurationError(
            f"{setting}: there is no {variable} in the environment; put the secret there"
        )
    return found


def _read(path: Path, setting: str) -> bytes:
    try:
        with path.open("rb") as file:
            found = file.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise ConfigurationError(f"{setting}: {path} cannot be read: {error.strerror}") from None
    if len(found) > _LARGEST_FILE:
        raise ConfigurationError(f"{setting}: {path} is larger than {_LARGEST_FILE} bytes")
    return found
