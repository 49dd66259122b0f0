"""Secrets of webhooks: sealed, bound to their webhook, several at once while one is rotated."""

import json
from base64 import b64encode
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oncekey.core.errors import ConfigurationError, InvalidInput, SecretsUnavailable
from oncekey.core.webhooks import StoredWebhook
from oncekey.webhooks.provider import Provider
from oncekey.webhooks.providers.registry import providers_of
from oncekey.webhooks.sealing import Sealer, key_id_in, key_id_of
from oncekey.webhooks.secrets import (
    MAX_SECRETS,
    LocalSecrets,
    Ring,
    Secret,
    added,
    check_secret,
    good,
    rotated,
)

OLD, NEW = b"o" * 32, b"n" * 32
ONE, OTHER = f"wh_{'a' * 30}", f"wh_{'b' * 30}"


def webhook(secrets: str = "[]", id_: str = ONE) -> StoredWebhook:
    return StoredWebhook(
        id_, "acme", "shop", "stripe", "workflow:w", "", "refuse", secrets, 1, 0, 0
    )


def with_secret(text: str) -> Callable[[Ring], Ring]:
    return lambda ring: added(ring, text, 5, ONE)


# -- sealing --------------------------------------------------------------------------------


@given(st.text(min_size=1, max_size=300).filter(lambda text: text.isprintable()))
def test_what_is_sealed_can_be_opened_and_not_be_read(secret: str) -> None:
    sealed = Sealer([NEW]).seal(secret, ONE)

    assert Sealer([NEW]).open(sealed, ONE) == secret
    assert len(secret) < 8 or secret not in sealed


def test_the_same_secret_is_sealed_otherwise_each_time() -> None:
    sealer = Sealer([NEW])
    assert sealer.seal("whsec_1", ONE) != sealer.seal("whsec_1", ONE)


def test_a_secret_opens_for_its_own_webhook_only() -> None:
    sealed = Sealer([NEW]).seal("whsec_1", ONE)
    with pytest.raises(SecretsUnavailable, match="was changed since it was sealed"):
        Sealer([NEW]).open(sealed, OTHER)


@given(st.data())
def test_a_sealed_secret_that_was_changed_does_not_open(data: st.DataObject) -> None:
    sealed = Sealer([NEW], randbytes=bytes).seal("whsec_1", ONE)
    at = data.draw(st.integers(len("v1.12345678."), len(sealed) - 3))
    other = data.draw(st.sampled_from("ABCXYZabcxyz0189-_").filter(lambda char: char != sealed[at]))
    changed = sealed[:at] + other + sealed[at + 1 :]

    with pytest.raises(SecretsUnavailable):
        Sealer([NEW]).open(changed, ONE)


@pytest.mark.parametrize("sealed", ["", "v1", "v1.", "v1.{}.", "v1.{}.AAAA", "v1.{}.é", "v2.{}.AA"])
def test_rubbish_does_not_open(sealed: str) -> None:
    with pytest.raises(SecretsUnavailable):
        Sealer([NEW]).open(sealed.format(key_id_of(NEW)), ONE)


def test_the_newest_key_seals_and_all_of_them_open() -> None:
    before = Sealer([OLD]).seal("whsec_1", ONE)
    both = Sealer([NEW, OLD])

    assert both.open(before, ONE) == "whsec_1"
    assert key_id_in(both.seal("whsec_1", ONE)) == key_id_of(NEW)


def test_another_key_is_told_by_its_id_and_never_by_itself() -> None:
    sealed = Sealer([OLD]).seal("whsec_1", ONE)
    with pytest.raises(SecretsUnavailable) as caught:
        Sealer([NEW]).open(sealed, ONE)

    told = str(caught.value)
    assert key_id_of(OLD) in told
    assert key_id_of(NEW) in told
    assert "same keys" in told
    assert b64encode(NEW).decode() not in told


@pytest.mark.parametrize("length", [0, 16, 31, 33])
def test_a_key_of_another_length_is_refused(length: int) -> None:
    with pytest.raises(ConfigurationError, match=f"32 bytes long, not {length}"):
        Sealer([b"k" * length])


# -- the ring -------------------------------------------------------------------------------


def test_no_representation_shows_a_secret() -> None:
    ring = added((), "whsec_1", 5, ONE)
    assert "whsec_1" not in f"{ring!r} {ring[0]} {ring[0]!r} {[*ring]}"


def test_a_rotation_lets_the_old_one_go_after_the_overlap() -> None:
    ring = rotated(added((), "one", 0, ONE), "two", 1000, 60.0, ONE)

    assert [(each.text, each.until) for each in ring] == [("two", None), ("one", 61_000)]
    assert [each.text for each in good(ring, 60_999)] == ["two", "one"]
    assert [each.text for each in good(ring, 61_000)] == ["two"]


def test_a_second_rotation_prolongs_nothing() -> None:
    ring = rotated(added((), "one", 0, ONE), "two", 0, 60.0, ONE)
    ring = rotated(ring, "three", 1000, 3600.0, ONE)

    assert [each.until for each in ring] == [None, 3_601_000, 60_000]


def test_without_an_overlap_the_old_one_is_gone_at_once() -> None:
    ring = rotated(added((), "one", 0, ONE), "two", 1000, 0.0, ONE)
    assert [each.text for each in ring] == ["two"]


