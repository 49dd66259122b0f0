"""Who hears the bell of a space."""

from oncekey.stores.restate.ringing import Bell


def test_who_waits_is_woken_once_by_anybody_else() -> None:
    bell = Bell(ears={"1": "one", "2": "two"})
    assert bell.ring("1") == ["two"]
    assert bell.ring("1") == []
    assert bell.ring("3") == ["one"]


def test_what_was_rung_before_somebody_listens_again_is_heard() -> None:
    bell = Bell()
    bell.ring("2")
    assert bell.has_rung(0, "1")
    assert not bell.has_rung(0, "2")
    assert not bell.has_rung(bell.count, "1")


def test_of_many_who_rang_the_last_is_heard_also_when_nobody_knows_who_it_was() -> None:
    bell = Bell()
    for owner in range(100):
        bell.ring(str(owner))
    assert len(bell.rang) == 64
    assert bell.anybody == 36
    assert bell.has_rung(35, "99")
    bell.rang.clear()
    assert bell.has_rung(35, "1")
    assert not bell.has_rung(36, "1")
