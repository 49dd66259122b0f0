"""Several processes do durable work on one store: each execution in one place at a time."""

from pathlib import Path

import pytest

from oncekey.stores.restate.options import RestateOptions
from tests.fixtures.ports import lasting_port
from tests.fixtures.workers import Crew, Mark


def test_a_workflow_that_another_process_has_had_goes_on_where_that_left_it(crew: Crew) -> None:
    """The code that waits in memory is not what goes on then: it is replayed."""
    first = crew.hire()
    number = first.ask("start", "patient", ["a", "b", "c"])
    first.ask("until", number, "WAITING")
    first.pause()
    second = crew.hire()
    assert second.ask("resolve", "key:a", 1) == (False, False)
    crew.until_marked(number, "s0", "ended")
    second.ask("until", number, "WAITING")
    first.resume()
    assert first.ask("resolve", "key:b", 2) == (False, False)
    first.ask("resolve", "key:c", 3, park=True)
    assert first.ask("result", number) == [1, 2, 3]
    assert [len(each) for each in crew.marks.by_step().values()] == [2, 2, 2]


def test_a_step_that_another_process_has_made_good_is_not_done_again(
    crew: Crew, tmp_path: Path
) -> None:
    first = crew.hire()
    (tmp_path / "fails").touch()
    number = first.ask("start", "stubborn", "k")
    crew.until_marked(number, "fragile", "began")
    first.ask("until", number, "WAITING")
    first.pause()
    (tmp_path / "fails").unlink()
    second = crew.hire()
    crew.until_marked(number, "fragile", "ended")
    second.ask("until", number, "WAITING")
    first.resume()
    assert first.ask("resolve", "key:k", 7) == (False, False)
    assert first.ask("result", number) == 7
    ended = [each for each in crew.marks.all() if each.what == "ended"]
    assert len(ended) == 1


def check_one_place_at_a_time(marks: list[Mark]) -> None:
    """Each execution does one thing after the other, and each step ends where it began."""
    busy: dict[str, Mark] = {}
    for mark in marks:
        if mark.what == "began":
            assert mark.execution not in busy, mark
            busy[mark.execution] = mark
        else:
            assert busy.pop(mark.execution)._replace(what="ended") == mark
    assert not busy


@pytest.fixture
def neighbours(crew: Crew) -> Crew:
    """Restate calls a process where it finds it: all of them are behind one address."""
    if crew.url.startswith("restate"):
        crew.url = crew.url.replace("http://127.0.0.1:0", f"http://127.0.0.1:{lasting_port()}")
        crew.options["restate"] = RestateOptions(shares=True)
    return crew


def test_processes_share_the_work(neighbours: Crew) -> None:
    """More is started in one of them than it runs at once: the others take of it."""
    crew = neighbours
    first, *others = [crew.hire(lean=2) for _ in range(3)]
    names = ["one", "two", "three"]
    numbers = [first.ask("start", "steps", names) for _ in range(60)]
    for number in numbers:
        assert first.ask("result", number) == names
    marks = crew.marks.all()
    check_one_place_at_a_time(marks)
    assert len(marks) == 60 * 3 * 2
    if not crew.url.startswith("restate"):
        # Restate calls one address for a name: those who are to share its work share that.
        assert {mark.pid for mark in marks} > {first.pid}
    assert {mark.pid for mark in marks} <= {first.pid, *(each.pid for each in others)}


def test_a_promise_is_resolved_in_another_process_that_knows_the_workflow(crew: Crew) -> None:
    """Nobody looks by itself: what was resolved is heard of, or it is not."""
    first, second = crew.hire(blind=True), crew.hire(blind=True)
    for number in range(5):
        execution = first.ask("start", "wait", f"k{number}")
        first.ask("until", execution, "WAITING")
        second.ask("resolve", f"key:k{number}", number)
        crew.until_marked(execution, "last", "ended")
        second.ask("until", execution, "SUCCEEDED")
        assert first.ask("result", execution) == number
    check_one_place_at_a_time(crew.marks.all())


def test_a_promise_is_resolved_in_a_process_that_knows_no_workflows(crew: Crew) -> None:
    first, idle = crew.hire(blind=True), crew.hire(blind=True, idle=True)
    for number in range(5):
        execution = first.ask("start", "wait", f"k{number}")
        first.ask("until", execution, "WAITING")
        idle.ask("resolve", f"key:k{number}", number)
        assert first.ask("result", execution) == number
    assert {mark.pid for mark in crew.marks.all()} == {first.pid}


def test_what_is_started_where_nobody_knows_it_runs_elsewhere(crew: Crew) -> None:
    first, idle = crew.hire(blind=True), crew.hire(blind=True, idle=True)
    execution = idle.ask("start", "steps", ["one"])
    assert idle.ask("status", execution) in {"READY", "RUNNING", "SUCCEEDED"}
    assert first.ask("result", execution) == ["one"]


def test_a_branch_goes_on_that_another_process_resolved_while_one_is_at_work(crew: Crew) -> None:
    first, idle = crew.hire(), crew.hire(idle=True)
    execution = first.ask("start", "torn", "k", "held")
    crew.until_marked(execution, "held")
    idle.ask("resolve", "key:k", 5, park=True)
    crew.until_marked(execution, "after", "ended")
    crew.open("held")
    assert first.ask("result", execution) == [5, "held"]
    assert len(crew.marks.all()) == 4


def test_a_process_that_leaves_hands_its_work_over_at_once(url: str, tmp_path: Path) -> None:
    """Nobody waits for a lease to lapse, or looks by itself."""
    crew = Crew(url, tmp_path, lease=3600.0, blind=True)
    first = crew.hire()
    execution = first.ask("start", "steps", ["one", "held-1", "two"])
    crew.until_marked(execution, "held-1")
    waits = first.ask("start", "wait", "k")
    first.ask("until", waits, "WAITING")
    second = crew.hire()
    first.tell("leave")
    crew.open("held-1")
    assert second.ask("result", execution) == ["one", "held-1", "two"]
    assert first.join() == 0
    second.ask("resolve", "key:k", 1)
    assert second.ask("result", waits) == 1
    # The step that was being done has ended where it was, and the next began elsewhere.
    steps = {mark.step: mark.pid for mark in crew.marks.all() if mark.execution == execution}
    assert steps == {"one": first.pid, "held-1": first.pid, "two": second.pid}
    check_one_place_at_a_time(crew.marks.all())
    crew.close()


def test_a_process_that_stood_still_changes_nothing_any_more(url: str, tmp_path: Path) -> None:
    """Another takes its work over; what it writes when it wakes up is not taken."""
    crew = Crew(url, tmp_path, lease=1.0, heartbeat=0.25)
    first = crew.hire()
    execution = first.ask("start", "steps", ["one", "held", "two"])
    crew.until_marked(execution, "held")
    first.pause()
    crew.open("held")
    second = crew.hire()
    assert second.ask("result", execution) == ["one", "held", "two"]
    assert second.ask("journal", execution) == ["one", "held", "two"]
    first.resume()
    crew.until_marked(execution, "held", "ended", times=2)
    # It has tried to write what it did: whatever it is asked from now on comes after that.
    assert first.ask("result", execution) == ["one", "held", "two"]
    again = first.ask("start", "steps", ["one"])
    assert first.ask("result", again) == ["one"]
    assert second.ask("journal", execution) == ["one", "held", "two"]
    marks = crew.marks.by_step()
    assert [each.pid for each in marks[execution, "two"]] == [second.pid, second.pid]
    assert [each.pid for each in marks[execution, "one"]] == [first.pid, first.pid]
    crew.close()
