"""What is shown of a run: how much happened, and each violation with the shortest history of it."""

from collections import Counter
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table

from tests.chaos.history import Answered, Effect, Ended, Event, GaveUp, Left, Lost, Sent, Trouble
from tests.chaos.rules import Violation
from tests.chaos.shrink import shortest

# Of each rule so many are told in full; the rest is counted.
_TOLD = 2
_LAST = 10


def summary(rows: Iterable[tuple[str, str, Sequence[Event], Sequence[Violation]]]) -> Table:
    table = Table(
        "store", "seed", "jobs", "requests", "no answer", "effects", "troubles", "violations"
    )
    for store, seed, events, violations in rows:
        kinds = Counter(type(event) for event in events)
        jobs = len({event.job for event in events if isinstance(event, Sent)})
        counts = (jobs, kinds[Sent], kinds[Lost], kinds[Effect], kinds[Trouble], len(violations))
        table.add_row(store, seed, *(f"{count:,}".replace(",", " ") for count in counts))
    return table


def troubles(events: Iterable[Event]) -> str:
    """How often each was made."""
    made = Counter(event.what for event in events if isinstance(event, Trouble))
    return ", ".join(f"{what} {count}" for what, count in sorted(made.items()))


def tell(console: Console, events: Sequence[Event], violations: Sequence[Violation]) -> None:
    by_rule: dict[str, list[Violation]] = {}
    for violation in violations:
        by_rule.setdefault(violation.rule, []).append(violation)
    for rule, found in by_rule.items():
        for violation in found[:_TOLD]:
            console.print(f"[bold red]{rule}[/] job {violation.job}: ", end="")
            console.print(violation.told, markup=False, highlight=False)
            for event in evidence(events, violation):
                console.print(f"    {line_of(event)}", markup=False, highlight=False)
        if len(found) > _TOLD:
            console.print(f"    and {len(found) - _TOLD} more of {rule}")


def evidence(events: Sequence[Event], violation: Violation) -> list[Event]:
    """What shows it. That something never came is shown by what came last."""
    if violation.rule == "nobody-stuck":
        return [event for event in events if _is_of(event, violation.job)][-_LAST:]
    return shortest(events, violation)


def _is_of(event: Event, job: int) -> bool:
    return not isinstance(event, Trouble) and event.job == job


def line_of(event: Event) -> str:
    moment = f"{event.at:10.3f}"
    match event:
        case Sent():
            owner = f" of {event.who}" if event.who else ""
            return (
                f"{moment}  call {event.call} to {event.server}: {event.place} {event.key}{owner}"
                f"{f', body {event.body}' if event.body else ''}"
            )
        case Answered():
            mark = " (replayed)" if event.replayed else ""
            told = f"{event.status} {event.problem}".rstrip()
            return f"{moment}  call {event.call} is told {told}{mark} {event.body[:160]}"
        case Lost():
            return f"{moment}  call {event.call}: {event.why}"
        case Effect():
            saw = f", which saw {event.saw}" if event.saw else ""
            return f"{moment}  {event.server} does {event.place} {event.key}: {event.mark}{saw}"
        case Trouble():
            return f"{moment}  {event.what} of {event.server or 'all'} until {event.until:.3f}"
        case GaveUp():
            return f"{moment}  nobody waits any longer for {event.place} {event.key}"
        case Left():
            return f"{moment}  left over: {event.what}"
        case Ended():
            return f"{moment}  {event.server} ended by itself: {event.told}"
