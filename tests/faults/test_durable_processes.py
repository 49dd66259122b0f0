"""Several processes do durable work on one store: each execution in one place at a time."""

from pathlib import Path

import pytest

from tests.fixtures.workers import Crew


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
