"""Who is silent on a cluster, and who could not be heard."""

from oncekey.stores.restate.owners import Owners

LEASE, BEAT = 15_000, 5_000


def beating(owners: Owners, owner: int, start: int, end: int, every: int = BEAT) -> None:
    for now in range(start, end + 1, every):
        owners.hear(owner, LEASE, every, now)


def test_who_beats_is_not_silent_and_who_does_not_is() -> None:
    owners = Owners()
    owners.hear(1, LEASE, BEAT, 0)
    beating(owners, 2, 0, 20_000)
    assert owners.silences() == {"1": 20_000, "2": 0}


def test_time_in_which_nobody_is_heard_is_nobodys_silence() -> None:
    owners = Owners()
    beating(owners, 1, 0, 10_000)
    beating(owners, 2, 1_000, 11_000)
    assert owners.silences() == {"1": 1_000, "2": 0}

    owners.hear(2, LEASE, BEAT, 3_600_000)

    assert owners.silences() == {"1": 1_000, "2": 0}
    beating(owners, 2, 3_605_000, 3_620_000)
    assert owners.silences()["1"] == 21_000


def test_who_gives_signs_seldom_still_sees_others_fall_silent() -> None:
    owners = Owners()
    owners.hear(1, LEASE, 12_000, 0)
    beating(owners, 2, 0, 36_000, every=12_000)
    assert owners.silences()["1"] == 36_000


def test_who_knows_of_an_earlier_time_does_not_set_it_back() -> None:
    owners = Owners()
    owners.hear(1, LEASE, BEAT, 60_000)
    owners.hear(2, LEASE, BEAT, 1_000)
    assert (owners.latest, owners.silences()) == (60_000, {"1": 0, "2": 0})


def test_who_was_silent_for_long_is_forgotten() -> None:
    owners = Owners()
    owners.hear(1, LEASE, BEAT, 0)
    beating(owners, 2, 0, 100 * LEASE)
    assert owners.silences() == {"1": 100 * LEASE, "2": 0}
    owners.hear(2, LEASE, BEAT, 101 * LEASE)
    owners.hear(2, LEASE, BEAT, 101 * LEASE)
    beating(owners, 2, 101 * LEASE, 103 * LEASE)
    assert owners.silences() == {"2": 0}
