"""Secrets in a vault: the real client against a real server that speaks KV version 2."""

import asyncio
import gc
import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from oncekey.core.errors import SecretsUnavailable
from oncekey.core.webhooks import StoredWebhook
from oncekey.webhooks.secrets import Secret, added, rotated
from oncekey.webhooks.vault import VaultSecrets
from oncekey.webhooks.vault_client import AppRole, Token
from tests.fixtures.frozen import FrozenClock
from tests.fixtures.ports import unused_port
from tests.fixtures.vault import ROLE_ID, SECRET_ID, TOKEN, Vault

pytestmark = pytest.mark.anyio

PATH = "acme:_tenant:stripe"
ONE, OTHER = f"wh_{'a' * 30}", f"wh_{'b' * 30}"
Open = Callable[..., VaultSecrets]


def webhook(id_: str = ONE, provider: str = "stripe") -> StoredWebhook:
    return StoredWebhook(
        id_, "acme", "_tenant", provider, "workflow:w", "", "refuse", "[]", 1, 0, 0
    )


@pytest.fixture
def clock() -> FrozenClock:
    return FrozenClock()


@pytest.fixture
def keeper_at(vault: Vault, clock: FrozenClock) -> Iterator[Open]:
    with ExitStack() as opened:

        def make(login: Token | AppRole | None = None, **options: Any) -> VaultSecrets:
            url = options.pop("url", vault.url)
            keeper = VaultSecrets(url, login or Token(TOKEN), clock=clock, **options)
            opened.callback(keeper.close)
            return keeper

        yield make
    # The client leaves its sockets to the garbage.
    gc.collect()


async def texts(keeper: VaultSecrets, of: StoredWebhook | None = None) -> list[str]:
    return [each.text for each in await keeper.read(of or webhook())]


@pytest.mark.parametrize(
    "value, found",
    [("whsec_1", ["whsec_1"]), (["whsec_2", "whsec_1"], ["whsec_2", "whsec_1"]), ([], [])],
)
async def test_what_an_operator_wrote_is_read(
    vault: Vault, keeper_at: Open, value: Any, found: list[str]
) -> None:
    vault.put(PATH, secret=value, owner="payments")
    assert await texts(keeper_at()) == found


async def test_another_mount_and_another_field(vault: Vault, keeper_at: Open) -> None:
    vault.entries[f"apps/hooks/{PATH}"] = [{"signing": "whsec_1", "secret": "no"}]
    assert await texts(keeper_at(mount="apps/hooks", field="signing")) == ["whsec_1"]


async def test_where_there_is_nothing_there_are_none(vault: Vault, keeper_at: Open) -> None:
    vault.entries[f"secret/{PATH}"] = [{"secret": "whsec_1"}, None]
    assert await texts(keeper_at()) == []
    assert await texts(keeper_at(), webhook(provider="github")) == []


async def test_what_was_read_is_believed_for_a_while(
    vault: Vault, keeper_at: Open, clock: FrozenClock
) -> None:
    vault.put(PATH, secret="whsec_1")
    keeper = keeper_at(cache=10.0)
    assert await texts(keeper) == ["whsec_1"]
    vault.put(PATH, secret="whsec_2")

    clock.advance(9_999)
    assert await texts(keeper) == ["whsec_1"]
    clock.advance(1)
    assert await texts(keeper) == ["whsec_2"]


async def test_many_at_once_ask_once(vault: Vault, keeper_at: Open) -> None:
    vault.put(PATH, secret="whsec_1")
    keeper = keeper_at()

    found = await asyncio.gather(*(texts(keeper) for _ in range(20)))

    assert found == [["whsec_1"]] * 20
    assert sum(vault.asked.values()) == 1


async def test_a_secret_is_written_beside_what_is_there(vault: Vault, keeper_at: Open) -> None:
    vault.put(PATH, secret="whsec_1", owner="payments")
    keeper = keeper_at()

    kept = await keeper.edit(webhook(), lambda ring: rotated(ring, "whsec_2", 1000, 60.0, ONE))

    assert kept == "[]"
    assert vault.at(PATH)["secret"] == ["whsec_2", "whsec_1"]
    assert vault.at(PATH)["owner"] == "payments"
    assert await keeper.read(webhook()) == (
        Secret("whsec_2", 1000, None, ONE),
        Secret("whsec_1", 0, 61_000),
    )


async def test_the_first_secret_is_written_as_a_text(vault: Vault, keeper_at: Open) -> None:
    await keeper_at().edit(webhook(), lambda ring: added(ring, "whsec_1", 5, ONE))
    assert vault.at(PATH)["secret"] == "whsec_1"


async def test_webhooks_at_one_path_have_their_own_secrets(vault: Vault, keeper_at: Open) -> None:
    vault.put(PATH, secret="for all")
    keeper, other = keeper_at(), webhook(OTHER)
    await keeper.edit(webhook(), lambda ring: added(ring, "one", 5, ONE))
    await keeper.edit(other, lambda ring: added(ring, "two", 6, OTHER))
    assert await texts(keeper) == ["one", "for all"]
    assert await texts(keeper, other) == ["two", "for all"]

    await keeper.edit(webhook(), lambda ring: rotated(ring, "new", 9, 0.0, ONE))
    assert await texts(keeper) == ["new"]
    assert await texts(keeper, other) == ["two"]

    await keeper.forget(webhook())
    assert await texts(keeper) == []
    assert await texts(keeper, other) == ["two"]


