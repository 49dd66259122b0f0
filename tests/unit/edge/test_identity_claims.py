"""Claims: for us, for now, and whose they are."""

from typing import Any

import pytest

from oncekey.core.errors import Unauthorized
from oncekey.edge.identity.claims import ClaimRules
from tests.fixtures.tokens import NOW, claims_of


def expiry(rules: ClaimRules | None = None, **claims: Any) -> float:
    return (rules or ClaimRules()).expiry_in(claims_of(**claims), NOW)


def namespace(rules: ClaimRules | None = None, **claims: Any) -> str:
    return (rules or ClaimRules()).known_in(claims_of(**claims)).namespace


# -- for now ---------------------------------------------------------------------------------


@pytest.mark.parametrize("exp", [NOW + 1, NOW, NOW - 29, NOW - 29.5, NOW + 0.5, 253_402_300_799])
def test_it_is_good_until_its_expiry_and_the_leeway_after_it(exp: float) -> None:
    assert expiry(exp=exp) == exp


@pytest.mark.parametrize("exp", [NOW - 30, NOW - 31, NOW - 30.5, 0])
def test_then_it_is_not(exp: float) -> None:
    with pytest.raises(Unauthorized, match="expired"):
        expiry(exp=exp)


def test_without_leeway_clocks_must_agree() -> None:
    exact = ClaimRules(leeway=0.0)

    assert expiry(exact, exp=NOW + 1, nbf=NOW, iat=NOW)
    for claims in ({"exp": NOW}, {"exp": NOW + 1, "nbf": NOW + 1}):
        with pytest.raises(Unauthorized):
            expiry(exact, **claims)


def test_an_expiry_is_required() -> None:
    with pytest.raises(Unauthorized, match="'exp' is required"):
        expiry(exp=None)


