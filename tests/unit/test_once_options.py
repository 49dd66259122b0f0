"""What `once` says when it is called wrongly, and what a caller sees when its function fails."""

import pytest

import oncekey
from oncekey.testing import memory_ledger
from oncekey.wire.identity import Identity, namespace_for


def test_a_keyword_meant_for_the_function_is_named():
    ledger = memory_ledger()
    with pytest.raises(oncekey.ConfigurationError, match=r"'quantity'.*positional arguments"):
        ledger.once("k", lambda quantity: quantity, quantity=1)


def test_the_function_s_own_error_is_what_its_caller_sees_although_the_claim_is_lost():
    ledger = memory_ledger()
    ref = oncekey.Ref(oncekey.Scope(oncekey.namespace_of(), "once"), "k")

    def fail_after_a_purge() -> None:
        ledger.purge(ref)
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        ledger.once("k", fail_after_a_purge)


@pytest.mark.parametrize(
    "given, subject",
    [
        ("42", "user:42"),
        ("service:cron", "service:cron"),
        ("urn:people:42", "user:urn%3Apeople%3A42"),
        ("auth0|5:6", "user:auth0%7C5%3A6"),
    ],
)
def test_a_plain_identity_is_a_subject_only_when_it_begins_with_a_type(given, subject):
    assert namespace_for(given) == f"t-default:_tenant:{subject}"
    assert namespace_for(Identity(tenant="acme")) == "t-acme:_tenant:client:anonymous"
