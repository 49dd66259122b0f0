"""Webhooks from their making to their end: found quickly, changed by one at a time."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

import oncekey
from oncekey.core.errors import InvalidInput, NotFound, ScopeInvalid, SecretsUnavailable
from oncekey.core.ledger import Ledger
from oncekey.core.webhooks import FindWebhook, StoredWebhook, is_webhook_id
from oncekey.webhooks.secrets import LocalSecrets, Ring
from oncekey.webhooks.sources import Source, Sources
from oncekey.webhooks.then import Publish, Resolve, Start
from tests.fixtures.frozen import FrozenClock

pytestmark = pytest.mark.anyio

THEN = Resolve('"stripe:" + body.data.object.id')


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture
async def ledger(clock: FrozenClock) -> AsyncIterator[Ledger]:
    opened = oncekey.open("memory://", clock=clock)
    yield opened
    await opened.aclose()


class Counting(LocalSecrets):
    """Counts how often secrets are opened."""

    def __init__(self) -> None:
        super().__init__(b"k" * 32)
        self.reads = 0

    async def read(self, webhook: StoredWebhook) -> Ring:
        self.reads += 1
        return await super().read(webhook)


@pytest.fixture
def keeper() -> Counting:
    return Counting()


@pytest.fixture
def sources(ledger: Ledger, keeper: Counting) -> Sources:
    return Sources(ledger, keeper)


class Late:
    """A ledger whose first answer is there, and comes when it is let go."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.clock = ledger.clock
        self.answered = asyncio.Event()
        self.go = asyncio.Event()

    async def arun(self, steps: Any) -> Any:
        first = not self.answered.is_set()
        answer = await self._ledger.arun(steps)
        if first:
            self.answered.set()
            await self.go.wait()
        return answer


@pytest.fixture
async def late(ledger: Ledger) -> Late:
    return Late(ledger)


async def make(sources: Sources, **others: Any) -> Source:
    options = {"secret": "whsec_1", **others}
    place = (options.pop("tenant", "acme"), options.pop("project", "shop"))
    provider = options.pop("provider", "stripe")
    return await sources.create(*place, provider, options.pop("then", THEN), **options)


async def test_a_webhook_is_found_as_it_was_made(sources: Sources, clock: FrozenClock) -> None:
    made = await make(sources, label="paid", repeats="allow")

    assert is_webhook_id(made.id)
    assert made == Source(made.id, "acme", "shop", "stripe", THEN, "paid", clock.now(), "allow")
    assert await sources.find(made.id) == made
    assert await sources.secrets(made) == ("whsec_1",)


async def test_an_id_says_nothing(sources: Sources) -> None:
    ids = {(await make(sources)).id for _ in range(50)}

    assert len(ids) == 50
    assert not any("acme" in each or "stripe" in each for each in ids)


@pytest.mark.parametrize(
    "unknown", ["wh_" + "a" * 30, "wh_x", "", "a" * 100_000, "wh_\0" + "a" * 30]
)
async def test_what_there_is_not_is_not_found(sources: Sources, unknown: str) -> None:
    assert await sources.find(unknown) is None
    assert await sources.delete(unknown) is False
    with pytest.raises(NotFound, match="oncekey webhooks list"):
        await sources.rotate(unknown, "whsec_2")


