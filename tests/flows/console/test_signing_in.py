"""Who may look: admins, for as long as their key is good; and nobody by a trick."""

from hashlib import sha256

import httpx
import pytest

from tests.fixtures.api_site import api_site
from tests.fixtures.console_site import ConsoleSite, Visitor
from tests.fixtures.operator import at_console

_PAGES = ("", "/keys", "/keys/op_0000000000000001", "/keys/op_0000000000000001/purge")


def test_the_key_of_an_admin_opens_a_session(console_site: ConsoleSite) -> None:
    visitor = console_site.stranger()
    answer = visitor.sign_in(console_site.admin_secret, to="/console/keys")
    assert answer.headers["location"] == "/console/keys"
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    assert "Path=/console" in cookie
    assert "Secure" not in cookie
    assert console_site.admin_secret not in cookie
    visitor.see("/keys")


def test_behind_tls_the_cookie_is_only_for_tls(console_site: ConsoleSite) -> None:
    with httpx.Client(base_url=console_site.url) as client:
        answer = client.post(
            "/console/sign-in",
            data={"secret": console_site.admin_secret},
            headers={"origin": "https://ops.example.com", "sec-fetch-site": "same-origin"},
        )
    assert "Secure" in answer.headers["set-cookie"]


@pytest.mark.parametrize("path", _PAGES)
def test_without_a_session_there_is_nothing_to_see(console_site: ConsoleSite, path: str) -> None:
    visitor = console_site.stranger()
    answer = visitor.client.get(f"/console{path}")
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/console/sign-in?to=%2Fconsole")


@pytest.mark.parametrize(
    "cookie", ["x", "a" * 64, "a" * 5000, "ä", '"', "", "op_1;oncekey_console=other"]
)
def test_a_made_up_session_is_none(console_site: ConsoleSite, cookie: str) -> None:
    answer = httpx.get(
        f"{console_site.url}/console/keys",
        headers={b"cookie": f"oncekey_console={cookie}".encode()},
    )
    assert answer.status_code == 303


def test_callers_cannot_sign_in(console_site: ConsoleSite) -> None:
    visitor = console_site.stranger()
    for secret in (console_site.caller_secret, "", "oka_" + "a" * 43, "ä" * 47):
        answer = visitor.sign_in(secret)
        assert answer.status_code == 401
        assert "set-cookie" not in answer.headers
        assert not secret or secret not in answer.text


@pytest.mark.parametrize(
    "to",
    [
        "https://evil.example/",
        "//evil.example/console",
        "/console\\@evil.example",
        "/consolevil",
        "javascript:alert(1)",
        "/api/admin/keys",
        "/console\r\nset-cookie: a=b",
        "/console/../orders",
        "/console/%2e%2e/orders",
        "/console/.%2E/orders",
        "/console/keys/%2E./../orders?a=b",
        "/console/..",
        "/console/.?a",
        "/console/a%2f..%2f..%2forders",
        "/console/.\t./orders",
    ],
)
def test_signing_in_never_leads_elsewhere(console_site: ConsoleSite, to: str) -> None:
    answer = console_site.stranger().sign_in(console_site.admin_secret, to=to)
    assert answer.headers["location"] == "/console"
    assert "a=b" not in answer.headers["set-cookie"]


@pytest.mark.parametrize(
    "to", ["/console/keys?prefix=../a", "/console/promises/..a%2Fb...", "/console?said=.."]
)
def test_dots_that_lead_nowhere_are_left_as_they_are(console_site: ConsoleSite, to: str) -> None:
    answer = console_site.stranger().sign_in(console_site.admin_secret, to=to)
    assert answer.headers["location"] == to


def test_a_look_at_the_head_alone_is_a_look(console_site: ConsoleSite, visitor: Visitor) -> None:
    stranger = console_site.stranger().client
    for path in ("/console/sign-in", "/console/keys", "/console/nothing"):
        for client in (stranger, visitor.client):
            assert client.head(path).status_code == client.get(path).status_code


@pytest.mark.parametrize("path", ["/sign-in", "/sign-out", "/events/publish"])
def test_a_form_that_is_too_large_is_told_so(visitor: Visitor, path: str) -> None:
    fields = visitor.fields("/events/publish")
    answer = visitor.send(path, {**fields, "value": "a" * (1 << 20)})
    assert answer.status_code == 413
    assert "Nothing was done. A form has 1.0 MiB at most." in answer.text


@pytest.mark.anyio
async def test_whoever_is_refused_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async with api_site("memory://") as site, at_console(site) as operator:
        for headers in ({}, {"origin": "https://evil.example"}):
            caplog.clear()
            wrong = {"secret": "oka_" + "w" * 43}
            client = operator.client
            answer = await client.post("/console/sign-in", data=wrong, headers=headers)
            assert answer.status_code == 401
            assert "a sign-in to the console was refused, from 127.0.0.1" in caplog.text
            assert wrong["secret"] not in caplog.text


def test_a_session_ends_with_its_key(console_site: ConsoleSite) -> None:
    made = console_site.admin.post("apikeys", json={"role": "admin", "label": "short"}).json()
    visitor = console_site.stranger()
    assert visitor.sign_in(made["secret"]).status_code == 303
    visitor.see("/keys")
    assert console_site.admin.post(f"apikeys/{made['id']}/revoke").status_code == 200
    assert visitor.client.get("/console/keys").status_code == 303


def test_signing_out_ends_the_session_for_whoever_has_its_cookie(
    console_site: ConsoleSite, visitor: Visitor
) -> None:
    (token,) = visitor.client.cookies.values()
    proof = visitor.fields(_purge_path(console_site))["proof"]
    answer = visitor.send("/sign-out", {"proof": proof})
    assert answer.headers["location"] == "/console/sign-in?said=signed-out"
    again = httpx.get(f"{console_site.url}/console/keys", cookies={"oncekey_console": token})
    assert again.status_code == 303


def test_what_is_stored_opens_nothing(console_site: ConsoleSite, visitor: Visitor) -> None:
    (token,) = visitor.client.cookies.values()
    kept = console_site.tell("keys", endpoint="console session")["keys"]
    assert sha256(token.encode()).hexdigest() in [each["key"] for each in kept]
    for each in kept:
        cookies = {"oncekey_console": each["key"]}
        answer = httpx.get(f"{console_site.url}/console/keys", cookies=cookies)
        assert answer.status_code == 303


def _purge_path(console_site: ConsoleSite) -> str:
    console_site.post("/orders", "to-be-seen", {"item": "tea"})
    return f"/keys/{console_site.operation('to-be-seen')}/purge"
