"""What operators are told: the reasons, a few a minute, and how many more there were."""

import logging

import pytest

from oncekey.edge.troubles import MOST, Troubles
from oncekey.testing import FrozenClock


def test_a_few_lines_a_minute_and_a_count_of_the_rest(caplog: pytest.LogCaptureFixture) -> None:
    clock = FrozenClock()
    troubles = Troubles(clock.steady)
    with caplog.at_level(logging.WARNING, "oncekey"):
        for number in range(MOST + 5):
            troubles.tell("unauthorized", f"token {number} is expired", "127.0.0.1")
        troubles.tell("upstream-unreachable", "nobody listens")
        clock.advance(61)
        troubles.tell("unauthorized", "another")
    lines = [record.getMessage() for record in caplog.records]
    assert lines[0] == "unauthorized from 127.0.0.1: token 0 is expired"
    assert lines[MOST : MOST + 3] == [
        "upstream-unreachable: nobody listens",
        "unauthorized: 5 more in the last minute",
        "unauthorized: another",
    ]
    assert len(lines) == MOST + 3
