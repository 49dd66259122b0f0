"""Webhooks, the same on every store."""

from typing import Any

from oncekey.core.webhooks import (
    ChangeWebhook,
    DropWebhook,
    FindWebhook,
    KeepWebhook,
    ListWebhooks,
    StoredWebhook,
)
from tests.fixtures.stores import Caller, Place


def webhook(letter: str, created_at: int = 7, **others: Any) -> StoredWebhook:
    return StoredWebhook(
        f"wh_{letter * 30}", "acme", "shop", "stripe", "forward:/paid", "", "refuse", "[]", 1,
        created_at, created_at,
    )._replace(**others)  # fmt: skip


def keep(caller: Caller, *webhooks: StoredWebhook) -> None:
    for each in webhooks:
        assert caller.ask(KeepWebhook(each)) is True


def test_a_webhook_is_found_as_it_was_kept(caller: Caller) -> None:
    kept = webhook("a", label="Zahlungen ✓", repeats="allow", secrets='[{"sealed":"x"}]')
    keep(caller, kept)

    assert caller.ask(FindWebhook(kept.id)) == kept
    assert caller.ask(FindWebhook(webhook("b").id)) is None


def test_an_id_is_given_once(caller: Caller) -> None:
    keep(caller, webhook("a"))

    assert caller.ask(KeepWebhook(webhook("a", tenant="other"))) is False
    assert caller.ask(FindWebhook(webhook("a").id)) == webhook("a")


def test_what_is_kept_again_to_the_letter_is_kept(caller: Caller) -> None:
    """A commit whose answer was lost is sent again."""
    keep(caller, webhook("a"), webhook("a"))


def test_a_page_is_newest_first_and_of_one_tenant_when_asked(caller: Caller) -> None:
    old, same, other, new = (
        webhook("z", 1),
        webhook("A", 5),
        webhook("a", 5, tenant="other"),
        webhook("b", 9),
    )
    keep(caller, same, new, old, other)

    assert caller.ask(ListWebhooks()) == [new, other, same, old]
    assert caller.ask(ListWebhooks("acme", limit=2)) == [new, same]
    assert caller.ask(ListWebhooks("acme", before=(5, other.id))) == [same, old]
    assert caller.ask(ListWebhooks(before=(5, other.id), limit=1)) == [same]
    assert caller.ask(ListWebhooks("nobody")) == []


def test_a_change_must_have_seen_the_webhook_as_it_is(caller: Caller) -> None:
    keep(caller, webhook("a"))
    changed = webhook(
        "a", label="new", follows="workflow:w", secrets="[1]", version=2, updated_at=9
    )

    assert caller.ask(ChangeWebhook(changed, seen=1)) is True
    assert caller.ask(ChangeWebhook(webhook("a", version=2), seen=1)) is False
    assert caller.ask(FindWebhook(changed.id)) == changed


def test_a_change_that_is_sent_again_has_happened(caller: Caller) -> None:
    keep(caller, webhook("a"))
    changed = webhook("a", label="new", version=2)

    assert caller.ask(ChangeWebhook(changed, seen=1)) is True
    assert caller.ask(ChangeWebhook(changed, seen=1)) is True
    assert caller.ask(ChangeWebhook(webhook("b", version=2), seen=1)) is False


def test_whose_it_is_never_changes(caller: Caller) -> None:
    keep(caller, webhook("a"))
    moved = webhook("a", version=2, tenant="x", project="y", provider="z")._replace(created_at=1)

    caller.ask(ChangeWebhook(moved, seen=1))

    assert caller.ask(FindWebhook(moved.id)) == webhook("a", version=2)


def test_a_webhook_is_dropped_once(caller: Caller) -> None:
    keep(caller, webhook("a"), webhook("b"))

    assert caller.ask(DropWebhook(webhook("a").id)) is True
    assert caller.ask(DropWebhook(webhook("a").id)) is False
    assert caller.ask(ListWebhooks()) == [webhook("b")]


def test_webhooks_go_into_one_group_with_reads_and_claims(caller: Caller) -> None:
    keep(caller, webhook("a"))
    asked = [caller.insert("k"), FindWebhook(webhook("a").id), DropWebhook(webhook("a").id)]

    assert caller.ask_all(asked)[2] is True
    assert caller.ask(FindWebhook(webhook("a").id)) is None


def test_another_process_sees_what_one_has_kept(shared: Place) -> None:
    keep(shared.open(), webhook("a"))

    assert shared.open().ask(FindWebhook(webhook("a").id)) == webhook("a")
