"""From a file, the environment and the command line to settings; the later one wins."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from oncekey.config import lines
from oncekey.config.consistency import check_settings
from oncekey.config.environment import table_of, variable_of
from oncekey.config.kinds import FromEnvironment
from oncekey.config.reader import Issue, Place, Reader
from oncekey.config.settings import Settings
from oncekey.core.errors import ConfigurationError

DEFAULT_FILE = Path("oncekey.toml")

# Where the option is not called as the setting is.
_OPTIONS: dict[lines.Path, str] = {("app", "target"): "--app"}

_AT_LINE = re.compile(r" \(at line (\d+), column \d+\)| \(at end of document\)")


def load(
    file: Path | None = None,
    environ: Mapping[str, str] | None = None,
    options: Mapping[str, Any] | None = None,
) -> Settings:
    """The settings of `file`, or of none. `options` are dotted names: `{"store.url": …}`.

    Raises `ConfigurationError` with one line for each mistake.
    """
    text = "" if file is None else _text_of(file)
    table = {} if file is None else _table_of(file, text)
    outside = table_of(environ or {})
    chosen = {tuple(name.split(".")): value for name, value in (options or {}).items()}
    merged = _merge(table, outside)
    for path, value in chosen.items():
        merged = _merge(merged, _nest(path, value))

    def place(path: lines.Path) -> Place:
        if path in chosen:
            return Place(_OPTIONS.get(path, f"--{path[-1]}"))
        if file is None or _is_from(outside, table, path):
            return Place(variable_of(path))
        return Place(str(file), lines.line_of(text, path))

    reader = Reader(place)
    settings = reader.read(merged, file=file, folder=_folder_of(file))
    check_settings(settings, environ or {}, reader)
    if reader.issues:
        raise ConfigurationError("\n".join(str(issue) for issue in sorted(reader.issues)))
    url = ("store", "url")
    named_outside = url in chosen or _is_from(outside, table, url)
    return settings if named_outside else _anchored(settings)


def _text_of(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigurationError(f"{file} does not exist; name another with --config") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{file} cannot be read: {error}") from error


def _table_of(file: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        found = _AT_LINE.search(message)
        line = int(found[1]) if found and found[1] else text.count("\n") + 1
        issue = Issue(Place(str(file), line), f"this is not TOML: {_AT_LINE.sub('', message)}")
        raise ConfigurationError(str(issue)) from error
    except RecursionError:
        raise ConfigurationError(f"{file} is nested too deeply") from None
    except ValueError:
        # The library leaves it to Python how many digits a number may have.
        raise ConfigurationError(f"{file} holds a number of more digits than can be read") from None


def _merge(below: Any, above: Any, path: lines.Path = ()) -> Any:
    """Tables are merged key by key; the environment reaches into arrays by index."""
    if isinstance(below, dict) and isinstance(above, dict):
        merged = dict(below)
        for name, value in above.items():
            merged[name] = _merge(below.get(name), value, (*path, name))
        return merged
    if isinstance(above, dict) and above and all(name.isdecimal() for name in above):
        return _merge_items(below if isinstance(below, list) else [], above, path)
    return above


def _merge_items(below: list[Any], above: dict[str, Any], path: lines.Path) -> list[Any]:
    items = list(below)
    for name in sorted(above, key=int):
        index = int(name)
        if index > len(items):
            variable = variable_of((*path, name))
            raise ConfigurationError(f"{variable}: there is a gap, the next is {len(items)}")
        old = items[index] if index < len(items) else None
        items[index : index + 1] = [_merge(old, above[name], (*path, name))]
    return items


def _nest(path: tuple[str, ...], value: Any) -> dict[str, Any]:
    for part in reversed(path):
        value = {part: value}
    nested: dict[str, Any] = value
    return nested


def _is_from(outside: Any, table: Any, path: lines.Path) -> bool:
    """Whether the environment gave this setting, or alone gave something inside it."""
    found = _at(outside, path)
    return isinstance(found, FromEnvironment) or (found is not None and _at(table, path) is None)


def _at(table: Any, path: lines.Path) -> Any:
    for part in path:
        if isinstance(table, list) and isinstance(part, int) and part < len(table):
            table = table[part]
        elif isinstance(table, dict):
            table = table.get(str(part))
        else:
            return None
    return table


def _folder_of(file: Path | None) -> Path:
    return Path.cwd() if file is None else file.absolute().parent


def _anchored(settings: Settings) -> Settings:
    """A file means the same ledger from everywhere: a relative path starts where the file is."""
    scheme, separator, rest = settings.store.url.partition(":///")
    if scheme != "sqlite" or not rest or rest.startswith(("/", "~", ":")):
        return settings
    url = f"{scheme}{separator}{settings.folder / rest}"
    return replace(settings, store=replace(settings.store, url=url))
