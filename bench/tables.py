"""Tables of the report, and what stands in their cells."""

from collections.abc import Iterable, Sequence

from bench.results import Entry, Findings


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def spread_of(entry: Entry) -> str:
    return str(entry.spread) if entry.spread else "1"


def latency_of(entry: Entry) -> str:
    return f"{entry.middle('p50_ms'):.1f} / {entry.middle('p99_ms'):.1f}"


def shares_of(entry: Entry) -> str:
    """Its notes, and how much of the load was refused or broken."""
    shares = {each: entry.total(each) / entry.total("requests") for each in ("refused", "broken")}
    counted = [f"{share:.1%} {figure}" for figure, share in shares.items() if share]
    return "; ".join([*entry.notes, *counted])


def unmeasured(findings: Findings) -> str:
    silent = [(name, entry) for name, entry in findings.entries.items() if not entry.samples]
    return "".join(f"\n{name}: {'; '.join(entry.notes)}." for name, entry in silent) + (
        "\n" if silent else ""
    )
