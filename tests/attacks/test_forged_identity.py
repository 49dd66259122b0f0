"""Headers that say who calls: believed from the listed gateway alone, and never handed on as a
client sent them."""

import itertools

import pytest

from tests.fixtures.stronghold import Stronghold, bearer, head
from tests.fixtures.wiretap import Answer

# Everything here comes from this machine; a gateway has an address of its own.
GATEWAY, STRANGER = "127.0.0.2", "127.0.0.1"
STRONGHOLD = {
    "gateway": f"""
[auth.gateway]
trusted = ["{GATEWAY}"]
headers = {{tenant = "X-Org", project = "X-Space", subject = "X-Who"}}
"""
}
DEFAULT = ("X-Tenant-Id", "X-Project-Id", "X-Subject")
CUSTOM = ("X-Org", "X-Space", "X-Who")
VALUES = ("victim", "vault", "user:root")


def spelled(names: tuple[str, ...]) -> list[list[str]]:
    """The lines of a forger, in the spellings that some service takes for one another."""
    spellings = (
        lambda name: name,
        str.lower,
        str.upper,
        lambda name: name.replace("-", "_"),
        lambda name: name.replace("-", "_", 1),
        lambda name: name.replace("-", "_").upper(),
    )
    found = [tuple(change(name) for name in names) for change in spellings]
    return [
        [f"{name}: {value}" for name, value in zip(each, VALUES, strict=True)]
        for each in dict.fromkeys(found)
    ]


FORGED = [
    *spelled(DEFAULT),
    *spelled(CUSTOM),
    [f"{name}: {value}" for name, value in zip(DEFAULT + CUSTOM, VALUES * 2, strict=True)],
    [f"{name}: {value}" for name, value in zip(DEFAULT * 2, VALUES * 2, strict=True)],
    [f"{name}: {value}" for name, value in zip(CUSTOM * 2, VALUES * 2, strict=True)],
    ["X-Org: victim, acme", "X-Who: user:root, user:alice"],
    ["X-Tenant-Id: victim", "Connection: x-tenant-id"],
    ["Connection: x-org, x-who, x-space", "X-Org: victim", "X-Who: user:root"],
    ["X-Forwarded-For: 127.0.0.2", "X-Org: victim", "X-Who: user:root"],
    ["Forwarded: for=127.0.0.2;by=127.0.0.2", "X-Org: victim", "X-Who: user:root"],
    ["X-Real-IP: 127.0.0.2", "X-Org: victim", "X-Who: user:root"],
]


def asked(fort: Stronghold, *lines: str, peer: str = STRANGER, **options: object) -> Answer:
    request = head("/api/v1/notes", *lines, **options)  # type: ignore[arg-type]
    with fort.wire(request, peer=peer) as wire:
        return wire.answer()


@pytest.mark.parametrize("lines", FORGED, ids=range(len(FORGED)))
def test_a_stranger_is_nobody_by_what_he_says(fort: Stronghold, lines: list[str]) -> None:
    assert asked(fort, *lines, credentials=None).status == 401
    assert asked(fort, *lines, key="k", credentials=None).status == 401
    assert fort.effects == []


@pytest.mark.parametrize("lines", FORGED, ids=range(len(FORGED)))
def test_nor_does_it_change_who_he_is(fort: Stronghold, lines: list[str]) -> None:
    """Neither to the edge nor to the service behind, which believes these lines."""
    assert asked(fort, *lines).status == 201
    keyed = asked(fort, *lines, key=f"forged-{FORGED.index(lines)}")
    assert keyed.status == 201
    for effect in fort.effects:
        assert effect.whose == ("acme", "shop", "user:alice")
        said = [value for name, value in effect.headers if name not in {"authorization", "host"}]
        assert not any(word in value for value in said for word in ("victim", "vault", "root"))
    assert fort.effects[1].key == f"t-acme:shop:user:alice:forged-{FORGED.index(lines)}"


def test_where_nobody_needs_to_be_known_nobody_is(fort: Stronghold) -> None:
    for lines in FORGED:
        with fort.wire(head("/open/notes", *lines, credentials=None)) as wire:
            assert wire.answer().status == 201
    assert {each.whose for each in fort.effects} == {("default", "_tenant", "client:anonymous")}


# -- behind the gateway --------------------------------------------------------------------------

GOOD = ("X-Org: acme", "X-Space: shop", "X-Who: user:carol")


def test_the_gateway_is_believed(fort: Stronghold) -> None:
    """What the others are measured by."""
    assert asked(fort, *GOOD, peer=GATEWAY, credentials=None).status == 201
    (effect,) = fort.effects
    assert effect.whose == ("acme", "shop", "user:carol")
    assert effect["x-org"] == effect["x-space"] == effect["x-who"] == []


