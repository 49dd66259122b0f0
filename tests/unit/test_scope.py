"""Scopes: no part can be forged by what is inside another, and two are never one."""

import re

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from oncekey.core.errors import ScopeInvalid
from oncekey.core.model import Ref
from oncekey.core.scope import Scope, namespace_of, subject_of

# Few characters, and those that separate or encode: mistakes meet sooner.
slugs = st.from_regex(r"[a3A][a3A_-]{0,3}", fullmatch=True)
projects = st.one_of(slugs, st.sampled_from(["_tenant", "_platform"]))
kinds = st.sampled_from(["user", "service", "tenant_member", "client"])
identifiers = st.text("a3A:%/é\x00 _", min_size=1, max_size=6)
parts = st.tuples(
    slugs,
    projects,
    st.builds("{}:{}".format, kinds, identifiers),
    st.text("0123456789:aé ", max_size=6),
    st.text("0123456789:a", max_size=6),
)

Parts = tuple[str, str, str, str, str]


def ref_of(parts: Parts) -> Ref:
    tenant, project, subject, endpoint, key = parts
    return Ref(Scope(namespace_of(tenant, project, subject), endpoint), key)


@given(parts, parts)
@example(("a", "b", "user:c", "1:x", "k"), ("a", "b", "user:c", "1", ":xk"))
@example(("a", "b", "user:c", "", "12:x"), ("a", "b", "user:c", "1", "2:x"))
def test_two_scopes_are_never_one(one: Parts, other: Parts) -> None:
    assume(one != other)
    assert ref_of(one) != ref_of(other)
    assert ref_of(one).digest != ref_of(other).digest


@given(parts)
def test_a_namespace_can_be_read_back(given_parts: Parts) -> None:
    tenant, project, subject, _, _ = given_parts
    found = re.fullmatch(
        r"t-([\w-]+):([\w-]+):(user|service|tenant_member|client):([A-Za-z0-9._~@%-]+)",
        namespace_of(tenant, project, subject),
        re.ASCII,
    )
    assert found is not None
    assert (found[1], found[2], found[3]) == (tenant, project, subject.partition(":")[0])


@pytest.mark.parametrize(
    "subject, written",
    [
        ("user:alice", "user:alice"),
        ("user:alice@example.org", "user:alice@example.org"),
        ("user:a:b", "user:a%3Ab"),
        ("user:a%3Ab", "user:a%253Ab"),
        ("user:a/b c", "user:a%2Fb%20c"),
        ("user:größe", "user:gr%C3%B6%C3%9Fe"),
        ("user:\ud800", "user:%ED%A0%80"),
        ("client:0", "client:0"),
    ],
)
def test_what_is_inside_a_subject_is_encoded(subject: str, written: str) -> None:
    assert subject_of(subject) == written


@pytest.mark.parametrize(
    "tenant, project, subject, told",
    [
        ("", "p", "user:a", "tenant"),
        ("a:b", "p", "user:a", "tenant"),
        ("a%3Ab", "p", "user:a", "tenant"),
        ("_tenant", "p", "user:a", "tenant"),
        ("-a", "p", "user:a", "tenant"),
        ("a\n", "p", "user:a", "tenant"),
        ("größe", "p", "user:a", "tenant"),
        ("a" * 64, "p", "user:a", "tenant"),
        ("a", "_other", "user:a", "project"),
        ("a", "p:user", "user:a", "project"),
        ("a", "", "user:a", "project"),
        ("a", "p", "alice", "subject type 'alice'"),
        ("a", "p", "root:a", "subject type 'root'"),
        ("a", "p", "user:", "no id"),
        ("a", "p", "user:" + "é" * 67, "longer than 400"),
    ],
)
def test_a_part_that_breaks_its_grammar_is_named(
    tenant: str, project: str, subject: str, told: str
) -> None:
    with pytest.raises(ScopeInvalid, match=told):
        namespace_of(tenant, project, subject)


def test_the_default_is_nobody_in_particular() -> None:
    assert namespace_of() == "t-default:_tenant:client:anonymous"


def test_a_digest_is_16_bytes_and_stays_what_it_is() -> None:
    """It is stored: another digest for the same scope would forget every key."""
    digest = Ref(Scope("t-a:b:user:c", "POST /orders"), "k").digest
    assert digest.hex() == "68d820727ab90b6a0793050012033557"
