"""Files with secrets in them that every account of this machine can read. None is repeated."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from oncekey.config.settings import Settings

_LARGEST = 1 << 20


def exposed_in(settings: Settings) -> Iterator[str]:
    """What is to be told of each."""
    if settings.file is not None and any(
        _holds(settings.file, each) for each in _secrets_of(settings)
    ):
        yield _told(settings.file, "or give secrets by the environment")
    jwt = settings.auth.jwt
    if jwt is not None and jwt.jwks_file is not None:
        keys = settings.folder / jwt.jwks_file
        # A public key may be read by everybody.
        if _holds(keys, '"oct"'):
            yield _told(keys, "as its secrets sign tokens")


def _secrets_of(settings: Settings) -> Iterator[str]:
    """Those that may be written in the file, of all that are in force."""
    if settings.auth.jwt is not None and settings.auth.jwt.secret:
        yield settings.auth.jwt.secret
    yield from (each.secret for each in settings.schedules if each.secret)
    password = _password_in(settings.store.url)
    if password:
        yield password


def _password_in(url: str) -> str | None:
    try:
        return urlsplit(url).password
    except ValueError:
        return None


def _holds(path: Path, secret: str) -> bool:
    """Whether everybody can read it there. What cannot be looked at is told by whoever needs it."""
    try:
        with path.open("rb") as file:
            is_open = bool(stat.S_IMODE(path.stat().st_mode) & stat.S_IROTH)
            return is_open and secret.encode("utf-8", "surrogateescape") in file.read(_LARGEST)
    except OSError:
        return False


def _told(path: Path, otherwise: str) -> str:
    reads = "every account of this machine can read the secrets in it"
    return f"{path}: {reads}; chmod 600 it, {otherwise}"
