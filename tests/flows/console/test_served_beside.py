"""An app is served beside the console, from the same origin: its scripts can fetch, and no more."""

import pytest

from tests.fixtures.console_site import ConsoleSite, Visitor

NAVIGATION = {"sec-fetch-site": "same-origin", "sec-fetch-mode": "navigate"}
SCRIPTS = [
    {"sec-fetch-site": "same-origin", "sec-fetch-mode": mode}
    for mode in ("cors", "no-cors", "same-origin", "websocket")
]


@pytest.fixture
def purge(console_site: ConsoleSite) -> str:
    console_site.post("/orders", "beside", {"item": "tea"})
    return f"/keys/{console_site.operation('beside')}/purge"


@pytest.mark.parametrize("headers", SCRIPTS)
def test_what_a_script_fetches_has_no_proof(
    visitor: Visitor, purge: str, headers: dict[str, str]
) -> None:
    proof = visitor.fields(purge)["proof"]
    for path in ("", "/keys", purge, "/nothing"):
        assert proof in visitor.client.get(f"/console{path}", headers=NAVIGATION).text
        assert proof not in visitor.client.get(f"/console{path}", headers=headers).text


@pytest.mark.parametrize("headers", SCRIPTS)
def test_what_a_script_sends_does_nothing(
    console_site: ConsoleSite, visitor: Visitor, purge: str, headers: dict[str, str]
) -> None:
    """Not even with the right fields."""
    fields = visitor.fields(purge)
    for path in (purge, "/sign-out"):
        answer = visitor.client.post(f"/console{path}", data=fields, headers=headers)
        assert answer.status_code == 403
        assert fields["proof"] not in answer.text
    secret = {"secret": console_site.admin_secret}
    answer = visitor.client.post("/console/sign-in", data=secret, headers=headers)
    assert answer.status_code == 401
    assert console_site.operation("beside") in purge


def test_what_somebody_sends_is_done(visitor: Visitor, purge: str) -> None:
    fields = visitor.fields(purge)
    answer = visitor.client.post(f"/console{purge}", data=fields, headers=NAVIGATION)
    assert answer.status_code == 303


@pytest.mark.parametrize("origin", ["http://[", "http://[::1", "http://a]b", "//", "http://"])
def test_an_origin_that_is_none_is_another_one(
    console_site: ConsoleSite, visitor: Visitor, purge: str, origin: str
) -> None:
    headers = {"origin": origin}
    answer = visitor.client.post(f"/console{purge}", data=visitor.fields(purge), headers=headers)
    assert answer.status_code == 403
    secret = {"secret": console_site.admin_secret}
    stranger = console_site.stranger().client
    answer = stranger.post("/console/sign-in", data=secret, headers=headers)
    assert answer.status_code == 401
    assert console_site.operation("beside") in purge
