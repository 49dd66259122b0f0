"""The examples of plain functions, as their READMEs tell them."""

import signal

from tests.fixtures.followed import Follow

KILLED = 128 + signal.SIGKILL


def test_functions(example: Follow) -> None:
    _, at_once, later, failed, failed_again, sent, keys = example("functions").follow()

    assert at_once.output == "invoice 42 is sent\n" * 3
    assert later.output == "invoice 42 is sent\n"
    assert failed == failed_again
    assert (failed.code, failed.output) == (1, "it failed for good: there is no such invoice\n")
    assert sent.output == "invoice 42\n"
    assert {"invoice:42", "invoice:0"} <= set(keys.output.split())


def test_transactions(example: Follow) -> None:
    _, first, again, died, between, retried, once_more, seen = example("transactions").follow()

    assert first.output == again.output == "order 1: tea\n"
    assert died.code == KILLED
    assert between.output == "1 tea\n"
    assert retried.output == once_more.output == "order 2: cake\n"
    assert seen.output == "1 tea\n2 cake\n"


def test_recover(example: Follow) -> None:
    ran = example("recover").follow()
    after, found, before, paid, left, refused, again, bank = ran[1:]

    assert [each.code for each in (after, before, left)] == [KILLED] * 3
    assert found.output == "rent-1 was paid\n"
    assert paid.output == "rent-2 is paid\n"
    assert (refused.code, "is not known" in refused.output) == (1, True)
    assert again.output == "rent-3 is paid\n"
    assert bank.output.split() == ["rent-1", "rent-2", "rent-3", "rent-3"]


def test_internal(example: Follow) -> None:
    _, first, again, _, other, booked = example("internal").follow()

    assert {each.output for each in (first, again, other)} == {"2 lines are booked\n"}
    assert booked.output.splitlines() == ["DE-7: rent 900", "DE-7: tea 4"] * 2
