"""The sections of the report about workflows: OnceKey beside DBOS on the same database."""

from bench.flowing import OURS, PEER, STORES
from bench.results import Entry, Findings
from bench.tables import latency_of, table, unmeasured

WORKFLOWS = """\
## Workflows per second, beside DBOS

From the start of a workflow to its result, in one process without HTTP; the steps add 1. Every
result is checked, and every run of a step counted. The ratio is OnceKey's rate over DBOS's, which
is measured between two samples of OnceKey. Both have a core, a database of their own, uvloop, and
commit every step durably. DBOS is tuned: WAL and FULL on SQLite, its asynchronous calls, 2 (SQLite)
or 4 (PostgreSQL) threads, JSON.

"""
RESUME = """\
## From resolving to resuming, idle

A workflow waits; what it waits for is resolved; its next line runs. One at a time, with nothing
else to do. OnceKey: a promise, resolved by its key. DBOS: `recv` and `send`, its fastest way, on
SQLite looking for messages every millisecond (its default is every second). The ratio is DBOS's p50
over OnceKey's.

"""
WAITING = """\
## Waiting workflows

A process starts workflows that wait, and is killed. Another is started: the time, from its start,
until all of them wait again and 21 of them, resolved, have gone on. Memory is the resident set of
the process, without PostgreSQL's. DBOS takes minutes for 10 k, so that it has fewer; the column of
100 k is what it would need if memory and time grew in proportion.

"""
SCALED_TO = 100_000


def workflows(findings: Findings) -> str:
    cells = list(dict.fromkeys(name.split("/", 1)[1] for name in findings.entries))
    head = ("database", "steps", "at once", "ratio", "OnceKey/s", "p50 / p99 ms", "DBOS/s")
    rows = []
    for cell in cells:
        ours, peer = (findings.entry(f"{product}/{cell}") for product in (OURS, PEER))
        rows.append(
            (*cell.split("/"), _ratio(ours), *_rates(ours), *_rates(peer), _notes(ours, peer))
        )
    return WORKFLOWS + table((*head, "p50 / p99 ms", "notes"), rows)


def resume(findings: Findings) -> str:
    rows = []
    for store in STORES:
        ours, peer = (findings.entry(f"{product}/{store}") for product in (OURS, PEER))
        latencies = [latency_of(each) if each.samples else "–" for each in (ours, peer)]
        rows.append((store, _ratio(ours), *latencies, _notes(ours, peer)))
    head = ("database", "ratio", "OnceKey p50 / p99 ms", "DBOS p50 / p99 ms", "notes")
    return RESUME + table(head, rows)


def waiting(findings: Findings) -> str:
    rows = [
        (
            *name.split("/"),
            f"{entry.middle('waiting'):,.0f}",
            f"{entry.middle('fill_seconds'):.1f}",
            f"{entry.middle('waiting_mb'):.0f} ({entry.middle('empty_mb'):.0f} without)",
            f"{entry.middle('start_seconds'):.2f} ({entry.middle('empty_seconds'):.2f} without)",
            f"{entry.middle('started_mb'):.0f}",
            _scaled(entry),
            "; ".join(entry.notes),
        )
        for name, entry in findings.entries.items()
        if entry.samples
    ]
    head = ("engine", "database", "waiting", "started in s", "MB", "start after kill s")
    rest = ("MB after it", "100 k, in proportion", "notes")
    return WAITING + table((*head, *rest), rows) + unmeasured(findings)


def _ratio(ours: Entry) -> str:
    return (
        f"**{ours.spread.median:.1f}** ({ours.spread.low:.1f}–{ours.spread.high:.1f})"
        if ours.spread
        else "–"
    )


def _rates(entry: Entry) -> tuple[str, str]:
    return (f"{entry.middle('rate'):,.0f}", latency_of(entry)) if entry.samples else ("–", "–")


def _scaled(entry: Entry) -> str:
    factor = SCALED_TO / entry.middle("waiting")
    if factor == 1:
        return "measured"
    megabytes, seconds = (
        entry.middle(empty) + (entry.middle(full) - entry.middle(empty)) * factor
        for empty, full in (("empty_mb", "waiting_mb"), ("empty_seconds", "start_seconds"))
    )
    return f"{megabytes:,.0f} MB, {seconds:,.0f} s"


def _notes(*entries: Entry) -> str:
    return "; ".join(dict.fromkeys(note for entry in entries for note in entry.notes))
