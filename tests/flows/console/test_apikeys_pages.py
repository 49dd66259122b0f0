"""API keys in the console: made with a secret that is shown once, seen, and revoked once."""

import re
from typing import Any

import pytest
from markupsafe import escape

from tests.fixtures.console_site import ConsoleSite, Visitor

HOSTILE = "<script>alert(1)</script>\"'&"
_SECRET = re.compile(r"\boka?_[A-Za-z0-9_-]{43}")


def keys_of(site: ConsoleSite, tenant: str) -> list[Any]:
    found: list[Any] = site.tell("apikeys", tenant=tenant)["api_keys"]
    return found


def make(site: ConsoleSite, **fields: str) -> Any:
    answer = site.admin.post("apikeys", json=fields)
    assert answer.status_code == 201, answer.text
    return answer.json()


# -- made --------------------------------------------------------------------------------------


def test_a_secret_is_on_one_page_only(console_site: ConsoleSite, visitor: Visitor) -> None:
    form = {**visitor.fields("/apikeys/new"), "role": "caller", "tenant": "once"}
    form |= {"project": "shop", "subject": "user:ann", "label": "Ann's", "expires_in": "30d"}
    first, second = (visitor.send("/apikeys/new", form) for _ in range(2))
    (secret,) = _SECRET.findall(first.text)
    assert first.headers["cache-control"] == "no-store"
    assert _SECRET.findall(second.text) == []
    assert "it was done then, and once" in second.text
    (made,) = keys_of(console_site, "once")
    assert (made["project"], made["subject"], made["label"]) == ("shop", "user:ann", "Ann's")
    assert made["expires_at"] is not None
    operation = console_site.operation(form["key"])
    for path in (
        "/apikeys",
        f"/apikeys/{made['id']}",
        f"/apikeys/{made['id']}/revoke",
        "/audit",
        f"/keys/{operation}",
    ):
        assert secret not in visitor.see(path)


def test_the_key_of_an_admin_signs_in(console_site: ConsoleSite, visitor: Visitor) -> None:
    made = visitor.act("/apikeys/new", role="admin", label="another")
    (secret,) = _SECRET.findall(made.text)
    assert console_site.stranger().sign_in(secret).status_code == 303


@pytest.mark.parametrize(
    "fields",
    [
        {"role": "admin", "tenant": "refused"},
        {"tenant": HOSTILE},
        {"tenant": "refused", "label": "x" * 201},
        {"tenant": "refused", "expires_in": "a while"},
        {"tenant": "refused", "subject": "<b>"},
        {"tenant": "refused", "role": HOSTILE},
    ],
    ids="-".join,
)
def test_what_cannot_be_used_makes_nothing_and_stays_written(
    console_site: ConsoleSite, visitor: Visitor, fields: dict[str, str]
) -> None:
    before = console_site.tell("apikeys", limit=200)["api_keys"]
    answer = visitor.act("/apikeys/new", **{"role": "caller", **fields})
    assert answer.status_code == 400
    assert 'role="alert"' in answer.text
    assert "<script>alert" not in answer.text
    for name, value in fields.items():
        assert name == "role" or f'value="{escape(value)}"' in answer.text
    assert console_site.tell("apikeys", limit=200)["api_keys"] == before


# -- seen --------------------------------------------------------------------------------------


def test_keys_are_listed_and_ones_own_is_marked(
    console_site: ConsoleSite, visitor: Visitor
) -> None:
    made = make(console_site, tenant="listed", label=HOSTILE)
    own = console_site.tell("whoami")["id"]
    page = visitor.see("/apikeys")
    assert f'href="/console/apikeys/{made["id"]}"' in page
    assert str(escape(HOSTILE)) in page
    assert "<script>alert" not in page
    assert page.count("<strong>yours</strong>") == 1
    assert "You are signed in with this one." in visitor.see(f"/apikeys/{own}")
    assert "You are signed in" not in visitor.see(f"/apikeys/{made['id']}")
    assert own not in visitor.see("/apikeys", tenant="listed").partition("<main")[2]


def test_a_filter_that_cannot_be_used_is_kept(visitor: Visitor) -> None:
    page = visitor.see("/apikeys", tenant=HOSTILE)
    assert "No such API keys." in page
    assert f'value="{escape(HOSTILE)}"' in page
    assert 'role="alert"' in visitor.see("/apikeys", 400, before="yesterday")


@pytest.mark.parametrize("action", ["", "/revoke"])
@pytest.mark.parametrize(
    "id", ["ak_0000000000000001", "ak_1", "ak_ffffffffffffffff", "%3Cscript%3E", "a%2Fb"]
)
def test_what_is_not_there_is_not_found(visitor: Visitor, action: str, id: str) -> None:  # noqa: A002
    visitor.see(f"/apikeys/{id}{action}", 404)


# -- revoked -----------------------------------------------------------------------------------


def test_a_key_is_revoked_once(console_site: ConsoleSite, visitor: Visitor) -> None:
    made = make(console_site, tenant="revoked")
    path = f"/apikeys/{made['id']}"
    assert "signed out at once" not in visitor.see(f"{path}/revoke")
    form = visitor.fields(f"{path}/revoke")
    first, second = (visitor.send(f"{path}/revoke", form) for _ in range(2))
    assert first.headers["location"] == f"/console{path}?said=revoked"
    assert second.headers["location"].endswith("&again=1")
    (shape,) = keys_of(console_site, "revoked")
    assert shape["state"] == "revoked"
    assert f"{path}/revoke" not in visitor.see(path)
    entries = console_site.tell("audit", target=made["id"])["entries"]
    assert [each["action"] for each in entries] == ["apikey.revoke", "apikey.create"]


def test_whoever_revokes_their_own_key_is_warned_and_signed_out(
    console_site: ConsoleSite,
) -> None:
    made = make(console_site, role="admin", label="short")
    visitor = console_site.stranger()
    visitor.sign_in(made["secret"])
    path = f"/apikeys/{made['id']}/revoke"
    assert "you are signed out at once" in visitor.see(path)
    answer = visitor.act(path)
    assert answer.status_code == 303
    after = visitor.client.get(answer.headers["location"])
    assert after.headers["location"].startswith("/console/sign-in")
