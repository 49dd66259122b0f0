"""A process that does durable work is killed at every named point; whoever comes after ends it."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from oncekey.core.execution import Execution, Status
from tests.fixtures.processes import Start
from tests.fixtures.stage import SCENES, Archive, Scene, act_of, play_and_die, play_to_the_end
from tests.fixtures.workers import Mark, Marks

AT_ONCE = 6
# On PostgreSQL a death is seen by silence.
LEASE: dict[str, Any] = {"lease": 1.5, "heartbeat": 0.4}


class Wreck:
    """What is left when everybody has died, each in a scene of its own."""

    def __init__(self, start: Start, url: str, folder: Path) -> None:
        self._start, self.url, self.folder = start, url, folder
        self.scenes = [each for each in SCENES if not url.startswith("restate") or _is_ours(each)]
        together = [each for each in self.scenes if not _is_anybodys(each)]
        for at in range(0, len(together), AT_ONCE):
            self._kill(together[at : at + AT_ONCE])
        for scene in filter(_is_anybodys, self.scenes):
            self._kill([scene])
        archive = Archive(url)
        executions = archive.executions()
        self.journaled = {
            (each.public_id, step) for each in executions for step in archive.journal(each.id)
        }
        # A task is one step, and its end is all its journal.
        self.journaled |= {(each.name, "task") for each in executions if each.status.is_over}
        archive.close()
        self.marks = Marks(folder).all()

    def _kill(self, scenes: list[Scene]) -> None:
        doomed = [
            (scene, self._start(play_and_die, self.url, self.folder, scene, LEASE))
            for scene in scenes
        ]
        for scene, process in doomed:
            with pytest.raises(EOFError):
                pytest.fail(f"{scene} ends: {process.hear()}")
            assert process.join() == -9, scene

    def ended(self) -> "Ended":
        process = self._start(play_to_the_end, self.url, self.folder, self.scenes, LEASE)
        outcomes = process.hear()
        assert process.join() == 0
        return Ended(self, outcomes)


class Ended:
    """What there is when somebody has come and played everything to its end."""

    def __init__(self, wreck: Wreck, outcomes: list[Any]) -> None:
        self._wreck = wreck
        self._outcomes = dict(zip(wreck.scenes, outcomes, strict=True))
        self._marks = Marks(wreck.folder).all()
        archive = Archive(wreck.url)
        self._executions = archive.executions()
        archive.close()

    def check(self, scene: Scene) -> None:
        act = act_of(scene)
        assert self._outcomes[scene] == act.expected
        executions = self._of(scene)
        # Its keys led to what was there.
        assert len(executions) == act.executions
        over = Status.CANCELLED if scene.act == "Cancel" else Status.SUCCEEDED
        assert {each.status for each in executions} == {over}
        self._check_steps({each.public_id for each in executions} | {scene.name})

    def _check_steps(self, executions: set[str]) -> None:
        """What was journaled is not done again; what was interrupted is done again once."""
        before = _counted(self._wreck.marks, executions)
        after = _counted(self._marks, executions)
        for (execution, step, what), count in after.items():
            began = before[execution, step, "began"]
            is_interrupted = began and (execution, step) not in self._wreck.journaled
            if is_interrupted and what == "began":
                assert count == began + 1, (execution, step)
            elif is_interrupted:
                assert count == before[execution, step, "ended"] + 1, (execution, step)
            else:
                assert count == 1, (execution, step)

    def _of(self, scene: Scene) -> list[Execution]:
        return [each for each in self._executions if each.name.partition(".")[0] == scene.name]


def _is_anybodys(scene: Scene) -> bool:
    """Whoever is there does what is due, and runs what is ready: to be the one that dies of it, a
    process must be by itself."""
    return scene.point.partition("-")[0] in {"Due", "PickUp"}


def _is_ours(scene: Scene) -> bool:
    """Restate keeps time itself, and has ready work run: no process of ours is there to die."""
    return not _is_anybodys(scene)


def _counted(marks: list[Mark], executions: set[str]) -> Counter[tuple[str, str, str]]:
    found = (each for each in marks if each.execution in executions)
    return Counter((each.execution, each.step, each.what) for each in found)


def test_whatever_dies_is_ended_by_whoever_comes_after(
    start: Start, url: str, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    wreck = Wreck(start, url, tmp_path)
    ended = wreck.ended()
    for scene in wreck.scenes:
        with subtests.test(scene=scene.name):
            ended.check(scene)
