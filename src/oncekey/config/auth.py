"""What must hold within `[auth]`: one place for keys, algorithms that fit them, and secrets that
cannot be guessed. No message repeats a secret."""

from __future__ import annotations

from collections.abc import Mapping

from oncekey.config.auth_settings import AuthSettings, GatewaySettings, JwtSettings
from oncekey.config.reader import Reader
from oncekey.core.errors import InvalidInput
from oncekey.edge.identity.remote import check_address

_PLACES = ("jwks_url", "jwks_file", "secret", "secret_env", "public_key", "public_key_file")
_OF_A_SECRET = frozenset({"secret", "secret_env"})
# RFC 7518, 3.2: a key is at least as long as what it makes.
SHORTEST_SECRET = {"HS256": 32, "HS384": 48, "HS512": 64}
# What a gateway cannot say who is calling in: it has a meaning already.
_TAKEN = frozenset({"authorization", "cookie", "host", "idempotency-key", "x-api-key"})

_JWT = ("auth", "jwt")
_GATEWAY = ("auth", "gateway")


def check_auth(auth: AuthSettings, environ: Mapping[str, str], reader: Reader) -> None:
    """A secret that the environment holds is looked at where it is there."""
    if auth.jwt is not None and not reader.is_bad(_JWT):
        _check_place(auth.jwt, reader)
        _check_algorithms(auth.jwt, reader)
        _check_secret("secret", auth.jwt.secret, auth.jwt, reader)
        if auth.jwt.secret_env is not None:
            held = environ.get(auth.jwt.secret_env)
            _check_secret("secret_env", held, auth.jwt, reader)
        _check_remote(auth.jwt.jwks_url, "auth.jwt.jwks_url", reader)
    if not reader.is_bad(("auth", "unkey", "url")):
        _check_remote(auth.unkey.url, "auth.unkey.url", reader)
    _check_gateway(auth.gateway, reader)


def _places(jwt: JwtSettings) -> list[str]:
    return [name for name in _PLACES if getattr(jwt, name) is not None]


def _check_place(jwt: JwtSettings, reader: Reader) -> None:
    given = _places(jwt)
    if len(given) > 1:
        message = f"auth.jwt has {given[0]} and {given[1]}; keys come from one place: keep one"
        reader.complain((*_JWT, given[1]), message)
    elif not given and not reader.is_bad_within(_JWT):
        message = "auth.jwt says nowhere what tokens are signed with: add jwks_url, jwks_file, "
        reader.complain(_JWT, message + "public_key, public_key_file, secret or secret_env")


def _check_algorithms(jwt: JwtSettings, reader: Reader) -> None:
    given, path = _places(jwt), (*_JWT, "algorithms")
    if jwt.algorithms is None or len(given) != 1:
        return
    of_a_secret = given[0] in _OF_A_SECRET
    for name in jwt.algorithms:
        if name.startswith("HS") and not of_a_secret and given[0] != "jwks_file":
            message = f"auth.jwt.algorithms has {name}, and {given[0]} has public keys: with them "
            reader.complain(path, message + "anybody could sign; take it out")
        elif not name.startswith("HS") and of_a_secret:
            message = (
                f"auth.jwt.algorithms has {name}, which {given[0]} cannot check: write HS256, "
            )
            reader.complain(path, message + "HS384 or HS512, or give a public key")


def _check_secret(name: str, secret: str | None, jwt: JwtSettings, reader: Reader) -> None:
    if not secret:
        return
    wanted = [name for name in jwt.algorithms or ("HS256",) if name in SHORTEST_SECRET]
    for algorithm in wanted:
        shortest = SHORTEST_SECRET[algorithm]
        if len(secret.encode("utf-8", "surrogateescape")) < shortest:
            message = f"the secret is shorter than the {shortest} bytes that {algorithm} needs; "
            message += f"make one with `openssl rand -base64 {shortest}`"
            reader.complain((*_JWT, name), message)
            return


def _check_remote(url: str | None, name: str, reader: Reader) -> None:
    if url is None:
        return
    try:
        check_address(url, name)
    except InvalidInput as error:
        reader.complain(tuple(name.split(".")), str(error))


def _check_gateway(gateway: GatewaySettings, reader: Reader) -> None:
    path = (*_GATEWAY, "headers")
    headers = gateway.headers
    names = [name.lower() for name in (headers.tenant, headers.project, headers.subject)]
    if headers != type(headers)() and not gateway.trusted and not reader.told(_GATEWAY, "trusted"):
        message = "auth.gateway.headers are believed from nobody: add trusted = [addresses]"
        reader.complain(path, message)
    if len(set(names)) < len(names):
        message = "auth.gateway.headers: tenant, project and subject must be three headers"
        reader.complain(path, message)
    for name in _TAKEN & set(names):
        message = f"auth.gateway.headers: {name} has a meaning of its own; choose another"
        reader.complain(path, message)
