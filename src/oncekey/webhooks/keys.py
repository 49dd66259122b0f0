"""Where the keys that seal secrets come from: a variable, or a file that nobody else can read."""

from __future__ import annotations

import binascii
import os
import re
import stat
from base64 import b64decode, b64encode
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from oncekey.core.errors import ConfigurationError
from oncekey.webhooks.sealing import KEY_BYTES

_LARGEST_FILE = 64 << 10
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
HOW_TO_MAKE = "make one with `oncekey webhooks key`"


def new_key() -> str:
    """As it stands in a variable or a file."""
    return b64encode(os.urandom(KEY_BYTES)).decode()


def keys_in_variable(name: str, environ: Mapping[str, str]) -> tuple[bytes, ...]:
    """None when the variable is not set; several are separated by commas, newest first."""
    return _keys_of(environ.get(name, ""), f"the variable {name}")


def keys_in_file(path: Path) -> tuple[bytes, ...]:
    """One on a line, newest first. Raises `ConfigurationError` for a file that others can read."""
    try:
        text = _read(path)
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"the key file {path} cannot be read: {error}") from error
    keys = _keys_of(re.sub(r"#.*", "", text), f"the key file {path}")
    if not keys:
        raise ConfigurationError(f"the key file {path} has no key in it; {HOW_TO_MAKE}")
    return keys


def make_key_file(path: Path) -> None:
    """A file with a new key, readable by this account only; one that is there already is kept."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(file, f"# Opens the secrets of webhooks: keep it.\n{new_key()}\n".encode())
            os.fsync(file)
        finally:
            os.close(file)
        # Whole or not at all, whoever looks at it meanwhile; and never over another.
        with suppress(FileExistsError):
            path.hardlink_to(draft)
    except OSError as error:
        raise ConfigurationError(f"the key file {path} cannot be made: {error}") from error
    finally:
        draft.unlink(missing_ok=True)


def _read(path: Path) -> str:
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        _check_private(os.fstat(file), path)
        return os.read(file, _LARGEST_FILE).decode()
    finally:
        os.close(file)


def _check_private(found: os.stat_result, path: Path) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise ConfigurationError(f"the key file {path} is not a file")
    if found.st_uid != os.geteuid():
        raise ConfigurationError(
            f"the key file {path} belongs to the account {found.st_uid}, this process is "
            f"{os.geteuid()}; run: chown {os.geteuid()} {path}"
        )
    if found.st_mode & _OTHERS:
        mode = stat.S_IMODE(found.st_mode)
        raise ConfigurationError(
            f"the key file {path} has mode {mode:o}, so that others can reach it; "
            f"run: chmod 600 {path}"
        )


def _keys_of(text: str, place: str) -> tuple[bytes, ...]:
    return tuple(_key_of(word, place) for word in re.split(r"[\s,]+", text) if word)


def _key_of(word: str, place: str) -> bytes:
    # Nothing of the word is told: it may be a key that is only a little wrong.
    try:
        key = b64decode(word.translate(str.maketrans("-_", "+/")), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise ConfigurationError(
            f"{place} must hold {KEY_BYTES} bytes in base64 (44 characters); {HOW_TO_MAKE}"
        )
    return key
