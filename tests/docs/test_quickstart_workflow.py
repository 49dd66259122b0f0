"""The quickstart for workflows, followed from an empty folder, through a kill, to the parcels."""

from collections.abc import Callable

from tests.fixtures.newcomer import Newcomer, newcomer, steps_of
from tests.fixtures.pages import DOCS

__all__ = ["newcomer"]

STEPS = list(steps_of(DOCS / "quickstart-workflow.md"))


def test_every_step_says_what_the_page_shows(newcomer: Callable[[int], Newcomer]) -> None:
    reader = newcomer(8700)
    reader.follow(STEPS)

    # The server that was started after the kill: it made the payment of the second order only.
    reader.hear("sending the parcel of order 43")
    told = [line for line in reader.said_by_server.splitlines() if " of order " in line]
    assert told == [
        "sending the parcel of order 42",
        "asking Stripe for a payment of order 43",
        "sending the parcel of order 43",
    ]
