"""Any bytes as a token, an envelope or a call: read, or refused as what it is."""

import asyncio
from contextlib import suppress
from typing import Any

import msgspec
import pytest
from grpc import StatusCode
from grpc.aio import AioRpcError
from hypothesis import given
from hypothesis import strategies as st
from joserfc.util import urlsafe_b64decode, urlsafe_b64encode

from oncekey.core.errors import SecretsUnavailable, Unauthorized
from oncekey.edge.identity.claims import ClaimRules
from oncekey.edge.identity.jwk import ring_of_jwks
from oncekey.edge.identity.jwks import GivenKeys
from oncekey.edge.identity.jwt import JwtVerifier
from oncekey.stores.restate.envelope import envelope_of, mark_in, reply_of
from oncekey.stores.restate.values import pack, unpack
from oncekey.webhooks.sealing import Sealer
from tests.fixtures.frozen import FrozenClock
from tests.fixtures.fuzzing import fuzz
from tests.fixtures.grpc_requests import EVERY
from tests.fixtures.grpc_site import grpc_site
from tests.fixtures.tokens import NOW, claims_of, curve, jwks_of, part, rsa, signed

UNREADABLE = (msgspec.MsgspecError, ValueError, RecursionError)
KEYS = (rsa(), curve())
VERIFIER = JwtVerifier(
    GivenKeys(ring_of_jwks(jwks_of(*KEYS))), ClaimRules(), FrozenClock(NOW * 1000)
)
GOOD = [signed(rsa()), signed(curve(), algorithm="ES256")]
SIGNATURES = {urlsafe_b64decode(good.rpartition(".")[2].encode()) for good in GOOD}
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=5,
)


@st.composite
def altered(draw: st.DrawFn, text: str) -> str:
    at = draw(st.integers(0, len(text)))
    new = draw(st.text("aZ09-_.=+/ é\x00", max_size=3))
    return text[:at] + new + text[at + draw(st.integers(0, 3)) :]


def is_believed(token: str) -> bool:
    try:
        asyncio.run(VERIFIER.verify(token))
    except Unauthorized:
        return False
    return True


@fuzz(80)
@given(st.sampled_from(GOOD).flatmap(altered) | st.text(max_size=60))
def test_a_token_that_was_changed_is_not_believed(token: str) -> None:
    # The last letter of a signature has bits that say nothing; all else of it does.
    if is_believed(token):
        assert token.rpartition(".")[0] in {good.rpartition(".")[0] for good in GOOD}
        assert urlsafe_b64decode(token.rpartition(".")[2].encode()) in SIGNATURES
    else:
        assert token not in GOOD


@fuzz(60)
@given(
    st.sampled_from(KEYS),
    st.dictionaries(
        st.sampled_from(["sub", "tenant_id", "project_id", "exp", "nbf", "iat", "aud"]), json_values
    ),
    st.sampled_from(["RS256", "ES256"]),
)
def test_what_an_issuer_signs_is_somebody_or_refused(key: Any, claims: Any, algorithm: str) -> None:
    if (key is KEYS[0]) is (algorithm == "RS256"):
        is_believed(signed(key, claims_of(**claims), algorithm=algorithm))


@fuzz()
@given(
    st.dictionaries(st.sampled_from(["alg", "kid", "typ", "crit", "jwk"]), json_values),
    st.binary(max_size=40),
)
def test_no_header_makes_a_token_good(header: Any, signature: bytes) -> None:
    assert not is_believed(f"{part(header)}.{part(claims_of())}.{part(signature)}")


values = (
    st.binary(max_size=40)
    | json_values.map(msgspec.json.encode)
    | st.sampled_from(
        [
            b'["Insert",[]]',
            b'["Record",{}]',
            b'["[]",[1]]',
            b'["b","%"]',
            b'["Any",1]',
            b'["make",1]',
            b"[" * 5000,
        ]
    )
)


@fuzz(80)
@given(values, json_values)
def test_what_restate_keeps_is_read_or_refused(data: bytes, value: Any) -> None:
    for read in (unpack, envelope_of, reply_of):
        try:
            read(data)
        except UNREADABLE:
            continue
    assert msgspec.json.encode(unpack(pack(value))) == msgspec.json.encode(value)


@fuzz()
@given(st.text('"x-oncekeclamvu:.0123456789abcdef_=', max_size=60), st.binary(max_size=30))
def test_a_mark_is_found_or_not(text: str, data: bytes) -> None:
    told = urlsafe_b64encode(data).decode()
    for journal in (text, f'"x-oncekey-claim","value":"{"0" * 16}.{told}"'):
        try:
            mark_in(journal)
        except UNREADABLE:
            continue


METHODS = {
    f"/oncekey.v1.{service.capitalize()}/{name}": request for service, name, request in EVERY
}
ANSWERS = {
    StatusCode.OK, StatusCode.INVALID_ARGUMENT, StatusCode.NOT_FOUND, StatusCode.UNAUTHENTICATED,
    StatusCode.FAILED_PRECONDITION, StatusCode.ALREADY_EXISTS, StatusCode.ABORTED,
}  # fmt: skip


async def status_of(call: Any) -> StatusCode:
    with suppress(AioRpcError):
        await call
    return await call.code()


@pytest.mark.anyio
async def test_any_call_is_answered_or_refused() -> None:
    """Hypothesis has no loop: what it draws is sent afterwards, all to one server."""
    calls: list[tuple[str, bytes, str]] = []

    @fuzz(150)
    @given(
        st.sampled_from(sorted(METHODS)),
        st.binary(max_size=60) | st.integers(0, 300).map(lambda at: bytes([at % 256]) * 3),
        st.integers(0, 200),
        st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=20),
    )
    def gather(method: str, content: bytes, at: int, key: str) -> None:
        good = METHODS[method].SerializeToString()
        calls.append((method, content, key))
        calls.append((method, good[:at] + content[:3] + good[at + 2 :], key))

    gather()
    async with grpc_site("memory://") as site:
        client = await site.client("acme")
        for method, content, key in calls:
            call = site.channel.unary_unary(method)
            metadata = [("authorization", f"Bearer {client.secret}"), ("idempotency-key", key)]
            status = await status_of(call(content, metadata=metadata, timeout=20))
            assert status in ANSWERS, (method, content)


SEALER = Sealer([bytes(32)])
SEALED = SEALER.seal("whsec_a", "wh_a")


@fuzz()
@given(altered(SEALED) | st.text(max_size=60), st.sampled_from(["wh_a", "wh_b"]))
def test_what_was_not_sealed_is_not_opened(text: str, webhook: str) -> None:
    try:
        opened = SEALER.open(text, webhook)
    except SecretsUnavailable:
        assert (text, webhook) != (SEALED, "wh_a")
    else:
        assert (opened, webhook) == ("whsec_a", "wh_a")