def test_what_has_ended_is_not_carried_along() -> None:
    ring = rotated(added((), "one", 0, ONE), "two", 0, 1.0, ONE)
    assert [each.text for each in rotated(ring, "three", 1000, 60.0, ONE)] == ["three", "two"]


def test_to_rotate_to_the_newest_changes_nothing() -> None:
    ring = rotated(added((), "one", 0, ONE), "two", 0, 60.0, ONE)
    assert rotated(ring, "two", 9, 1.0, ONE) == ring


def test_a_secret_that_comes_back_is_the_newest() -> None:
    ring = rotated(added((), "one", 0, ONE), "two", 0, 60.0, ONE)
    ring = rotated(ring, "one", 9, 60.0, ONE)
    assert (ring[0].text, ring[0].until) == ("one", None)


def test_there_are_only_so_many_at_once() -> None:
    ring: Ring = ()
    for number in range(MAX_SECRETS):
        ring = rotated(ring, f"secret-{number}", 0, 60.0, ONE)
    with pytest.raises(InvalidInput, match="--overlap 0s"):
        rotated(ring, "one more", 0, 60.0, ONE)
    assert len(rotated(ring, "one more", 0, 0.0, ONE)) == 1


@pytest.mark.parametrize(
    "text",
    ["", "\n", " s3cret", "s3cret ", "\ns3cret", "s3\0cret", "s3cret\r", "s" * 16385, "s\ud800"],
)
def test_what_cannot_be_a_secret_is_refused_without_telling_it(text: str) -> None:
    with pytest.raises(InvalidInput, match="printable text of at most 16384") as caught:
        check_secret(text)
    assert "s3" not in str(caught.value)


@pytest.mark.parametrize("provider", providers_of().values(), ids=lambda each: each.name)
def test_every_provider_makes_secrets_that_can_be_kept(provider: Provider) -> None:
    secret = provider.new_secret()
    assert check_secret(secret) == secret


# -- in the row of the webhook --------------------------------------------------------------


@pytest.mark.anyio
async def test_secrets_come_back_from_the_row() -> None:
    keeper = LocalSecrets(NEW)
    kept = await keeper.edit(webhook(), with_secret("whsec_1"))
    kept = await keeper.edit(webhook(kept), lambda ring: rotated(ring, "whsec_2", 9, 60.0, ONE))

    assert "whsec" not in kept
    assert await keeper.read(webhook(kept)) == (Secret("whsec_2", 9), Secret("whsec_1", 5, 60_009))
    assert await keeper.read(webhook()) == ()


@pytest.mark.anyio
async def test_each_change_seals_all_of_them_with_the_newest_key() -> None:
    kept = await LocalSecrets(OLD).edit(webhook(), with_secret("whsec_1"))
    kept = await LocalSecrets(lambda: (NEW, OLD)).edit(webhook(kept), with_secret("whsec_2"))

    assert {key_id_in(row["sealed"]) for row in json.loads(kept)} == {key_id_of(NEW)}


@pytest.mark.anyio
async def test_a_new_key_seals_though_another_has_sealed_here() -> None:
    keys = [OLD]
    keeper = LocalSecrets(lambda: tuple(keys))
    kept = await keeper.edit(webhook(), with_secret("whsec_1"))
    keys.insert(0, NEW)
    kept = await keeper.edit(webhook(kept), with_secret("whsec_2"))

    assert {key_id_in(row["sealed"]) for row in json.loads(kept)} == {key_id_of(NEW)}


@pytest.mark.anyio
async def test_keys_are_read_again_when_a_secret_is_sealed_with_another() -> None:
    keys = [OLD]
    keeper = LocalSecrets(lambda: tuple(keys))
    before = await keeper.edit(webhook(), with_secret("whsec_1"))
    await keeper.read(webhook(before))
    keys.insert(0, NEW)
    after = await LocalSecrets(NEW).edit(webhook(), with_secret("whsec_2"))

    assert [each.text for each in await keeper.read(webhook(after))] == ["whsec_2"]
    assert [each.text for each in await keeper.read(webhook(before))] == ["whsec_1"]


@pytest.mark.anyio
async def test_without_a_key_nothing_is_sealed_and_nothing_opened() -> None:
    keeper = LocalSecrets(lambda: ())
    with pytest.raises(ConfigurationError, match="no key to seal"):
        await keeper.edit(webhook(), with_secret("whsec_1"))
    kept = await LocalSecrets(NEW).edit(webhook(), with_secret("whsec_1"))
    with pytest.raises(SecretsUnavailable, match="has none"):
        await keeper.read(webhook(kept))


@pytest.mark.anyio
async def test_a_key_that_cannot_be_had_is_a_failure_to_open() -> None:
    def keys() -> tuple[bytes, ...]:
        raise ConfigurationError("chmod 600 it")

    kept = await LocalSecrets(NEW).edit(webhook(), with_secret("whsec_1"))
    with pytest.raises(SecretsUnavailable, match="chmod 600 it"):
        await LocalSecrets(keys).read(webhook(kept))


@pytest.mark.anyio
async def test_whoever_seals_first_has_a_key_made() -> None:
    keys: list[bytes] = []
    keeper = LocalSecrets(lambda: tuple(keys), make=lambda: keys.append(NEW))

    kept = await keeper.edit(webhook(), with_secret("whsec_1"))
    await keeper.edit(webhook(kept), with_secret("whsec_2"))

    assert keys == [NEW]
