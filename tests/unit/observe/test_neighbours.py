"""Processes add up; one that has ended goes on counting, and is not in flight any more."""

import stat
from pathlib import Path

from oncekey.observe.catalog import CONFLICTS
from oncekey.observe.meter import Meter
from oncekey.observe.neighbours import Neighbours
from oncekey.observe.snapshot import Snapshot

EVENT = ("busy", "POST /a", "t-a:b:user:c")


def conflicts(snapshot: Snapshot) -> int:
    return sum(cell[0] for _, cell in snapshot.counters.get(CONFLICTS, ()))


def test_the_sum_of_those_that_live_and_those_that_lived(tmp_path: Path) -> None:
    one, other = Meter(), Meter()
    first, second = Neighbours(one, tmp_path), Neighbours(other, tmp_path)
    one.count(*EVENT)
    other.count(*EVENT)
    other.in_flight = 2
    assert conflicts(first.total()) == 1
    second.write()
    total = first.total()
    assert (conflicts(total), total.in_flight) == (2, 2)
    other.count(*EVENT)
    second.close()
    total = first.total()
    assert (conflicts(total), total.in_flight) == (3, 0)


def test_who_tells_of_itself_has_written_it_before(tmp_path: Path) -> None:
    """Killed right after, it must not take back what it told."""
    one, other = Meter(), Meter()
    first, second = Neighbours(one, tmp_path), Neighbours(other, tmp_path)
    other.count(*EVENT)
    told = conflicts(second.total())
    assert conflicts(first.total()) == told == 1


def test_what_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    neighbours = Neighbours(Meter(), tmp_path)
    (tmp_path / "1-a.counts").write_bytes(b"\xc1 no snapshot")
    (tmp_path / "1-a.alive").touch()
    (tmp_path / "2-b.counts").write_bytes(b"")
    assert conflicts(neighbours.total()) == 0


def test_a_disk_that_is_full_keeps_nobody_from_reading(tmp_path: Path) -> None:
    meter = Meter()
    neighbours = Neighbours(meter, tmp_path)
    (tmp_path / f"{neighbours._name}.new").mkdir()
    meter.count(*EVENT)
    assert conflicts(neighbours.total()) == 1


def test_who_is_no_longer_marked_as_alive_still_counts(tmp_path: Path) -> None:
    one, other = Meter(), Meter()
    first, second = Neighbours(one, tmp_path), Neighbours(other, tmp_path)
    (tmp_path / f"{second._name}.alive").unlink()
    for number in (1, 2):
        other.count(*EVENT)
        second.write()
        assert conflicts(first.total()) == number


def test_alone_there_is_no_folder_to_write_to() -> None:
    meter = Meter()
    meter.count(*EVENT)
    assert conflicts(Neighbours(meter, None).total()) == 1


def test_nobody_else_may_read_its_files(tmp_path: Path) -> None:
    neighbours = Neighbours(Meter(), tmp_path)
    neighbours.write()
    modes = {each.suffix: stat.S_IMODE(each.stat().st_mode) for each in tmp_path.iterdir()}
    assert modes[".alive"] == 0o600