@pytest.mark.parametrize(
    "wrong, error",
    [
        ({"tenant": "a:b"}, ScopeInvalid),
        ({"project": "_platforms"}, ScopeInvalid),
        ({"provider": "Stripe/.."}, InvalidInput),
        ({"label": "a\nb"}, InvalidInput),
        ({"repeats": "maybe"}, InvalidInput),
        ({"secret": " "}, InvalidInput),
        ({"secret": None}, InvalidInput),
    ],
)
async def test_what_breaks_a_rule_makes_no_webhook(
    sources: Sources, wrong: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        await make(sources, **wrong)
    assert await sources.list() == []


async def test_secrets_are_nowhere_in_the_store(sources: Sources, ledger: Ledger) -> None:
    made = await make(sources)

    def find() -> Any:
        return (yield FindWebhook(made.id))

    assert "whsec_1" not in repr(await ledger.arun(find()))
    assert "whsec_1" not in repr(made)


async def test_a_rotation_has_both_for_a_while(sources: Sources, clock: FrozenClock) -> None:
    made = await make(sources)
    await sources.secrets(made)

    assert await sources.rotate(made.id, "whsec_2", overlap=60.0) == made

    assert await sources.secrets(made) == ("whsec_2", "whsec_1")
    clock.advance(59_999)
    assert await sources.secrets(made) == ("whsec_2", "whsec_1")
    clock.advance(1)
    assert await sources.secrets(made) == ("whsec_2",)


async def test_the_end_of_a_secret_is_exact_for_those_who_remember(
    sources: Sources, keeper: Counting, clock: FrozenClock
) -> None:
    made = await make(sources)
    await sources.rotate(made.id, "whsec_2", overlap=1.0)
    await sources.secrets(made)
    reads = keeper.reads

    clock.advance(1000)
    assert await sources.secrets(made) == ("whsec_2",)
    assert keeper.reads == reads


async def test_secrets_are_opened_once_and_remembered(
    sources: Sources, keeper: Counting, clock: FrozenClock
) -> None:
    made = await make(sources)
    for _ in range(3):
        await sources.secrets(made)
    assert keeper.reads == 1
    clock.advance(2000)
    await sources.secrets(made)
    assert keeper.reads == 2


@pytest.mark.parametrize("overlap", [-1.0, float("inf"), float("nan")])
async def test_an_overlap_is_a_length_of_time(sources: Sources, overlap: float) -> None:
    made = await make(sources)
    with pytest.raises(InvalidInput, match="overlap"):
        await sources.rotate(made.id, "whsec_2", overlap=overlap)


async def test_rotations_at_once_lose_no_secret(sources: Sources) -> None:
    made = await make(sources)
    wanted = [f"whsec_{number}" for number in range(2, 7)]

    await asyncio.gather(*(sources.rotate(made.id, each, overlap=60.0) for each in wanted))

    assert sorted(await sources.secrets(made)) == ["whsec_1", *wanted]


async def test_what_is_changed_elsewhere_is_seen_after_two_seconds(
    ledger: Ledger, sources: Sources, keeper: Counting, clock: FrozenClock
) -> None:
    made = await make(sources)
    other = Sources(ledger, keeper)
    assert await other.secrets(made) == ("whsec_1",)

    await sources.rotate(made.id, "whsec_2")
    changed = await sources.change(made.id, then=Start("paid"))
    assert await sources.find(made.id) == changed
    assert await other.find(made.id) == made

    clock.advance(2000)
    assert await other.find(made.id) == changed
    assert await other.secrets(made) == ("whsec_2", "whsec_1")


async def test_an_answer_that_was_under_way_during_a_change_is_not_remembered(
    late: Late, sources: Sources, keeper: Counting
) -> None:
    made = await make(sources)
    here = Sources(late, keeper)  # type: ignore[arg-type]
    finding = asyncio.create_task(here.find(made.id))
    await late.answered.wait()
    changed = await here.change(made.id, label="new")
    late.go.set()

    assert await finding == made
    assert await here.find(made.id) == changed


async def test_an_answer_is_as_old_as_its_question(
    late: Late, sources: Sources, keeper: Counting, clock: FrozenClock
) -> None:
    made = await make(sources)
    here = Sources(late, keeper)  # type: ignore[arg-type]
    finding = asyncio.create_task(here.find(made.id))
    await late.answered.wait()
    changed = await sources.change(made.id, label="new")
    clock.advance(1999)
    late.go.set()
    assert await finding == made

    clock.advance(1)
    assert await here.find(made.id) == changed


async def test_no_more_are_remembered_than_may_be(ledger: Ledger, keeper: Counting) -> None:
    sources = Sources(ledger, keeper, cache_size=2)
    made = [await make(sources) for _ in range(3)]
    for each in made:
        await sources.secrets(each)
    assert keeper.reads == 3

    await sources.secrets(made[2])
    assert keeper.reads == 3
    await sources.secrets(made[0])
    assert keeper.reads == 4


async def test_a_change_leaves_what_it_does_not_name(sources: Sources) -> None:
    made = await make(sources, label="one", repeats="allow")

    assert await sources.change(made.id, label="two") == made._replace(label="two")
    assert await sources.change(made.id, then=Publish("'x'")) == made._replace(
        label="two", then=Publish("'x'")
    )
    assert (await sources.change(made.id, repeats="refuse")).repeats == "refuse"
    assert await sources.secrets(made) == ("whsec_1",)
    with pytest.raises(InvalidInput):
        await sources.change(made.id, label="\0")


async def test_changes_at_once_all_happen(sources: Sources) -> None:
    made = await make(sources)
    await asyncio.gather(
        sources.change(made.id, label="new"),
        sources.change(made.id, then=Start("paid")),
        sources.rotate(made.id, "whsec_2"),
    )
    assert await sources.find(made.id) == made._replace(label="new", then=Start("paid"))
    assert await sources.secrets(made) == ("whsec_2", "whsec_1")


async def test_a_webhook_that_is_deleted_is_gone_here_at_once(
    ledger: Ledger, sources: Sources, keeper: Counting, clock: FrozenClock
) -> None:
    made = await make(sources)
    other = Sources(ledger, keeper)
    assert await sources.secrets(made) == await other.secrets(made)

    assert await sources.delete(made.id) is True
    assert await sources.delete(made.id) is False
    assert await sources.find(made.id) is None
    with pytest.raises(NotFound):
        await sources.secrets(made)
    clock.advance(2000)
    assert await other.find(made.id) is None


async def test_a_list_is_newest_first_and_paged(sources: Sources, clock: FrozenClock) -> None:
    made = []
    for tenant in ("acme", "other", "acme", "acme"):
        made.append(await make(sources, tenant=tenant))
        clock.advance(1)
    one, two, three, four = made

    assert await sources.list() == [four, three, two, one]
    assert await sources.list("acme", limit=2) == [four, three]
    assert await sources.list("acme", before=three.id) == [one]
    with pytest.raises(NotFound):
        await sources.list(before="wh_none")
    with pytest.raises(ScopeInvalid):
        await sources.list("a\0b")


async def test_without_a_key_a_webhook_is_found_and_its_secrets_are_not(
    ledger: Ledger, sources: Sources
) -> None:
    made = await make(sources)
    other = Sources(ledger, LocalSecrets(lambda: ()))

    assert await other.find(made.id) == made
    with pytest.raises(SecretsUnavailable):
        await other.secrets(made)


async def test_when_every_secret_has_ended_it_says_what_to_do(
    ledger: Ledger, sources: Sources, clock: FrozenClock
) -> None:
    made = await make(sources)

    class Empty(LocalSecrets):
        async def read(self, webhook: StoredWebhook) -> Ring:
            return ()

    with pytest.raises(SecretsUnavailable, match=f"oncekey webhooks rotate {made.id}"):
        await Sources(ledger, Empty(b"k" * 32)).secrets(made)
