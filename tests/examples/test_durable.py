"""The examples of durable work, as their READMEs tell them."""

import re

from tests.fixtures.console import Ran
from tests.fixtures.followed import Follow


def ids_of(*ran: Ran) -> list[str]:
    """Of workflows and tasks, as they were told."""
    return [re.findall(r"\b(?:wf|tk)_\w+", each.output)[0] for each in ran]


def test_workflow(example: Follow) -> None:
    _, _, started, _, _, killed, paid, _, shown, again, charges = example("workflow").follow()

    assert (started.code, killed.code, paid.code) == (0, 0, 0)
    assert "order 42: 4.99 paid" in shown.output
    assert len({*ids_of(started, again)}) == 1
    assert charges.output == "ch_42\n"


def test_promises(example: Follow) -> None:
    followed = example("promises")
    early, again, _, _, paid, _, _, clicked, approved = followed.follow()[2:]

    assert (early.code, again.code, clicked.code) == (0, 0, 0)
    assert "parked" in early.output
    assert "order 42: 499 cents paid" in paid.output
    assert "a holiday is approved" in approved.output

    reject = """oncekey promises reject key:stripe:ch_43 --error '{"message": "declined"}' --park"""
    start, order, show = (line.replace("42", "43") for line in followed.lines[4:7])
    *_, refused = followed.type(reject, start, order, show)
    assert "order 43 is not paid: declined" in refused.output


def test_events(example: Follow) -> None:
    ran = example("events").follow()
    _, _, _, _, empty, filled, repeated, one, other, listed = ran[2:]

    assert (empty.code, filled.code, repeated.code) == (0, 0, 0)
    assert "2 parcels of order a" in one.output
    assert "waiting" in other.output
    assert len(listed.output.splitlines()) == 3


def test_control(example: Follow) -> None:
    ran = example("control").follow()
    paused, resumed, again, printed, forked, _, copy, _, _, cancelled, designs = ran[4:]

    assert "there is no printer" in paused.output
    assert "paused" in paused.output
    assert [each.code for each in (resumed, again, forked, cancelled)] == [0] * 4
    for each in (printed, copy):
        assert "printed TEA" in each.output
    assert designs.output == "tea\n"


def test_tasks(example: Follow) -> None:
    _, _, first, again, _, sent, _, _, failed, attempts, listed = example("tasks").follow()

    assert len({*ids_of(first, again)}) == 1
    assert "mail to ada@example.org is sent" in sent.output
    assert "nobody is no address" in failed.output
    assert attempts.output.split() == ["ada@example.org"] * 3
    assert "failed" in listed.output


def test_schedules(example: Follow) -> None:
    *_, ticks, repeated, paused, shown, keys = example("schedules").follow()

    lines = ticks.output.splitlines()
    assert len(lines) >= 4
    assert all(re.fullmatch(r"heart sched:beat:\d+000", line) for line in lines)
    assert (repeated.code, repeated.output) == (0, "")
    assert paused.code == 0
    assert "paused" in shown.output
    assert "sched:beat:" in keys.output


def test_grpc(example: Follow) -> None:
    _, _, _, _, first, again, refused, listed = example("grpc").follow()

    assert re.fullmatch(r"created wf_\w+ order 42: 499 cents paid\n", first.output)
    assert again.output == first.output.replace("created", "found")
    assert (refused.code, "UNAUTHENTICATED" in refused.output) == (1, True)
    assert listed.output.count("wf_") == 1


def test_temporal(example: Follow, temporal: str) -> None:
    ports = {"7233": temporal.rpartition(":")[2]}
    followed = example("temporal", ports, TEMPORAL_ADDRESS=temporal)
    server = followed.lines.pop(1)
    assert server.startswith("temporal server start-dev --port")
    *_, started, resolved, again, result = followed.follow()

    assert (started.code, resolved.code, again.code) == (0, 0, 0)
    assert "paid: 499" in result.output
