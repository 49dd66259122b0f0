"""The store is away while the outcome of a delivery is written: it is not done a second time."""

from collections.abc import Iterator

import pytest

import oncekey
from oncekey import Kind, Ledger, Outcome
from oncekey.core.errors import StoreUnavailable
from oncekey.webhooks.acting import Answered, ForwardRequest
from tests.fixtures.post import post_on

pytestmark = pytest.mark.anyio

PUSH = {"ref": "refs/heads/main"}


class Away:
    """The store, for as many outcomes as it is told to be."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, point: str) -> None:
        if point == "before-settle" and self.times:
            self.times -= 1
            raise StoreUnavailable


@pytest.fixture
def away() -> Away:
    return Away()


@pytest.fixture
def ledger(away: Away) -> Iterator[Ledger]:
    opened = oncekey.open("memory://", faults=away)
    yield opened
    opened.close(grace=0)


async def test_what_a_body_is_known_by_is_not_worth_the_outcome(ledger: Ledger, away: Away) -> None:
    """Of a delivery whose identifier is not signed, two things are kept. The first is missed."""
    asked: list[ForwardRequest] = []

    async def behind(request: ForwardRequest) -> Answered:
        asked.append(request)
        away.times = 1 if len(asked) == 1 else 0
        return Answered(Outcome(Kind.RESPONSE, 201), True)

    async with post_on(ledger, forward=behind) as post:
        github = await post.webhook("github", "forward:/builds")
        for _ in range(3):
            response = await github.insist(PUSH, x_github_delivery="one")
            assert response.status == 200
        assert not away.times
        assert len(asked) == 1
    assert not ledger._held
