"""The page on identity: a renewed token is the same caller, another user is another one; and what
it says of the edge is so."""

import json
import re
from pathlib import Path

import httpx
import pytest

import oncekey
from oncekey.compose.identities import identities_of
from oncekey.config import load
from tests.fixtures.pages import DOCS, run_page
from tests.fixtures.site import Reply, Site
from tests.fixtures.tokens import jwks_of, rsa, signed

PAGE = DOCS / "how-to" / "identity.md"


@pytest.mark.anyio
async def test_a_retry_with_a_renewed_token_gets_the_first_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    page = run_page("how-to/identity.md")
    transport = httpx.ASGITransport(page.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://shop") as client:
        answers = [
            await client.post(
                "/orders", headers={"Idempotency-Key": "order-1", "Authorization": token}
            )
            for token in ("Bearer old", "Bearer new", "Bearer other")
        ]
    page.ledger.close()
    assert [answer.json() for answer in answers] == [{"order": 1}, {"order": 1}, {"order": 2}]
    assert page.orders == ["ada", "bob"]


def blocks(language: str) -> list[str]:
    return re.findall(rf"(?ms)^```{language}\n(.*?)^```", PAGE.read_text())


@pytest.mark.anyio
async def test_the_token_of_the_page_is_the_caller_that_it_says(site: Site, tmp_path: Path) -> None:
    tokens, gateway = blocks("toml")
    published = re.search(r'jwks_url = "([^"]+)"', tokens)
    assert published is not None
    (tmp_path / "oncekey.toml").write_text(tokens.replace(published[1], site.url) + gateway)
    site.answer = lambda _: Reply(jwks_of(rsa()))
    ledger = oncekey.open("memory://")
    identities = identities_of(load(tmp_path / "oncekey.toml", {}, {}), ledger)
    token = signed(rsa(), json.loads(blocks("json")[0]))

    by_token = await identities.identify([(b"authorization", f"Bearer {token}".encode())], "")
    named = [(b"x-tenant-id", b"acme"), (b"x-subject", b"service:ci")]
    by_gateway = await identities.identify(named, "10.0.0.7")
    await identities.close()
    await ledger.aclose()
    assert by_token is not None
    assert f"its caller is `{by_token.namespace}`" in PAGE.read_text()
    assert by_gateway is not None
    assert by_gateway.namespace == "t-acme:_tenant:service:ci"
