"""How the tour is told: in colours at a terminal, in plain lines elsewhere, at a reader's pace."""

from __future__ import annotations

import os
import shlex
import shutil
import textwrap
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.rule import Rule
from rich.text import Text

from oncekey.cli.failure import Failure

# Longer lines are hard to read, however wide the terminal is.
_WIDEST = 96
_COMMAND, _ANSWER = 2, 4
_WITH_VALUE = {"-H", "-d", "-9", "--config", "--port"}
_GOOD, _REFUSED, _LOUD, _MARK, _QUIET = "green", "yellow", "bold cyan", "magenta", "dim"


def console_of(*, color: bool = True, **options: Any) -> Console:
    """Colours as the terminal has them; none where NO_COLOR is set, either."""
    if not color or os.environ.get("NO_COLOR"):
        # Without a colour system rich writes no style at all, also no bold one.
        options |= {"color_system": None, "no_color": True}
    # rich takes any dumb terminal for one of 80 columns, unless it is given both.
    columns, lines = shutil.get_terminal_size()
    options["width"] = min(options.get("width") or columns, _WIDEST)
    return Console(markup=False, emoji=False, highlight=False, **{"height": lines, **options})


class Teller:
    def __init__(self, console: Console, *, is_paced: bool) -> None:
        self._console = console
        self._is_paced = is_paced
        self.rest: Callable[[float], None] = time.sleep
        """How a pause is made."""
        self._is_live = console.is_interactive and not console.no_color
        ascii_only = console.options.ascii_only
        self._true, self._false = ("ok", "NO") if ascii_only else ("✓", "✗")

    def title(self, title: str, *lines: str) -> None:
        self._console.print()
        self._console.print(Text(title, style="bold"))
        for line in lines:
            self._print(line)
        self.pause(1.5)

    def scene(self, number: int, title: str, *lines: str) -> None:
        self._console.print()
        self._console.print(
            Rule(Text(f"{number}. {title}", style=_LOUD), style=_QUIET, align="left")
        )
        for line in lines:
            self._print(line)
        self.pause(1)

    def say(self, text: str) -> None:
        self._console.print()
        self._print(text)
        self.pause(0.6)

    def command(self, *words: str) -> None:
        """A line as one would type it, broken where it is too long."""
        lines = broken(words, self._console.width - _COMMAND - 2)
        for number, line in enumerate(lines):
            self._print(("  " if number else "$ ") + line, "bold", _COMMAND)
        self.pause(0.4)

    def answer(self, status: str, headers: Sequence[str], body: str) -> None:
        good = status.startswith("2")
        self._print(status, _GOOD if good else _REFUSED, _ANSWER)
        for line in headers:
            self._print(line, _MARK if line.startswith("Idempotent") else _QUIET, _ANSWER)
        if body:
            self._print(body, None, _ANSWER)
        self.pause(0.3)

    def check(self, claim: str, found: object, expected: object) -> None:
        """What is told is looked at. Where it is not so, the tour ends."""
        if found != expected:
            self._print(f"{self._false} {claim}", "bold red", _ANSWER)
            told = f"what is told is not what happened: {claim}"
            raise Failure(f"{told}; expected {expected!r}, found {found!r}")
        self._print(f"{self._true} {claim}", f"bold {_GOOD}", _ANSWER)
        self.pause(0.15)

    def table(self, rows: Sequence[tuple[str, str, str]]) -> None:
        """How often, what, and which."""
        widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
        for number, what, which in rows:
            shown = Text(" " * _COMMAND).append(number.rjust(widths[0]), style="bold")
            shown.append(f"  {what:<{widths[1]}}  ", style=_LOUD).append(which)
            self._console.print(shown, soft_wrap=True)

    def lines(self, pairs: Sequence[tuple[str, str]]) -> None:
        """Commands with what they are for."""
        for command, purpose in pairs:
            self._print(command, "bold", _COMMAND)
            if purpose:
                self._print(purpose, _QUIET, _ANSWER)

    @contextmanager
    def waiting(self, text: str) -> Iterator[None]:
        """Shows that something is being waited for."""
        if self._is_live:
            with self._console.status(Text(text, style=_QUIET)):
                yield
        else:
            self._print(f"({text})", _QUIET, _ANSWER)
            yield

    def pause(self, seconds: float) -> None:
        self.rest(seconds if self._is_paced else 0)

    def _print(self, text: str, style: str | None = None, indent: int = 0) -> None:
        """Folded by hand: rich would fill each line with blanks. A word that is too long for the
        terminal is left to it, so that it can be copied."""
        left = " " * indent
        for line in _folded(left + text, self._console.width, left):
            self._console.print(Text(line, style=style or ""), soft_wrap=True)


def broken(words: Sequence[str], width: int) -> list[str]:
    """A command on lines of this width, for a shell to read. An option stays with its value."""
    lines: list[str] = []
    for piece in _pieces(words):
        if lines and len(lines[-1]) + 1 + len(piece) <= width - 2:
            lines[-1] += f" {piece}"
        else:
            lines.append(f"  {piece}" if lines else piece)
    ended = [f"{line} \\" for line in lines[:-1]] + lines[-1:]
    # Where JSON has a blank, it may have a new line.
    return [part for line in ended for part in _folded(line, width, " " * 6)]


def _folded(line: str, width: int, left: str) -> list[str]:
    return textwrap.wrap(
        line, width, subsequent_indent=left, break_long_words=False, break_on_hyphens=False
    )


def _pieces(words: Sequence[str]) -> Iterator[str]:
    rest = iter(words)
    for word in rest:
        if word in _WITH_VALUE:
            yield f"{word} {_quoted(next(rest))}"
        else:
            yield _quoted(word)


def _quoted(word: str) -> str:
    """Variables of the shell stay variables."""
    if not word.startswith("$"):
        return shlex.quote(word)
    return f'"{word}"' if "?" in word else word
