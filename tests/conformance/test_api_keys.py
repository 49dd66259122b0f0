"""API keys, the same on every store."""

from typing import Any

import pytest

from oncekey.core.api_keys import ApiKey, FindApiKey, KeepApiKey, ListApiKeys, RevokeApiKey
from tests.fixtures.stores import Caller, Place


def key(number: int, tenant: str = "acme", **others: Any) -> ApiKey:
    return ApiKey(f"ak_{number:016x}", tenant, "_tenant", "service:a", "CI", 7, **others)


def keep(caller: Caller, *keys: ApiKey) -> None:
    for each in keys:
        assert caller.ask(KeepApiKey(each, each.id.encode().ljust(32))) is True


def digest(each: ApiKey) -> bytes:
    return each.id.encode().ljust(32)


@pytest.mark.parametrize(
    "others", [{}, {"expires_at": 9}, {"expires_at": 9, "revoked_at": 8}, {"role": "admin"}]
)
def test_a_key_is_found_by_its_digest_as_it_was_kept(
    caller: Caller, others: dict[str, Any]
) -> None:
    keep(caller, key(1, **others))

    assert caller.ask(FindApiKey(digest(key(1)))) == key(1, **others)
    assert caller.ask(FindApiKey(b"another".ljust(32))) is None


def test_neither_an_id_nor_a_digest_is_given_twice(caller: Caller) -> None:
    keep(caller, key(1))

    assert caller.ask(KeepApiKey(key(1, "other"), b"new".ljust(32))) is False
    assert caller.ask(KeepApiKey(key(2, "other"), digest(key(1)))) is False
    assert caller.ask(ListApiKeys(None)) == [key(1)]


def test_a_page_is_newest_first_and_of_one_tenant_when_asked(caller: Caller) -> None:
    keep(caller, key(9), key(10), key(0xA1, "other"), key(0xB0))

    assert caller.ask(ListApiKeys(None)) == [key(0xB0), key(0xA1, "other"), key(10), key(9)]
    assert caller.ask(ListApiKeys("acme", limit=2)) == [key(0xB0), key(10)]
    assert caller.ask(ListApiKeys("acme", before=key(10).id)) == [key(9)]
    assert caller.ask(ListApiKeys("nobody")) == []


def test_the_first_revocation_counts(caller: Caller) -> None:
    keep(caller, key(1), key(2))

    assert caller.ask(RevokeApiKey(key(1).id, 50)) == key(1, revoked_at=50)
    assert caller.ask(RevokeApiKey(key(1).id, 60)) == key(1, revoked_at=50)
    assert caller.ask(RevokeApiKey(key(3).id, 60)) is None
    assert caller.ask(FindApiKey(digest(key(1)))) == key(1, revoked_at=50)
    assert caller.ask(FindApiKey(digest(key(2)))) == key(2)


def test_admins_are_listed_and_revoked_with_the_others(caller: Caller) -> None:
    keep(caller, key(1), key(2, role="admin"))

    assert caller.ask(ListApiKeys(None)) == [key(2, role="admin"), key(1)]
    assert caller.ask(RevokeApiKey(key(2).id, 50)) == key(2, role="admin", revoked_at=50)


def test_keys_go_into_one_group_with_reads_and_claims(caller: Caller) -> None:
    keep(caller, key(1))
    asked = [
        caller.insert("k-1"),
        FindApiKey(digest(key(1))),
        RevokeApiKey(key(1).id, 50),
        ListApiKeys("acme"),
    ]

    found, revoked = caller.ask_all(asked)[1:3]
    assert (found.id, revoked) == (key(1).id, key(1, revoked_at=50))


def test_another_process_sees_what_one_has_kept(shared: Place) -> None:
    keep(shared.open(), key(1))

    assert shared.open().ask(FindApiKey(digest(key(1)))) == key(1)
