"""Writes what was found of the walks: PROFILE.md, and a flame for each of them."""

from pathlib import Path
from statistics import median
from typing import NamedTuple

from bench.profile.flame import flame
from bench.profile.stacks import rooms_of, stacks_of
from bench.profile.walks import AT_ONCE, WALKS
from bench.rounds import spread_of
from bench.tables import table

BEGINNING = """\
# Where the time of a request goes

Made by `python -m bench.profile{words}` ({started}) on {cpu}, {cores} cores, at {commit}{beside}.

Each walk of [docs/walks.md](../docs/walks.md) is walked in one process with {at_once} callers at
once: the server, the service behind it and those who call share an event loop, so that a profiler
sees all of it. The callers and the service are in the figures, and the same before and after.

- CPU is what one walk uses of a core, in all threads; `loop` is the part of the event loop. Best of
  {rounds} rounds of thousands of walks, in turns with the commit before: others who use the machine
  only ever add to it. `of before` is the median of the ratios of all rounds, with the lowest and
  the highest.
- Calls are calls of functions, in Python and in C; statements those of SQLite; syncs, turns of the
  loop and futexes calls of the kernel; bytes what goes to the disk.
- Shares are samples of the threads that run, by the room of the function on top. The time of what
  is written in C is that of the function that calls it.
"""
FIGURES: dict[str, tuple[str, float, str]] = {
    "cpu": ("CPU µs", 1e6, ".0f"),
    "loop": ("loop µs", 1e6, ".0f"),
    "calls": ("calls", 1, ".0f"),
    "allocations": ("allocations", 1, ".0f"),
    "switches": ("thread switches", 1, ".2f"),
    "turns of the loop": ("turns of the loop", 1, ".2f"),
    "futexes": ("futexes", 1, ".2f"),
    "statements": ("statements", 1, ".2f"),
    "syncs": ("syncs", 1, ".3f"),
    "bytes": ("bytes to the disk", 1, ",.0f"),
}
_BEST = {"cpu", "loop"}
_LEAST_SHARE = 0.01


class Found(NamedTuple):
    """Of one walk: the figures of every round, and its stacks. `before` is of another commit."""

    walk: str
    after: list[dict[str, float]]
    before: list[dict[str, float]]
    folded: str


class Run(NamedTuple):
    """How it was found out."""

    words: str
    started: str
    machine: dict[str, str]
    against: str
    rounds: int


def write(run: Run, found: list[Found], folder: Path) -> None:
    parts = [_beginning(run), _summary(found, bool(run.against))]
    pictures = folder / "profile"
    pictures.mkdir(exist_ok=True)
    for each in found:
        parts.append(_section(each))
        stacks = stacks_of(each.folded)
        if stacks:
            title = WALKS[each.walk].title
            (pictures / f"{each.walk}.svg").write_text(flame(stacks, title))
    (folder / "PROFILE.md").write_text("\n".join(parts))


def _beginning(run: Run) -> str:
    return BEGINNING.format(
        words=run.words,
        started=run.started,
        cpu=run.machine["cpu"],
        cores=run.machine["cores"],
        commit=run.machine["commit"],
        beside=f"; before is {run.against}" if run.against else "",
        at_once=AT_ONCE,
        rounds=run.rounds,
    )


def _summary(found: list[Found], compared: bool) -> str:
    head = ["walk", "of before", *(label for label, _, _ in FIGURES.values())]
    rows = []
    for each in found:
        title = f"[{_title(each.walk)}](#{each.walk})"
        if compared:
            rows.append((f"{title}, before", "", *(_shown(name, each.before) for name in FIGURES)))
        figures = (_shown(name, each.after) for name in FIGURES)
        rows.append((f"**{title}**", _compared(each), *figures))
    return "## One walk\n\n" + table(head, rows)


def _compared(each: Found) -> str:
    """CPU, round by round: a machine that others use is not the same for long."""
    rounds = [[one["cpu"] for one in side if "cpu" in one] for side in (each.after, each.before)]
    ratios = [after / before for after, before in zip(*rounds, strict=False)]
    return str(spread_of(ratios)) if ratios else ""


def _title(walk: str) -> str:
    return f"{WALKS[walk].title}, {WALKS[walk].store}"


def _shown(name: str, rounds: list[dict[str, float]]) -> str:
    values = [each[name] for each in rounds if name in each]
    if not values:
        return "–"
    _, scale, form = FIGURES[name]
    return format((min if name in _BEST else median)(values) * scale, form)


def _section(each: Found) -> str:
    stacks = stacks_of(each.folded)
    lines = [f"## {each.walk}", "", f"{_title(each.walk)}.", ""]
    if not stacks:
        return "\n".join([*lines, "Not sampled: py-spy is not installed.", ""])
    rooms = [(room, f"{share:.0%}") for room, share in rooms_of(stacks).items()]
    rows = rooms[: sum(share >= _LEAST_SHARE for share in rooms_of(stacks).values())]
    lines += [
        table(("room", "share"), rows),
        f"![{_title(each.walk)}](profile/{each.walk}.svg)",
        "",
    ]
    return "\n".join(lines)
