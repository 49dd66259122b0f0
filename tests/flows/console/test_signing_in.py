"""Who may look: admins, for as long as their key is good; and nobody by a trick."""

from hashlib import sha256

import httpx
import pytest

from tests.fixtures.console_site import ConsoleSite, Visitor

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
    ],
)
def test_signing_in_never_leads_elsewhere(console_site: ConsoleSite, to: str) -> None:
    answer = console_site.stranger().sign_in(console_site.admin_secret, to=to)
    assert answer.headers["location"] == "/console"
    assert "a=b" not in answer.headers["set-cookie"]


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
