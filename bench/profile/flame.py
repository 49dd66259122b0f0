"""A flame of stacks as SVG: what is wide took long, what lies below was called by what is above."""

from html import escape
from typing import Any

from bench.profile.stacks import Stack, named

WIDTH, ROW, LETTER = 1200, 17, 6.6
# Narrower is not drawn: nobody could see it.
_LEAST = 1.5
_COLOURS = {"oncekey": "#f0a860", "bench": "#d8d8d8", "uvicorn": "#9cc3e6"}
_OTHER = "#c9b8e8"
# Up to the loop all stacks are the same.
_ABOVE = ("_run_module_as_main", "_run_code", "<module>", "main", "Thread._bootstrap")

Node = dict[str, Any]


def flame(stacks: list[Stack], title: str) -> str:
    root: Node = {"seen": 0, "below": {}}
    for frames, seen in stacks:
        _add(root, [each for each in frames if not named(each).startswith(_ABOVE)], seen)
    drawn: list[str] = []
    depth = _draw(drawn, root, 0.0, WIDTH / max(1, root["seen"]), 1)
    height = (depth + 1) * ROW
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'font-family="monospace" font-size="11"><rect width="100%" height="100%" fill="white"/>'
        f'<text x="4" y="13">{escape(title)}</text>'
    )
    return "\n".join([head, *drawn, "</svg>", ""])


def _add(root: Node, frames: list[str], seen: int) -> None:
    root["seen"] += seen
    at = root
    for frame in frames:
        at = at["below"].setdefault(frame, {"seen": 0, "below": {}})
        at["seen"] += seen


def _draw(drawn: list[str], node: Node, left: float, scale: float, row: int) -> int:
    """Answers the lowest row."""
    deepest = row
    for frame, below in sorted(node["below"].items()):
        width = below["seen"] * scale
        if width >= _LEAST:
            drawn.append(_box(frame, left, width, row, below["seen"] * scale / WIDTH))
            deepest = max(deepest, _draw(drawn, below, left, scale, row + 1))
        left += width
    return deepest


def _box(frame: str, left: float, width: float, row: int, share: float) -> str:
    colour = next((each for word, each in _COLOURS.items() if f"({word}/" in frame), _OTHER)
    name = named(frame)
    shown = name[: int((width - 4) / LETTER)] if width > 3 * LETTER else ""
    return (
        f'<g><title>{escape(frame)}: {share:.1%}</title><rect x="{left:.1f}" y="{row * ROW}" '
        f'width="{width:.1f}" height="{ROW - 1}" fill="{colour}"/>'
        f'<text x="{left + 2:.1f}" y="{row * ROW + 12}">{escape(shown)}</text></g>'
    )