@pytest.mark.parametrize("name", ["exp", "nbf", "iat"])
@pytest.mark.parametrize(
    "value",
    [
        str(NOW + 300),
        "never",
        True,
        [NOW + 300],
        {"at": NOW},
        float("inf"),
        float("nan"),
        1e308,
        10**400,
        (NOW + 300) * 1000,
        -1,
        -(10**400),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_a_time_is_a_number_of_seconds(name: str, value: object) -> None:
    with pytest.raises(Unauthorized, match=f"'{name}' is no"):
        expiry(**{name: value})


@pytest.mark.parametrize("name", ["exp", "nbf", "iat"])
def test_a_time_that_is_null_is_no_time(name: str) -> None:
    with pytest.raises(Unauthorized):
        ClaimRules().expiry_in({**claims_of(), name: None}, NOW)


@pytest.mark.parametrize("name", ["nbf", "iat"])
def test_it_begins_when_it_says(name: str) -> None:
    assert expiry(**{name: NOW + 30})
    with pytest.raises(Unauthorized, match="not good yet"):
        expiry(**{name: NOW + 31})


# -- for us ----------------------------------------------------------------------------------


def test_the_issuer_is_the_one_that_is_expected() -> None:
    rules = ClaimRules(issuer="https://id.example")

    assert expiry(rules, iss="https://id.example")
    for other in ("https://id.example/", "https://ID.example", ["https://id.example"], None, 7):
        with pytest.raises(Unauthorized, match="issuer"):
            expiry(rules, iss=other)


def test_one_of_its_audiences_is_one_of_ours() -> None:
    rules = ClaimRules(audience=frozenset({"orders", "billing"}))

    for audience in ("orders", ["billing"], ["other", "orders"]):
        assert expiry(rules, aud=audience)
    for other in ("other", "order", ["other"], [], "", None, 7, [["orders"]], {"orders": 1}):
        with pytest.raises(Unauthorized, match="audience"):
            expiry(rules, aud=other)


def test_where_none_is_expected_any_will_do() -> None:
    assert expiry(aud="somebody", iss="anybody")


# -- whose it is -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "subject, found",
    [
        ("ada", "user:ada"),
        (7, "user:7"),
        ("auth0|5f7", "user:auth0%7C5f7"),
        ("user:ada", "user:ada"),
        ("service:ci", "service:ci"),
        ("tenant_member:9", "tenant_member:9"),
        ("client:app", "client:app"),
        ("User:ada", "user:User%3Aada"),
        ("robot:7", "user:robot%3A7"),
        ("user:a:b", "user:a%3Ab"),
        ("user:a%3Ab", "user:a%253Ab"),
        ("t-victim:shop:user:eve", "user:t-victim%3Ashop%3Auser%3Aeve"),
        ("ädå", "user:%C3%A4d%C3%A5"),
        ("service:oncekey ", "service:oncekey%20"),
        ("null", "user:null"),
    ],
)
def test_a_subject_has_a_type(subject: object, found: str) -> None:
    assert namespace(sub=subject) == f"t-acme:shop:{found}"


@pytest.mark.parametrize("kind", ["user", "service", "tenant_member", "client"])
def test_a_fixed_type_is_put_before_each(kind: str) -> None:
    rules = ClaimRules(subject_type=kind)

    assert namespace(rules, sub="ada") == f"t-acme:shop:{kind}:ada"
    assert namespace(rules, sub="service:oncekey") == f"t-acme:shop:{kind}:service%3Aoncekey"


@pytest.mark.parametrize("name", ["oncekey", "webhook-ingest"])
def test_nobody_is_oncekey_itself(name: str) -> None:
    for rules, subject in (
        (ClaimRules(), f"service:{name}"),
        (ClaimRules(subject_type="service"), name),
    ):
        with pytest.raises(Unauthorized, match="reserved"):
            namespace(rules, sub=subject)


@pytest.mark.parametrize(
    "subject",
    ["", " ", "user:", "service:", True, 1.5, ["ada"], {"id": "ada"}, "a\nb", "a\0", "a\u202eb",
     "a\u200db", "\ud800", "x" * 401, "ü" * 70],
    ids=lambda value: repr(value)[:20],
)  # fmt: skip
def test_what_is_no_subject(subject: object) -> None:
    with pytest.raises(Unauthorized):
        namespace(sub=subject)


@pytest.mark.parametrize("claim", ["sub", "tenant_id"])
def test_without_a_name_nobody_calls(claim: str) -> None:
    for claims in (claims_of(**{claim: None}), {**claims_of(), claim: None}):
        with pytest.raises(Unauthorized, match=r"no (subject|tenant) in"):
            ClaimRules().known_in(claims)


@pytest.mark.parametrize("claim", ["tenant_id", "project_id"])
@pytest.mark.parametrize(
    "name",
    ["a:b", "a%3Ab", "a/b", "a b", "a\n", "a\0", ".", "", "-a", "_a", "аcme", "acme\u200b", "é",
     "a" * 64, "_tenant", "_platform", "ＡＣＭＥ", True, ["acme"], {"id": "acme"}, 1.5],
    ids=lambda value: repr(value)[:20],
)  # fmt: skip
def test_tenant_and_project_are_slugs(claim: str, name: object) -> None:
    with pytest.raises(Unauthorized):
        namespace(**{claim: name})


def test_a_slug_may_look_like_a_part_of_a_key() -> None:
    assert namespace(tenant_id="t-acme", project_id="user") == "t-t-acme:user:user:ada"
    assert namespace(tenant_id=42, project_id=7) == "t-42:7:user:ada"


def test_without_a_project_a_caller_is_at_the_level_of_its_tenant() -> None:
    found = ClaimRules().known_in({**claims_of(), "project_id": None})

    assert found.namespace == namespace(project_id=None) == "t-acme:_tenant:user:ada"


def test_dots_reach_into_objects() -> None:
    rules = ClaimRules(tenant="org.id", project="org.work.project", subject="who")
    org = {"id": "acme", "work": {"project": "shop"}}

    assert namespace(rules, tenant_id=None, org=org, who="ada") == "t-acme:shop:user:ada"
    for other in ("acme", ["id"], {"ID": "acme"}, {"id": {"id": "acme"}}):
        with pytest.raises(Unauthorized):
            namespace(rules, org=other, who="ada")


def test_a_claim_may_have_dots_in_its_name() -> None:
    rules = ClaimRules(tenant="https://acme.example/tenant")

    assert namespace(rules, **{"https://acme.example/tenant": "acme"}).startswith("t-acme:")


def test_a_fixed_tenant_is_that_of_every_token() -> None:
    rules = ClaimRules(fixed_tenant="acme")

    assert namespace(rules, tenant_id=None) == namespace(rules) == "t-acme:shop:user:ada"
    with pytest.raises(Unauthorized, match="other than 'acme'"):
        namespace(rules, tenant_id="victim")
