"""Histories outlive those who write them, and are cut down to what matters; a seed is a run."""

import itertools
from pathlib import Path

from tests.chaos import history
from tests.chaos.check import check
from tests.chaos.history import Answered, Effect, Event, Sent, Trouble, Writer
from tests.chaos.plan import acts, job
from tests.chaos.report import line_of
from tests.chaos.shrink import shortest

ONE = Effect(2.0, 1, "/app/rerun", "", "k", "a", "m", "s1")
TWO = Effect(4.0, 1, "/app/rerun", "", "k", "a", "n", "s2")


def asked(call: int, at: float, job_: int = 1, mark: str = "m") -> list[Event]:
    """A request that is answered."""
    sent = Sent(at, call, job_, "/app/rerun", "", "k", "a", "s1")
    told = Answered(at + 0.1, call, job_, 201, "", True, "op_1", f'{{"mark": "{mark}"}}')
    return [sent, told]


def test_it_is_read_in_the_order_in_which_it_happened(tmp_path: Path) -> None:
    one, two = Writer(tmp_path / "one"), Writer(tmp_path / "two")
    two.add(TWO)
    one.add(ONE)
    assert history.read(tmp_path / "one", tmp_path / "two", tmp_path / "none") == [ONE, TWO]


def test_half_a_line_of_somebody_who_was_killed_is_no_event(tmp_path: Path) -> None:
    file = tmp_path / "file"
    history.write(file, [ONE, TWO])
    file.write_bytes(file.read_bytes()[:-9])
    assert history.read(file) == [ONE]


def test_a_history_is_read_as_it_was_written(tmp_path: Path) -> None:
    events = [*asked(1, 1.0), ONE, Trouble(3.0, 3.5, "kill", "s1"), TWO]
    history.write(tmp_path / "file", events)
    assert history.read(tmp_path / "file") == events


def test_the_shortest_history_has_what_shows_it_and_nothing_else() -> None:
    noise = [event for call in range(2, 40) for event in asked(call, 5.0 + call)]
    others = [event for call in range(40, 60) for event in asked(call, 5.0 + call, job_=2)]
    away = Trouble(90.0, 91.0, "kill", "s1")
    events = [*asked(1, 1.0), ONE, TWO, *noise, *others, away]
    (found,) = [v for v in check(events) if v.rule == "one-effect"]
    assert shortest(events, found) == [ONE, TWO]


def test_a_seed_is_a_run() -> None:
    drawn = [list(itertools.islice(acts("7", ["kill", "freeze"], 3), 50)) for _ in range(2)]
    assert drawn[0] == drawn[1]
    assert drawn[0] != list(itertools.islice(acts("8", ["kill", "freeze"], 3), 50))


def test_a_job_is_the_same_whenever_it_is_done() -> None:
    one, again = job("7", 12), job("7", 12)
    assert (one.kind, one.dice.random()) == (again.kind, again.dice.random())
    assert {job("7", number).kind for number in range(100)} == {
        "request", "order", "cancel", "fork", "forward",
    }  # fmt: skip


def test_every_event_is_told_in_a_line() -> None:
    assert line_of(ONE) == "     2.000  s1 does /app/rerun k: m"
    assert "call 1 to s1" in line_of(asked(1, 1.0)[0])
