"""The store is away while the outcome of a delivery is written: it is not done a second time."""

from collections.abc import Iterator

import pytest

import oncekey
from oncekey import Kind, Ledger, Outcome
from oncekey.webhooks.acting import Answered, ForwardRequest
from tests.fixtures.away import Away
from tests.fixtures.post import post_on

pytestmark = pytest.mark.anyio

PUSH = {"ref": "refs/heads/main"}


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


async def test_what_could_not_be_stored_is_not_called_done(ledger: Ledger, away: Away) -> None:
    async def behind(_: ForwardRequest) -> Answered:
        return Answered(Outcome(Kind.RESPONSE, 201), True)

    async with post_on(ledger, forward=behind) as post:
        stripe = await post.webhook("stripe", "forward:/builds")
        away.times = 1
        assert (await stripe.deliver({"id": "evt_1"})).status >= 500
        assert await stripe.verdicts(1) == ["uncertain"]
        assert not away.times
        assert (await stripe.insist({"id": "evt_1"})).status == 200


async def test_whoever_lost_the_claim_answers_what_the_winner_came_to(ledger: Ledger) -> None:
    """An operator frees the name while it is handled, and the next attempt is the quicker one."""
    asked: list[ForwardRequest] = []

    async def behind(request: ForwardRequest) -> Answered:
        asked.append(request)
        if len(asked) == 2:
            return Answered(Outcome(Kind.RESPONSE, 201, (), b"won"), True)
        await stripe.purge("evt_1")
        assert (await stripe.deliver({"id": "evt_1"})).body == b"won"
        return Answered(Outcome(Kind.RESPONSE, 201, (), b"lost"), True)

    async with post_on(ledger, forward=behind) as post:
        stripe = await post.webhook("stripe", "forward:/builds")
        assert (await stripe.deliver({"id": "evt_1"})).body == b"won"
        assert await stripe.verdicts(2) == ["accepted", "replayed"]
