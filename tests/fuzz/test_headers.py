"""Any header, however it is written: a value that its rule allows, or a refusal that names it."""

import re

import http_sf
from hypothesis import given
from hypothesis import strategies as st

from oncekey.client.backoff import Backoff, seconds_in
from oncekey.core.errors import KeyInvalid, Unauthorized
from oncekey.core.key import parse_key
from oncekey.edge.decide import Pass, Protect, Refuse, decide
from oncekey.edge.identity.gateway import Gateway
from oncekey.edge.identity.identities import credential_in
from oncekey.edge.identity.known import known_of
from oncekey.edge.policy import RULE_KEYS, EdgeRoute
from oncekey.edge.target import path_of
from oncekey.wire.credentials import secret_in
from oncekey.wire.headers import KEY, key_in, lines_of, request_id_in
from oncekey.wire.identity import namespace_of_credentials
from oncekey.wire.problem import Response
from oncekey.wire.rule import rule_of
from tests.fixtures.fuzzing import fuzz

# As the design has it, and written here once more.
GRAMMAR = re.compile(r"[A-Za-z0-9._~\-]{1,255}")
TICK = re.compile(r"sched:[A-Za-z0-9][A-Za-z0-9._-]{0,63}:[0-9]{1,15}")
REASONS = {"empty", "length", "prefix", "charset", "quotes"}
LETTERS = 'aZ09._~-t:"\\ \t;=,\x00\x7fÿ€'

near_keys = st.text(LETTERS, max_size=12) | st.text(max_size=300)
quoted = near_keys.map(lambda text: f'"{text}"')
texts = (
    near_keys | quoted | st.sampled_from(["t-", "t-a", '"t-a"', "sched:a:1", "k" * 255, "k" * 256])
)
raw_values = st.binary(max_size=40) | texts.map(lambda text: text.encode("utf-8", "surrogatepass"))
names = st.sampled_from(
    "idempotency-key x-request-id content-type authorization x-api-key cookie x-tenant-id "
    "x-project-id x-subject x-forwarded-for retry-after".split()
).map(str.encode)
pieces = st.sampled_from(
    [
        b"Bearer ",
        b"bearer",
        b"ok_a",
        b"session=",
        b"sessionid=a; b",
        b"user:",
        b"t-",
        b"; ",
        b"\xff",
    ]
)
lines = st.lists(
    st.tuples(names, raw_values | st.lists(pieces, max_size=4).map(b"".join)), max_size=6
)


def is_key(text: str) -> bool:
    return bool(GRAMMAR.fullmatch(text) and not text.startswith("t-")) or bool(TICK.fullmatch(text))


@fuzz()
@given(texts)
def test_a_key_is_one_by_the_grammar_and_by_nothing_else(value: str) -> None:
    text = value.strip(" \t")
    wanted = text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text
    try:
        assert parse_key(value) == wanted
    except KeyInvalid as refused:
        reason = refused.reason
        assert not is_key(wanted)
        assert reason in REASONS
    else:
        assert is_key(wanted)


@fuzz()
@given(quoted)
def test_what_is_quoted_is_read_as_a_structured_field_is(value: str) -> None:
    try:
        key = parse_key(value)
    except KeyInvalid:
        return
    text = value.strip(" \t")
    assert text[0] != '"' or http_sf.parse(text.encode("ascii"), tltype="item")[0] == key


@fuzz()
@given(lines, st.sampled_from(["required", "optional", "ignored", "prohibited"]))
def test_a_request_has_a_key_or_none_or_is_refused(
    found: list[tuple[bytes, bytes]], key: str
) -> None:
    read = lines_of(found)
    answer = key_in(read.keys, rule_of(key=key))
    match answer:
        case None:
            assert not read.keys or key == "ignored"
        case str():
            assert is_key(answer)
        case Response():
            assert answer.status == 400
    assert read.keys == [value for name, value in found if name == KEY]
    shown = request_id_in(read.request_id)
    assert shown.isascii()
    assert shown.isprintable()
    assert namespace_of_credentials(read.credentials).startswith("t-default:_tenant:client:")


@fuzz()
@given(lines)
def test_a_credential_is_one_or_none(found: list[tuple[bytes, bytes]]) -> None:
    secret = secret_in(found)
    assert secret is None or (secret.isascii() and secret)
    try:
        credential = credential_in(found)
    except Unauthorized:
        return
    assert credential is None or credential.secret


@fuzz()
@given(lines)
def test_a_gateway_names_somebody_or_nobody_or_is_not_believed(
    found: list[tuple[bytes, bytes]],
) -> None:
    try:
        known = Gateway(["10.0.0.0/8"]).known_in(found)
    except Unauthorized:
        return
    assert known is None or re.fullmatch(r"t-[\w-]+:[\w-]+:\w+:[\w.~@%-]+", known.namespace)


@fuzz()
@given(st.text(max_size=50))
def test_a_peer_is_trusted_only_by_its_address(peer: str) -> None:
    assert not Gateway(["10.0.0.1"]).trusts(peer) or "10.0.0.1" in peer or ":" in peer


@fuzz()
@given(st.lists(raw_values, max_size=3), st.sampled_from(sorted(RULE_KEYS)))
def test_the_edge_decides(values: list[bytes], policy: str) -> None:
    route = EdgeRoute("/", policy, rule_of(key=RULE_KEYS[policy]), upstream="u")  # type: ignore[arg-type,index]
    match decide(route, known_of("acme", "shop", "user:alice"), values):
        case Pass() as passed:
            assert policy == "HANDLER_INTERNAL_C" or not values
            assert passed.namespace == "t-acme:shop:user:alice"
        case Protect() as protected:
            assert is_key(protected.raw)
            assert protected.key == f"t-acme:shop:user:alice:{protected.raw}"
        case Refuse(response):
            assert response.status == 400


DATES = st.datetimes().map(lambda moment: moment.strftime("%a, %d %b %Y %H:%M:%S GMT"))
WORDS = st.lists(
    st.sampled_from("Mon, 31 Feb 2026 25:61:61 GMT +9999 -0000 1e9 99999999999 : ,".split()),
    max_size=8,
).map(" ".join)


@fuzz()
@given(st.text(max_size=40) | DATES | WORDS, st.floats(0, 4e9))
def test_what_a_server_asks_to_wait_is_bounded(value: str, now: float) -> None:
    seconds = seconds_in(value, now)
    assert seconds is None or seconds >= 0
    assert 0 <= Backoff().pause(3, seconds, lambda: 1.0) <= 60


SEGMENTS = st.sampled_from(
    [b"/", b"//", b"a", b".", b"..", b"%2e", b"%2f", b"%25", b"%", b"\\", b"?", b"#", b"%00", b";"]
)


@fuzz()
@given(st.lists(SEGMENTS | st.binary(max_size=5), max_size=9).map(b"".join))
def test_a_path_is_read_in_one_way_or_not_at_all(target: bytes) -> None:
    path = path_of(target)
    if path is not None:
        assert path.startswith("/")
        assert not {"", ".", ".."} & set(path.split("/")[1:-1])
        assert path.rpartition("/")[2] not in {".", ".."}
        assert path.isprintable() or not path.isascii()
        assert "\\" not in path
