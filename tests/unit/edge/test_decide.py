"""The decision of the edge as a pure function: each policy with each kind of key, and namespaces
that no key, subject or tenant can forge."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oncekey.core.errors import KeyInvalid, ScopeInvalid
from oncekey.core.key import check_key
from oncekey.core.scope import SUBJECT_TYPES, namespace_of
from oncekey.edge.decide import Pass, Protect, Refuse, decide
from oncekey.edge.identity.known import Known
from oncekey.edge.policy import RULE_KEYS, EdgeRoute, Level, Policy
from oncekey.edge.rewrite import MAX_NAMESPACED, namespaced
from oncekey.wire.identity import Identity
from oncekey.wire.rule import Rule

NAMESPACE = "t-acme:shop:user:alice"
KNOWN = Known(Identity("user:alice", "acme", "shop"), NAMESPACE)
MISSING, PROHIBITED = "idempotency-key-missing", "idempotency-key-prohibited"
INVALID, NAMELESS = "idempotency-key-invalid", "identifier-missing"


def route(policy: Policy, level: Level = "project") -> EdgeRoute:
    return EdgeRoute("/orders", policy, Rule(key=RULE_KEYS[policy]), level=level)


def told(verdict: object) -> str:
    match verdict:
        case Pass(namespace):
            assert namespace == NAMESPACE
            return "pass"
        case Protect(namespace, raw, key):
            assert (namespace, key) == (NAMESPACE, f"{NAMESPACE}:{raw}")
            return raw
        case Refuse(response):
            return response.body.decode().split("problems/")[1].split('"')[0]
    raise AssertionError(verdict)


@pytest.mark.parametrize(
    "policy, none, good, bad, two",
    [
        ("REQUIRED_A", MISSING, "k", INVALID, INVALID),
        ("ACCEPTED", "pass", "k", INVALID, INVALID),
        ("PROHIBITED", "pass", PROHIBITED, PROHIBITED, PROHIBITED),
        ("HANDLER_INTERNAL_C", "pass", "pass", "pass", "pass"),
        ("REQUIRED_B", NAMELESS, NAMELESS, NAMELESS, NAMELESS),
    ],
)
def test_each_policy(policy: Policy, none: str, good: str, bad: str, two: str) -> None:
    here = route(policy)
    assert told(decide(here, KNOWN, [])) == none
    assert told(decide(here, KNOWN, [b"k"])) == good
    assert told(decide(here, KNOWN, [b'"k"'])) == good
    for line in (b"", b"a:b", b"t-acme:shop:user:bob:k", b"\xff", b"k" * 256, b'"k'):
        assert told(decide(here, KNOWN, [line])) == bad
    assert told(decide(here, KNOWN, [b"k", b"k"])) == two


def test_every_policy_is_tried_here() -> None:
    assert set(get_args(Policy)) == set(RULE_KEYS)


@pytest.mark.parametrize("level, project", [("tenant", "_tenant"), ("platform", "_platform")])
def test_levels_put_a_sentinel_where_the_project_would_be(level: Level, project: str) -> None:
    verdict = decide(route("REQUIRED_A", level), KNOWN, [b"k"])
    assert isinstance(verdict, Protect)
    assert verdict.key == f"t-acme:{project}:user:alice:k"


TENANTS = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,20}", fullmatch=True)
PROJECTS = st.one_of(TENANTS, st.sampled_from(["_tenant", "_platform"]))
SUBJECTS = st.builds(
    "{}:{}".format,
    st.sampled_from(sorted(SUBJECT_TYPES)),
    st.one_of(st.text(min_size=1, max_size=30), st.sampled_from(["a:b", "a%3Ab", "alice:k", ":"])),
)
KEYS = st.from_regex(r"(?!t-)[A-Za-z0-9._~\-]{1,40}", fullmatch=True)
CALLS = st.tuples(TENANTS, PROJECTS, SUBJECTS, KEYS)


@given(CALLS, CALLS)
def test_no_two_calls_share_a_namespaced_key(
    one: tuple[str, str, str, str], other: tuple[str, str, str, str]
) -> None:
    first, second = (namespaced(namespace_of(*call[:3]), call[3]) for call in (one, other))
    assert (first == second) == (one == other)


@given(CALLS)
def test_a_namespaced_key_is_read_in_one_way_only(call: tuple[str, str, str, str]) -> None:
    key = namespaced(namespace_of(*call[:3]), call[3])
    tenant, project, kind, subject, raw = key.removeprefix("t-").split(":")
    assert (tenant, project, kind, raw) == (call[0], call[1], call[2].partition(":")[0], call[3])
    assert subject.isascii()
    # And no client can send it as a key of its own.
    with pytest.raises(KeyInvalid):
        check_key(key)


@given(st.text(max_size=40), st.text(max_size=40), st.text(max_size=40))
def test_whatever_is_said_of_a_caller_fits_the_form_or_is_refused(
    tenant: str, project: str, subject: str
) -> None:
    try:
        namespace = namespace_of(tenant, project, subject)
    except ScopeInvalid:
        return
    assert namespace.count(":") == 3
    assert namespace.isascii()
    assert namespace.isprintable()


def test_the_longest_key_is_640_characters() -> None:
    namespace = namespace_of("t" * 63, "p" * 63, "user:" + "s" * 300)
    room = MAX_NAMESPACED - len(namespace) - 1
    assert len(namespaced(namespace, "k" * room)) == 640
    with pytest.raises(KeyInvalid, match=f"leaves {room}"):
        namespaced(namespace, "k" * (room + 1))
