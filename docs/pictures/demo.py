#!/usr/bin/env python3
"""Draws demo.svg, beside this file: what `oncekey demo` shows, as it happens now."""

import re
import textwrap
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from oncekey.cli.tour.bank import Bank
from oncekey.cli.tour.guide import guide
from oncekey.cli.tour.teller import Teller, console_of

_PICTURE = Path(__file__).with_name("demo.svg")
_WIDTH = 84
# Of the whole tour, what shows it best: the crash.
_FIRST, _LAST = "2. The server dies", "3. A webhook comes"
_TITLE = "oncekey demo"
_DESC = (
    "A terminal with the second scene of the tour. A workflow is started, the server is killed "
    "with kill -9 in the middle of its second step and started again. The workflow ends with one "
    "charge and one parcel, and an answer from before the crash is replayed."
)
_LIGHT = TerminalTheme(
    (255, 255, 255), (16, 22, 28),
    [(31, 41, 51), (180, 35, 24), (11, 107, 58), (138, 90, 0), (30, 80, 160), (120, 60, 140),
     (0, 95, 115), (82, 96, 109)],
)  # fmt: skip
_DARK = TerminalTheme(
    (13, 17, 23), (230, 237, 243),
    [(230, 237, 243), (255, 138, 122), (86, 208, 140), (232, 190, 90), (130, 180, 255),
     (210, 160, 230), (110, 215, 235), (169, 180, 192)],
)  # fmt: skip


# rich's own has fonts of another site in it, and one set of colours.
_FORMAT = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"
  aria-labelledby="title desc">
  <title id="title">TITLE</title>
  <desc id="desc">DESC</desc>
  <style>
    text {{ font: 20px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }}
    .page {{ fill: PAGE; }}
    {styles}
  </style>
  <rect class="page" width="{width}" height="{height}" rx="8"/>
  <g transform="translate(16 10)">
    {matrix}
  </g>
</svg>
"""
_DARK_FORMAT = """\
.page {{ fill: PAGE; }}
{styles}
"""


def main() -> None:
    shown = _part_of(_tour())
    light = _svg_of(shown, _LIGHT, _FORMAT)
    dark = textwrap.indent(_svg_of(shown, _DARK, _DARK_FORMAT).strip(), " " * 6)
    rule = f"    @media (prefers-color-scheme: dark) {{\n{dark}\n    }}\n  </style>"
    _PICTURE.write_text(light.replace("  </style>", rule))


def _tour() -> str:
    """All of it, in colours, and without what a terminal draws over itself while it waits."""
    heard = StringIO()
    console = console_of(
        file=heard, width=_WIDTH - 2, force_terminal=False, color_system="standard"
    )
    guide(Teller(console, is_paced=False), bank=Bank())
    return heard.getvalue()


def _part_of(tour: str) -> list[Text]:
    lines = [Text.from_ansi(line) for line in tour.splitlines()]
    first, last = (
        next(at for at, line in enumerate(lines) if line.plain.startswith(words))
        for words in (_FIRST, _LAST)
    )
    return [Text("$ oncekey demo", style="bold"), Text("..."), *lines[first - 1 : last - 1]]


def _svg_of(lines: list[Text], theme: TerminalTheme, form: str) -> str:
    console = Console(
        record=True, width=_WIDTH, file=StringIO(), force_terminal=True, color_system="standard"
    )
    for line in lines:
        console.print(line, soft_wrap=True)
    page = "#{:02x}{:02x}{:02x}".format(*theme.background_color)
    filled = form.replace("PAGE", page).replace("TITLE", _TITLE).replace("DESC", _DESC)
    made = console.export_svg(theme=theme, code_format=filled, unique_id="demo")
    # Lines are cut where the terminal ends, which none of them reaches; and their ends are drawn.
    made = re.sub(r' clip-path="[^"]*"', "", made)
    made = re.sub(r"<text [^>]*>\n</text>", "\n    ", made)
    return re.sub(r"(?m) +$\n?", "", made)


if __name__ == "__main__":
    main()
