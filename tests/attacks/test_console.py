"""Whoever wants something done through somebody else's session, or to run a script in it."""

import re

import httpx
import pytest

from tests.fixtures.console_site import ConsoleSite, Visitor

_SCRIPT = "\"><script>alert(1)</script><img src=x onerror=alert(1)>'{{7*7}}"


@pytest.fixture
def purge(console_site: ConsoleSite) -> str:
    console_site.post("/orders", "wanted", {"item": "tea"})
    return f"/keys/{console_site.operation('wanted')}/purge"


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "https://evil.example", "sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "none"},
    ],
)
def test_a_form_of_another_site_does_nothing(
    console_site: ConsoleSite, visitor: Visitor, purge: str, headers: dict[str, str]
) -> None:
    """Not even with the right fields, should they ever leak."""
    fields = visitor.fields(purge)
    answer = visitor.client.post(f"/console{purge}", data=fields, headers=headers)
    assert answer.status_code == 403
    assert console_site.operation("wanted") in purge


@pytest.mark.parametrize("proof", [None, "", "0" * 32, "ä", "x" * 100_000])
def test_a_form_without_its_proof_does_nothing(
    console_site: ConsoleSite, visitor: Visitor, purge: str, proof: str | None
) -> None:
    fields = {"key": "console-1"} if proof is None else {"key": "console-1", "proof": proof}
    assert visitor.send(purge, fields).status_code == 403
    assert console_site.operation("wanted") in purge


def test_the_proof_of_another_session_is_none(
    console_site: ConsoleSite, visitor: Visitor, purge: str
) -> None:
    other = console_site.visitor().fields(purge)
    assert visitor.send(purge, other).status_code == 403
    assert console_site.operation("wanted") in purge


def test_json_and_links_do_nothing(console_site: ConsoleSite, visitor: Visitor, purge: str) -> None:
    fields = visitor.fields(purge)
    assert visitor.client.post(f"/console{purge}", json=fields).status_code == 403
    assert visitor.client.get(f"/console{purge}", params=fields).status_code == 200
    assert visitor.client.put(f"/console{purge}", data=fields).status_code == 405
    assert visitor.client.get("/console/sign-out").status_code == 405
    assert console_site.operation("wanted") in purge


def test_nobody_signs_somebody_in_as_himself(console_site: ConsoleSite) -> None:
    answer = httpx.post(
        f"{console_site.url}/console/sign-in",
        data={"secret": console_site.admin_secret},
        headers={"origin": "https://evil.example", "sec-fetch-site": "cross-site"},
    )
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize(
    "path", ["", "/keys", "/sign-in", "/nothing", "/static/console.js", "/live"]
)
def test_no_page_can_be_framed_or_run_a_script_of_others(visitor: Visitor, path: str) -> None:
    headers = visitor.client.get(f"/console{path}").headers
    policy = headers["content-security-policy"]
    assert "frame-ancestors 'none'" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-frame-options"] == "DENY"
    assert headers["x-content-type-options"] == "nosniff"


def test_no_page_has_inline_scripts_or_styles(console_site: ConsoleSite, visitor: Visitor) -> None:
    for path in ("", "/keys", f"/keys/{console_site.operation('wanted')}"):
        html = visitor.see(path)
        assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\son\w+=|\sstyle=", html)
        assert "javascript:" not in html


def test_what_callers_wrote_is_shown_as_text(console_site: ConsoleSite, visitor: Visitor) -> None:
    console_site.post("/orders", "hostile", {"item": _SCRIPT, _SCRIPT: "</code></pre><script>"})
    console_site.workflow(console_site.start("approval", "start-of-hostile", _SCRIPT), "waiting")
    operation = console_site.operation("hostile")
    named = console_site.operation("approval:")
    for path in ("/keys", f"/keys/{operation}", f"/keys/{named}", f"/keys/{named}/purge"):
        html = visitor.see(path)
        assert "<script>" not in html
        assert "<img src=x" not in html
    assert "&lt;script&gt;alert(1)" in visitor.see(f"/keys/{operation}")
    assert "&lt;script&gt;alert(1)" in visitor.see(f"/keys/{named}/purge")


def test_what_is_asked_for_is_shown_as_text(visitor: Visitor) -> None:
    for name in ("id", "key", "prefix", "tenant", "state", "before", "said", "again"):
        answer = visitor.client.get("/console/keys", params={name: _SCRIPT})
        assert "<script>alert" not in answer.text
        assert "49" not in re.findall(r"\{\{7\*7\}\}|\b49\b", answer.text)
    answer = visitor.client.get("/console/sign-in", params={"to": _SCRIPT})
    assert "<script>alert" not in answer.text


@pytest.mark.parametrize(
    "name", ["../app.py", "..%2fapp.py", "%2e%2e/app.py", "layout.html", "", "console.css/.."]
)
def test_only_its_own_files_are_served(visitor: Visitor, name: str) -> None:
    answer = visitor.client.get(f"/console/static/{name}")
    assert answer.status_code in {303, 404}
    assert "import" not in answer.text


@pytest.mark.parametrize(
    "page", ["", "/api/admin/keys", "/console/keys/op_1/purge", "/console/sign-in", "x" * 9000]
)
def test_only_pages_can_be_watched(visitor: Visitor, page: str) -> None:
    assert visitor.client.get("/console/live", params={"page": page}).status_code == 404


def test_watching_needs_a_session(console_site: ConsoleSite) -> None:
    path = f"{console_site.url}/console/live"
    assert httpx.get(path, params={"page": "/console/keys"}).status_code == 401
