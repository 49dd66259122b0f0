"""Tables to settings. Reads on after a mistake, so that all of them are told at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Any, NamedTuple

from oncekey.config.kinds import Kind, Named, Section, Sections, did_you_mean
from oncekey.config.lines import Path
from oncekey.config.settings import Settings
from oncekey.core.errors import InvalidInput

_BAD = object()


class Place(NamedTuple):
    """Where a setting was given: a line of a file, a variable (line 0) or an option (line 0)."""

    source: str
    line: int = 0

    def __str__(self) -> str:
        return f"{self.source}:{self.line}" if self.line else self.source


class Issue(NamedTuple):
    """One mistake, and where it was made."""

    place: Place
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.message}"


class Reader:
    """`place` answers where a setting was given."""

    def __init__(self, place: Callable[[Path], Place]) -> None:
        self._place = place
        self._bad: set[Path] = set()
        self.issues: list[Issue] = []

    def read(self, table: dict[str, Any], **more: Any) -> Settings:
        settings: Settings = self._section(Settings, table, (), **more)
        return settings

    def complain(self, path: Path, message: str) -> None:
        self._bad.add(path)
        self.issues.append(Issue(self._place(path), message))

    def is_bad(self, path: Path) -> bool:
        """Whether that setting was given, but could not be read."""
        return path in self._bad

    def is_bad_within(self, path: Path) -> bool:
        return any(bad[: len(path)] == path for bad in self._bad)

    def told(self, path: Path, *names: str) -> bool:
        """Whether one of these is wrong by itself; what follows from that is not worth a line."""
        return any(self.is_bad((*path, name)) for name in names)

    def _section(self, kind: type[Any], table: Any, path: Path, **more: Any) -> Any:
        if not isinstance(table, dict):
            self.complain(path, f"{name_of(path)} must be a table")
            return kind(**more)
        known = {each.name: each.metadata["kind"] for each in fields(kind) if each.metadata}
        values = dict(more)
        for name, value in table.items():
            if name not in known:
                self._unknown((*path, name), known)
                continue
            read = self._value(known[name], value, (*path, name))
            if read is not _BAD:
                values[name] = read
        return kind(**values)

    def _value(self, kind: Kind | Section | Sections | Named, value: Any, path: Path) -> Any:
        match kind:
            case Section(inner):
                return self._section(inner, value, path)
            case Sections(inner):
                return self._sections(inner, value, path)
            case Named():
                return self._named(kind, value, path)
            case _:
                return self._plain(kind, value, path)

    def _plain(self, kind: Kind, value: Any, path: Path) -> Any:
        try:
            return kind(value)
        except InvalidInput as error:
            self.complain(path, f"{name_of(path)} {error}")
            return _BAD

    def _sections(self, kind: type[Any], tables: Any, path: Path) -> Any:
        if not isinstance(tables, list):
            self.complain(path, f"{name_of(path)} must be an array of tables: write [[{path[-1]}]]")
            return _BAD
        return tuple(
            self._section(kind, table, (*path, index)) for index, table in enumerate(tables)
        )

    def _named(self, named: Named, table: Any, path: Path) -> Any:
        if not isinstance(table, dict):
            self.complain(path, f"{name_of(path)} must be a table")
            return _BAD
        values = {}
        for name, value in table.items():
            try:
                named.check(name)
            except InvalidInput as error:
                self.complain((*path, name), str(error))
                continue
            read = self._value(named.kind, value, (*path, name))
            if read is not _BAD:
                values[name] = read
        return values

    def _unknown(self, path: Path, known: Iterable[str]) -> None:
        meant = did_you_mean(str(path[-1]), known) or f"; known are: {', '.join(known)}"
        self.complain(path, f"there is no setting {name_of(path)}{meant}")


def name_of(path: Path) -> str:
    """`store.url`, `routes[0].path`."""
    name = ""
    for part in path:
        name += f"[{part}]" if isinstance(part, int) else f".{part}"
    return name.removeprefix(".")