async def test_what_an_operator_writes_over_ours_is_what_counts(
    vault: Vault, keeper_at: Open
) -> None:
    await keeper_at().edit(webhook(), lambda ring: added(ring, "whsec_1", 5, ONE))
    vault.put(PATH, **{**vault.at(PATH), "secret": ["whsec_3", "whsec_2"]})

    assert await texts(keeper_at(), webhook(OTHER)) == ["whsec_3", "whsec_2"]


async def test_what_others_write_meanwhile_is_not_lost(vault: Vault, keeper_at: Open) -> None:
    vault.put(PATH, secret="whsec_1")
    vault.before_write = [lambda: vault.put(PATH, secret="whsec_2")] * 2

    await keeper_at().edit(webhook(), lambda ring: added(ring, "ours", 5, ONE))

    assert vault.at(PATH)["secret"] == ["ours", "whsec_2"]


async def test_somebody_who_never_stops_writing_is_told_of(vault: Vault, keeper_at: Open) -> None:
    vault.before_write = [lambda: vault.put(PATH, secret="theirs")] * 9
    with pytest.raises(SecretsUnavailable, match="others keep writing"):
        await keeper_at().edit(webhook(), lambda ring: added(ring, "ours", 5, ONE))
    assert vault.at(PATH)["secret"] == "theirs"


async def test_nothing_is_written_when_nothing_changes(vault: Vault, keeper_at: Open) -> None:
    vault.put(PATH, secret="whsec_1")
    await keeper_at().edit(webhook(), lambda ring: ring)
    await keeper_at().forget(webhook())
    assert len(vault.entries[f"secret/{PATH}"]) == 1


async def test_a_role_logs_in_once_and_again_when_its_token_has_ended(
    vault: Vault, keeper_at: Open
) -> None:
    vault.put(PATH, secret="whsec_1")
    keeper = keeper_at(AppRole(ROLE_ID, SECRET_ID), cache=0.0)
    assert await texts(keeper) == await texts(keeper) == ["whsec_1"]
    assert vault.asked["POST /v1/auth/approle/login"] == 1

    vault.tokens.clear()
    assert await texts(keeper) == ["whsec_1"]
    assert vault.asked["POST /v1/auth/approle/login"] == 2


@pytest.mark.parametrize(
    "login, said",
    [
        (Token("s.wrong-token"), "refused our credentials"),
        (AppRole(ROLE_ID, "wrong-secret-id"), "answered with an error"),
    ],
)
async def test_wrong_credentials_are_told_and_not_shown(
    vault: Vault, keeper_at: Open, login: Token | AppRole, said: str
) -> None:
    with pytest.raises(SecretsUnavailable, match=said) as caught:
        await keeper_at(login).read(webhook())
    assert "wrong" not in f"{caught.value}{login!r}"


@pytest.mark.parametrize(
    "status, answer, said",
    [
        (503, b'{"errors": ["Vault is sealed"]}', "answered with an error .VaultDown."),
        (500, b"whsec_1", "answered with an error"),
        (200, b"<html>whsec_1</html>", "not one of KV version 2"),
        (200, b"{}", "not one of KV version 2"),
        (200, b'{"data": {"data": {"secret": 7}, "metadata": {"version": 1}}}', "text or a list"),
        (200, b'{"data": {"data": {"secret": [""]}, "metadata": {"version": 1}}}', "text or a"),
        (302, b"", "not one of KV version 2|cannot be reached"),
    ],
)
async def test_what_a_vault_says_instead_is_a_failure_without_its_words(
    vault: Vault, keeper_at: Open, status: int, answer: bytes, said: str
) -> None:
    vault.answers = [(status, answer)]
    with pytest.raises(SecretsUnavailable, match=said) as caught:
        await keeper_at().read(webhook())
    told = str(caught.value)
    assert told.startswith(PATH)
    assert "whsec_1" not in told
    assert "127.0.0.1" not in told


async def test_a_vault_that_is_away_is_not_asked_by_everyone(
    vault: Vault, keeper_at: Open, clock: FrozenClock
) -> None:
    vault.put(PATH, secret="whsec_1")
    vault.answers = [(503, b"{}")]
    keeper = keeper_at()
    for _ in range(3):
        with pytest.raises(SecretsUnavailable):
            await keeper.read(webhook())
    assert sum(vault.asked.values()) == 1

    clock.advance(1000)
    assert await texts(keeper) == ["whsec_1"]


async def test_nobody_there(keeper_at: Open) -> None:
    with pytest.raises(SecretsUnavailable, match="cannot be reached") as caught:
        await keeper_at(url=f"http://u:hunter2@127.0.0.1:{unused_port()}").read(webhook())
    assert "hunter2" not in str(caught.value)


async def test_a_vault_that_does_not_answer_is_given_up(vault: Vault, keeper_at: Open) -> None:
    vault.gate.clear()
    with pytest.raises(SecretsUnavailable, match=r"cannot be reached|in time"):
        await keeper_at(timeout=0.05).read(webhook())


async def test_nothing_of_it_is_logged(
    vault: Vault, keeper_at: Open, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    vault.put(PATH, secret="whsec_1")
    await keeper_at().edit(webhook(), lambda ring: added(ring, "whsec_2", 5, ONE))
    assert "whsec" not in caplog.text
    assert TOKEN not in caplog.text
