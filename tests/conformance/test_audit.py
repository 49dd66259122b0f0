"""The audit feed, the same on every store."""

from oncekey.core.audit import AuditEntry, KeepAudit, ListAudit
from tests.fixtures.stores import Caller, Place


def entry(number: int, tenant: str | None = "acme", **others: str) -> AuditEntry:
    whole = AuditEntry(number, 7, "cli:ann", "webhook.create", "wh_x", tenant, '{"a": "✓"}')
    return whole._replace(**others)


def keep(caller: Caller, *entries: AuditEntry) -> None:
    for each in entries:
        assert caller.ask(KeepAudit(each)) is True


def test_an_entry_is_listed_as_it_was_kept(caller: Caller) -> None:
    keep(caller, entry(1), entry(2, None))

    assert caller.ask(ListAudit()) == [entry(2, None), entry(1)]


def test_a_page_is_newest_first_and_of_one_tenant_when_asked(caller: Caller) -> None:
    keep(caller, entry(5), entry(1), entry(3, "other"), entry(1 << 62), entry(4, None))

    assert [each.id for each in caller.ask(ListAudit())] == [1 << 62, 5, 4, 3, 1]
    assert [each.id for each in caller.ask(ListAudit(limit=2))] == [1 << 62, 5]
    assert [each.id for each in caller.ask(ListAudit(before=4))] == [3, 1]
    assert [each.id for each in caller.ask(ListAudit("acme", before=1 << 62))] == [5, 1]
    assert caller.ask(ListAudit("nobody")) == []


def test_no_entry_is_ever_written_over(caller: Caller) -> None:
    keep(caller, entry(1))

    assert caller.ask(KeepAudit(entry(1, actor="cli:eve"))) is False
    assert caller.ask(ListAudit()) == [entry(1)]


def test_what_is_kept_again_to_the_letter_is_kept_once(caller: Caller) -> None:
    """A commit whose answer was lost is sent again."""
    keep(caller, entry(1), entry(1))

    assert caller.ask(ListAudit()) == [entry(1)]


def test_the_sweep_leaves_the_feed_alone(caller: Caller) -> None:
    keep(caller, entry(1))

    assert caller.store.sweep(1 << 60, 100) == 0
    assert caller.ask(ListAudit()) == [entry(1)]


def test_another_process_sees_what_one_has_kept(shared: Place) -> None:
    keep(shared.open(), entry(1))

    assert shared.open().ask(ListAudit("acme")) == [entry(1)]
