"""`X-Schedule-Signature`, made and checked."""

import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oncekey.core.errors import ConfigurationError
from oncekey.schedules.signing import sign, verify_signature

SECRET, OTHER = "s3cret-of-the-shop", "another-secret-of-16"
BODY = b'{"schedule_id":"nightly","tick":1700000000000,"data":null}'
NOW = 1_700_000_000


def verified(header: str | None, **options: object) -> bool:
    given = {"secrets": SECRET, "body": BODY, "now": float(NOW), **options}
    return verify_signature(header=header, **given)  # type: ignore[arg-type]


def test_a_signature_is_an_hmac_over_time_and_body() -> None:
    expected = hmac.new(SECRET.encode(), b"1700000000." + BODY, hashlib.sha256).hexdigest()
    assert sign(SECRET, BODY, NOW) == f"t=1700000000,v1={expected}"


@given(st.binary(max_size=200), st.text(min_size=16, max_size=60))
def test_what_was_signed_is_verified(body: bytes, secret: str) -> None:
    header = sign(secret, body, NOW)
    assert verify_signature(secret, header, body, now=NOW)
    assert not verify_signature(secret, header, body + b" ", now=NOW)
    assert not verify_signature(secret + "x", header, body, now=NOW)


@pytest.mark.parametrize("age, fresh", [(300, True), (301, False), (-300, True), (-301, False)])
def test_a_signature_ages_in_both_directions(age: int, fresh: bool) -> None:
    assert verified(sign(SECRET, BODY, NOW - age)) is fresh


def test_how_old_it_may_be_is_the_receivers_choice() -> None:
    assert verified(sign(SECRET, BODY, NOW - 900), tolerance=900.0)
    assert not verified(sign(SECRET, BODY, NOW - 2), tolerance=1.0)


def test_while_a_secret_is_replaced_either_is_right() -> None:
    header = sign(OTHER, BODY, NOW)
    assert verified(header, secrets=[SECRET, OTHER])
    assert not verified(header, secrets=[SECRET])
    assert verified(f"{header},{sign(SECRET, BODY, NOW).partition(',')[2]}", secrets=[SECRET])


GOOD = sign(SECRET, BODY, NOW)
TIME, SIGNATURE = GOOD.split(",")


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "t=,v1=",
        TIME,
        SIGNATURE,
        f"{TIME},{TIME},{SIGNATURE}",
        f"t=-1,{SIGNATURE}",
        f"t=٣,{SIGNATURE}",
        f"t=1e9,{SIGNATURE}",
        f"t={'9' * 5000},{SIGNATURE}",
        f"{TIME},v0={SIGNATURE[3:]}",
        f"{TIME},{SIGNATURE.upper()}",
        f"{TIME},{SIGNATURE}0",
        f"{TIME};{SIGNATURE}",
        f"t={NOW + 1},{SIGNATURE}",
        f"{'x,' * 1000}{GOOD}",
    ],
)
def test_anything_else_is_not(header: str | None) -> None:
    assert not verified(header)


def test_spaces_around_the_parts_do_not_matter() -> None:
    assert verified(f" {TIME} , {SIGNATURE} ")


@pytest.mark.parametrize("secrets", ["", "short", [], [SECRET, ""]])
def test_a_secret_that_is_missing_or_short_is_not_worked_with(secrets: str | list[str]) -> None:
    with pytest.raises(ConfigurationError, match="secret"):
        verified(GOOD, secrets=secrets)
    with pytest.raises(ConfigurationError, match="at least 16 characters"):
        sign("short", BODY, NOW)