@pytest.mark.parametrize("line", ["X-Org: victim", "X-Space: vault", "X-Who: user:root"])
@pytest.mark.parametrize("first", [True, False])
def test_a_second_line_makes_none_of_both(fort: Stronghold, line: str, first: bool) -> None:
    """A gateway that adds its own line to its client's: nobody can tell which is whose."""
    lines = (line, *GOOD) if first else (*GOOD, line)
    assert asked(fort, *lines, peer=GATEWAY, credentials=None).status == 401
    assert asked(fort, *lines, peer=GATEWAY).status == 401
    assert fort.effects == []


@pytest.mark.parametrize(
    "others", [*spelled(DEFAULT), *[lines for lines in spelled(CUSTOM) if "_" in lines[0]]]
)
def test_only_the_lines_of_the_gateway_count(fort: Stronghold, others: list[str]) -> None:
    """Gateways do not remove what is spelled in another way than they spell it."""
    assert asked(fort, *others, *GOOD, peer=GATEWAY, credentials=None).status == 201
    assert asked(fort, *others, peer=GATEWAY, credentials=None).status == 401
    (effect,) = fort.effects
    assert effect.whose == ("acme", "shop", "user:carol")
    assert not any("victim" in value or "root" in value for _, value in effect.headers)


@pytest.mark.parametrize(
    "line",
    [
        ("X-Who: service:webhook-ingest"),
        ("X-Who: service:oncekey"),
        ("X-Who: user:"),
        ("X-Who: user:a\tb"),
        ("X-Who: " + "a" * 2000),
        ("X-Who: user:\xff"),
        ("X-Space: _tenant"),
        ("X-Space: _platform"),
        ("X-Space: a:b"),
        ("X-Org: a:b"),
        ("X-Org: a%3Ab"),
        ("X-Org: _platform"),
        ("X-Org: acme, victim"),
        ("X-Org: " + "a" * 64),
    ],
)
def test_a_gateway_cannot_name_what_is_reserved(fort: Stronghold, line: str) -> None:
    name = line.partition(":")[0]
    lines = [line, *(each for each in GOOD if not each.startswith(name))]
    assert asked(fort, *lines, peer=GATEWAY, credentials=None).status == 401
    assert fort.effects == []


def test_who_has_no_credentials_and_no_gateway_has_no_level(fort: Stronghold) -> None:
    """A gateway's callers are callers, never admins; half an identity is none."""
    for peer, lines in itertools.product(
        (GATEWAY, STRANGER), [GOOD, ("X-Who: user:root",), ("X-Org: acme",), ("X-Space: shop",)]
    ):
        request = head("/platform/jobs", *lines, key="k", credentials=None)
        with fort.wire(request, peer=peer) as wire:
            assert wire.answer().status == 401
    assert fort.effects == []


def test_the_connection_is_the_peer_not_what_was_first_said_on_it(fort: Stronghold) -> None:
    """One connection, several requests: each is believed for itself."""
    requests = [
        head("/api/v1/notes", *GOOD, credentials=None),
        head("/api/v1/notes", credentials=None),
        head("/api/v1/notes"),
        head("/api/v1/notes", credentials=None),
    ]
    with fort.wire(*requests, peer=GATEWAY) as wire:
        assert [wire.answer().status for _ in requests] == [201, 401, 201, 401]
    assert [each.whose[2] for each in fort.effects] == ["user:carol", "user:alice"]


def test_whom_the_gateway_names_is_who_calls_however_often_it_is_said(fort: Stronghold) -> None:
    """The token beside it is known, and would be believed by itself."""
    alice = bearer()
    assert asked(fort, peer=GATEWAY, credentials=alice).status == 201
    named = head("/api/v1/notes", *GOOD, credentials=alice)
    with fort.wire(peer=GATEWAY) as wire:
        assert [wire.send(named).answer().status for _ in range(3)] == [201] * 3
    assert [each.whose[2] for each in fort.effects] == ["user:alice", *["user:carol"] * 3]


def test_recovery_believes_no_more_than_the_rest(fort: Stronghold) -> None:
    assert fort.ask(key="mine", bearer=bearer()).status_code == 201
    path = "/api/v1/orders/by-idempotency-key/mine"
    lines = ("X-Org: acme", "X-Space: shop", "X-Who: user:alice")
    theirs = ("X-Tenant-Id: acme", "X-Project-Id: shop", "X-Subject: user:alice")
    for peer, said, expected in (
        (STRANGER, lines, 401),
        (STRANGER, theirs, 401),
        (GATEWAY, theirs, 401),
        (GATEWAY, GOOD, 404),
        (GATEWAY, lines, 201),
    ):
        request = head(path, *said, method="GET", credentials=None, length=None)
        with fort.wire(request, peer=peer) as wire:
            assert wire.answer().status == expected
