"""Keys of tokens from an address that rotates them, or is away: never a storm of questions, and
nobody is believed who should not be."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator

import pytest

from oncekey.core.errors import IdentityUnavailable
from oncekey.edge.identity.jwks import FetchedKeys
from tests.fixtures.frozen import FrozenClock
from tests.fixtures.published import FIRST, SECOND, Edge, edge_of, made_up, publish, token
from tests.fixtures.site import Reply, Site
from tests.fixtures.tokens import curve, rsa, signed

pytestmark = pytest.mark.anyio


@pytest.fixture
async def edge(site: Site) -> AsyncIterator[Edge]:
    async with edge_of(site) as made:
        yield made


# -- asked once ------------------------------------------------------------------------------


async def test_keys_are_asked_for_once_by_all_who_need_them(edge: Edge, site: Site) -> None:
    site.gate.clear()
    waiting = [asyncio.create_task(edge.believes(token(sub=f"u{n}"))) for n in range(20)]
    await asyncio.to_thread(site.arrived.acquire)
    site.gate.set()

    assert all(await asyncio.gather(*waiting))
    assert await edge.believes(signed(curve(), algorithm="ES256"))
    assert edge.asked == 1
    heard = site.heard[0]
    assert (heard.method, heard.path) == ("GET", "/keys?tenant=7")
    assert "authorization" not in heard.headers


async def test_one_who_leaves_does_not_take_the_answer_with_him(edge: Edge, site: Site) -> None:
    site.gate.clear()
    leaves, stays = [asyncio.create_task(edge.believes(token())) for _ in range(2)]
    await asyncio.to_thread(site.arrived.acquire)
    leaves.cancel()
    await asyncio.wait([leaves])
    site.gate.set()

    assert await stays
    assert edge.asked == 1


async def test_nobody_waits_for_ever_when_it_is_closed(edge: Edge, site: Site) -> None:
    site.gate.clear()
    waiting = asyncio.create_task(edge.believes(token()))
    await asyncio.to_thread(site.arrived.acquire)
    await edge.identities.close()

    with pytest.raises(IdentityUnavailable, match="closed"):
        await waiting
    edge.clock.advance(1_000)
    with pytest.raises(IdentityUnavailable, match="closed"):
        await edge.believes(token())
    assert edge.asked == 1


# -- rotation --------------------------------------------------------------------------------


async def test_a_new_key_is_believed_as_soon_as_it_signs(edge: Edge, site: Site) -> None:
    assert await edge.believes(token())
    publish(site, FIRST, SECOND)

    assert await edge.believes(token(SECOND))
    assert await edge.believes(token())
    assert edge.asked == 2


async def test_a_key_that_is_gone_signs_nothing_any_more(edge: Edge, site: Site) -> None:
    old = token()
    assert await edge.believes(old)
    assert edge.recalls(old)
    publish(site, SECOND)

    assert await edge.believes(token(SECOND))
    assert not edge.recalls(old)
    assert not await edge.believes(old)


async def test_another_key_under_the_same_name(edge: Edge, site: Site) -> None:
    """Found when keys are next asked for, though no name is new."""
    assert await edge.believes(token())
    publish(
        site, renamed := type(SECOND).import_key({**SECOND.as_dict(private=True), "kid": "first"})
    )
    edge.clock.advance(600_000)

    assert await edge.believes(token(renamed))
    assert not await edge.believes(token())


async def test_keys_are_asked_for_again_when_they_are_old(edge: Edge, site: Site) -> None:
    assert await edge.believes(token())
    publish(site, SECOND)
    edge.clock.advance(599_999)
    assert await edge.believes(token())
    assert edge.asked == 1

    edge.clock.advance(1)
    assert not await edge.believes(token())
    assert edge.asked == 2


async def test_what_is_remembered_holds_while_the_keys_are_the_same(edge: Edge) -> None:
    good = token()
    assert await edge.believes(good)
    edge.clock.advance(600_000)
    assert await edge.believes(good)
    other = token(sub="other")
    assert await edge.believes(other)

    assert edge.recalls(good)
    assert edge.asked == 2


async def test_no_keys_at_all_are_an_answer(
    edge: Edge, site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    assert await edge.believes(token())
    publish(site)
    edge.clock.advance(600_000)

    assert not await edge.believes(token())
    assert "no key that can be used" in caplog.text


# -- no storm --------------------------------------------------------------------------------


async def test_names_that_are_made_up_are_asked_for_once_per_cooldown(edge: Edge) -> None:
    assert await edge.believes(token())

    for round_ in range(3):
        many = [edge.believes(made_up(f"{round_}-{n}")) for n in range(50)]
        assert not any(await asyncio.gather(*many))
        assert edge.asked == 2 + round_
        edge.clock.advance(29_999)
        assert not await edge.believes(made_up("again"))
        assert edge.asked == 2 + round_
        edge.clock.advance(1)


async def test_a_name_that_is_made_up_before_any_key_is_known(edge: Edge) -> None:
    assert not await edge.believes(made_up("nobody"))
    assert edge.asked == 1


async def test_made_up_tokens_of_known_names_ask_for_nothing(edge: Edge) -> None:
    assert await edge.believes(token())

    for forged in (made_up("first"), signed(rsa("attacker"), header={"alg": "RS256"})):
        assert not await edge.believes(forged)
    assert edge.asked == 1


async def test_made_up_names_do_not_keep_a_new_key_out_for_longer_than_that(
    edge: Edge, site: Site
) -> None:
    assert await edge.believes(token())
    assert not await edge.believes(made_up("nobody"))
    publish(site, FIRST, SECOND)

    assert not await edge.believes(token(SECOND))
    edge.clock.advance(30_000)
    assert await edge.believes(token(SECOND))


# -- away ------------------------------------------------------------------------------------


async def test_the_last_keys_hold_while_the_address_is_away(
    edge: Edge, site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    assert await edge.believes(token())
    site.stop()
    for _ in range(3):
        edge.clock.advance(600_000)
        assert await edge.believes(token())
        assert not await edge.believes(made_up("nobody"))
        await edge.settled()
    assert "the last keys hold" in caplog.text
    assert "tenant=7" not in caplog.text

    publish(site, SECOND)
    site.start()
    edge.clock.advance(600_000)
    assert await edge.believes(token())
    await edge.settled()
    assert await edge.believes(token(SECOND))
    assert not await edge.believes(token())


async def test_while_it_is_away_nobody_waits_for_it(edge: Edge, site: Site) -> None:
    assert await edge.believes(token())
    site.stop()
    edge.clock.advance(600_000)
    assert await edge.believes(token())
    site.start()
    site.gate.clear()
    edge.clock.advance(30_000)

    # The question is under way behind this, and stands at the gate.
    assert await edge.believes(token())
    await asyncio.to_thread(site.arrived.acquire)
    assert await edge.believes(token(sub="other"))
    site.gate.set()
    await edge.settled()


async def test_without_any_keys_who_calls_cannot_be_said(edge: Edge, site: Site) -> None:
    site.stop()

    for _ in range(2):
        with pytest.raises(IdentityUnavailable, match="not reached"):
            await edge.believes(token())
    site.start()
    with pytest.raises(IdentityUnavailable):
        await edge.believes(token())
    assert edge.asked == 0

    edge.clock.advance(1_000)
    assert await edge.believes(token())


async def test_what_cannot_be_a_token_is_refused_all_the_same(edge: Edge, site: Site) -> None:
    site.stop()

    assert not await edge.believes("a.b.c")


async def test_an_address_that_is_too_slow(site: Site) -> None:
    site.gate.clear()
    keys = FetchedKeys(site.url, FrozenClock(), timeout=0.05)

    with pytest.raises(IdentityUnavailable, match=r"did not answer in 0\.05 s"):
        await keys.find("first", "RS256")
    await keys.close()


async def test_an_address_that_never_ends(site: Site) -> None:
    """Each part comes in time; the whole of it does not."""
    site.answer = lambda _: Reply(drops())
    keys = FetchedKeys(site.url, FrozenClock(), timeout=0.1)

    with pytest.raises(IdentityUnavailable, match="did not answer"):
        await keys.find("first", "RS256")
    await keys.close()


def drops() -> Iterator[bytes]:
    never = threading.Event()
    while not never.wait(0.01):
        yield b" "
