"""Whatever is sent, the answer is one that the document describes, and never a fault of ours."""

import json
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oncekey.api.requests import MAX_BODY
from oncekey.api.table import ENDPOINTS
from tests.fixtures.api_site import ApiSite, Client, api_site

pytestmark = pytest.mark.anyio

POSTS = [each for each in ENDPOINTS if each.method == "POST"]
MEMBERS = sorted({name for each in POSTS if each.body for name in each.body.__struct_fields__})
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
SEGMENTS = st.sampled_from(
    ["x", "echo", "wf_0000000000000001", "id:wf_0000000000000001:x", "key:k", "ct_x", "id:", ":"]
) | st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)


@pytest.fixture
def store_url() -> str:
    return "memory://"


def path_of(pattern: str, segment: str) -> str:
    for part in ("{name:path}", "{address:path}", "{name}", "{id}"):
        pattern = pattern.replace(part, quote(segment, safe=":"))
    return pattern.replace("{tenant}", "acme")


@pytest.mark.parametrize("endpoint", POSTS, ids=[each.path for each in POSTS])
async def test_no_body_and_no_path_is_too_strange(endpoint: Any) -> None:
    """Hypothesis needs a loop of its own for each example; here they share one site."""
    examples: list[tuple[str, Any, str | None]] = []

    @settings(max_examples=25, database=None, suppress_health_check=list(HealthCheck))
    @given(
        SEGMENTS,
        st.dictionaries(st.sampled_from(MEMBERS), VALUES, max_size=4),
        st.none() | st.text(st.characters(codec="ascii"), max_size=10),
    )
    def gather(segment: str, body: Any, key: str | None) -> None:
        examples.append((segment, body, key))

    gather()
    async with api_site("memory://") as site:
        client = await site.client("acme")
        for segment, body, key in examples:
            await send(client, path_of(endpoint.path, segment), body, key)


async def send(client: Client, path: str, body: Any, key: str | None) -> None:
    headers = {} if key is None else {"idempotency-key": key.encode()}
    content = json.dumps(body).encode()
    answer = await client.post(path, content=content, headers=headers)
    assert answer.status_code < 500, answer.text


@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b'{"name": "\xff"}',
        b"[" * 50_000,
        b'{"name": "p", "unknown": 1}',
        b'{"name": "p", "timeout": 1e999}',
        b'{"name": "p", "timeout": -1}',
        b'{"name": "p", "timeout": "forever"}',
        b'{"name": "p", "key_ttl": "99999d"}',
        b'{"name": ""}',
        b'{"name": 5}',
        b'{"name": "a\\u0000b"}',
        b'{"name": "p", "key": ""}',
        b'{"name": "p", "key": "a\\u0000b"}',
    ],
)
async def test_a_body_that_cannot_be_used_makes_nothing(
    site: ApiSite, acme: Client, content: bytes
) -> None:
    answer = await acme.post(acme.place("promises"), content=content)
    assert answer.status_code == 400
    assert (await acme.see("promises")).json()["promises"] == []


@pytest.mark.parametrize(
    "size, status", [((1 << 20) - 2, 201), (1 << 20, 413), (MAX_BODY + 1, 413)]
)
async def test_a_body_is_bounded(acme: Client, size: int, status: int) -> None:
    answer = await acme.ask("workflows/approval/start", {"input": "x" * size})
    assert answer.status_code == status
    assert len((await acme.see("workflows")).json()["workflows"]) == (status == 201)


@pytest.mark.parametrize("depth, refused", [(200, False), (201, True), (900, True), (960, True)])
@pytest.mark.parametrize(
    "path, member",
    [
        ("workflows/echo/start", "input"),
        ("workflows/approval/start", "input"),
        ("promises/key:k/resolve", "value"),
        ("promises/key:k/reject", "error"),
        ("events", "data"),
    ],
)
async def test_how_deep_a_value_may_be_is_a_number_and_not_what_is_left_of_the_stack(
    acme: Client, path: str, member: str, depth: int, refused: bool
) -> None:
    await acme.ask("promises", {"name": "p", "key": "k"})
    about = b'"key": "topic", ' if path == "events" else b""
    content = b'{%b"%b": %b%b}' % (about, member.encode(), b"[" * depth, b"]" * depth)
    answer = await acme.post(acme.place(path), content=content)
    assert (answer.status_code == 400) is refused, answer.text
    assert answer.status_code < 500
    if refused:
        assert "nested" in answer.json()["detail"]


@pytest.mark.parametrize(
    "path",
    [
        "promises/key:a%00b",
        "promises/key:a%0Ab",
        "promises/key:a%0A",
        "promises/key:%FF%FE",
        "promises/key:" + "x" * 5000,
        "promises/id:wf_0000000000000001:" + "x" * 5000,
        "promises/id:wf_ffffffffffffffff:x",
        "workflows/wf_ffffffffffffffff",
        "workflows/%00",
        "workflows/wf_0000000000000001%0A",
    ],
)
async def test_a_strange_address_is_not_found_or_refused(acme: Client, path: str) -> None:
    assert (await acme.see(path)).status_code in {400, 404}


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=x",
        "before=x",
        "before=wf_ffffffffffffffff",
        "status=sleeping",
        "unknown=1",
        "limit=1&limit=2",
        "name=%FF",
    ],
)
async def test_a_strange_query_is_refused(acme: Client, query: str) -> None:
    assert (await acme.see(f"workflows?{query}")).status_code == 400
