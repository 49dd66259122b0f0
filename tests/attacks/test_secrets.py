"""What must not be told: secrets of every kind, and where services behind are. After everything
that can go wrong has gone wrong, all that anybody was told is searched for it."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.fixtures.behind import DO
from tests.fixtures.edge_site import SECRET
from tests.fixtures.hooks import PUBLIC, Hook
from tests.fixtures.stronghold import Stronghold, bearer, head

STRONGHOLD = {
    "more": f"""
[webhooks]
public_url = "{PUBLIC}"

[upstreams.nowhere]
url = "http://127.0.0.1:9/inner-base"
connect_timeout = "1s"

[[routes]]
path = "/nowhere"
methods = ["GET", "POST"]
upstream = "nowhere"
policy = "ACCEPTED"
"""
}


class Told:
    """Everything that came back, and everything that may be in none of it."""

    def __init__(self, fort: Stronghold) -> None:
        self.fort = fort
        self.token = bearer()
        self.key = fort.api_key(tenant="acme", project="shop", subject="service:ci")
        self.hooks = [Hook(fort, name) for name in ("stripe", "github", "twilio", "standard")]
        rotated = fort.manage("POST", f"webhooks/{self.hooks[0].id}/rotate", overlap="1h")
        self.secrets = {
            "of tokens": SECRET,
            "a token": self.token,
            "the signature of a token": self.token.split(".")[2],
            "of an API key": self.key["secret"].removeprefix("ok_"),
            "of an admin": fort.admin.removeprefix("oka_"),
            "of a webhook, after it was changed": rotated["secret"].removeprefix("whsec_"),
            **{f"of {each.id}": each.secret.removeprefix("whsec_") for each in self.hooks},
            **{f"that seals {number}": line for number, line in enumerate(self._sealing())},
        }
        self.answers: list[bytes] = []

    def _sealing(self) -> list[str]:
        text = (self.fort.folder / "oncekey-webhooks.key").read_text()
        return [line for line in text.splitlines() if line and not line.startswith("#")]

    def hear(self, request: bytes, *, bodiless: bool = False) -> int:
        with self.fort.wire(request) as wire:
            answer = wire.answer(bodiless=bodiless)
        lines = "\n".join(f"{name}: {value}" for name, value in answer.lines)
        self.answers.append(lines.encode("latin-1") + b"\n\n" + answer.body)
        return answer.status

    def found_in(self, text: str | bytes) -> list[str]:
        raw = text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")
        return [name for name, secret in self.secrets.items() if secret.encode() in raw]


@pytest.fixture(scope="module")
def told(stronghold: Stronghold) -> Iterator[Told]:
    """After everything has happened."""
    stronghold.begin()
    made = Told(stronghold)
    good_requests(made)
    bad_requests(made)
    broken_services(made)
    deliveries(made)
    yield made
    stronghold.begin()


def good_requests(told: Told) -> None:
    secret = told.key["secret"]
    for lines in ([f"Authorization: Bearer {told.token}"], [f"X-API-Key: {secret}"]):
        for _ in range(2):
            request = head("/api/v1/orders", *lines, key="good", credentials=None)
            assert told.hear(request) == 201
        path = "/api/v1/orders/by-idempotency-key/good"
        assert told.hear(head(path, *lines, method="GET", credentials=None)) == 201
    admin = f"Authorization: Bearer {told.fort.admin}"
    assert told.hear(head("/platform/jobs", admin, key="good", credentials=None)) == 201
    for path in ("/edge/openapi.json", "/openapi.json", "/api/v1/healthz", "/healthz"):
        assert told.hear(head(path, method="GET", credentials=None)) in {200, 401, 404}
    for path in ("webhooks", "apikeys", "audit", "keys", "retention", "openapi.json"):
        assert told.hear(head(f"/api/admin/{path}", admin, method="GET", credentials=None)) == 200
    for hook in told.hooks:
        for end in ("", "/deliveries"):
            path = f"/api/admin/webhooks/{hook.id}{end}"
            assert told.hear(head(path, admin, method="GET", credentials=None)) == 200


def bad_requests(told: Told) -> None:
    secret, token = told.key["secret"], told.token
    for line in (
        f"Authorization: Bearer {token}x",
        f"Authorization: Basic {token}",
        f"Authorization: Bearer {secret}x",
        f"X-API-Key: {token}",
        f"X-API-Key: {told.fort.admin}",
        f"Authorization: Bearer {token}\r\nX-API-Key: {secret}",
    ):
        assert told.hear(head("/api/v1/orders", line, key="bad", credentials=None)) == 401
        assert told.hear(head("/api/admin/keys", line + "x", method="GET", credentials=None)) == 401
    authorised = {"credentials": token}
    assert told.hear(head(key=f"{token}:", **authorised)) == 400  # type: ignore[arg-type]
    assert told.hear(head(f"/api/v1/orders/{token}", **authorised)) == 404  # type: ignore[arg-type]
    assert told.hear(head(f"/{secret}?{SECRET.replace(' ', '+')}", credentials=token)) == 404
    assert told.hear(head("/api/v1/orders", f"Host: {secret}", credentials=token)) == 400
    assert told.hear(head("/api/v1/orders", f"X-Large: {token * 300}", credentials=token)) == 431
    reused = head(key="good", length=2, credentials=token)
    assert told.hear(reused + b"{}") == 422
    for hook in told.hooks:
        told.hear(head(hook.path, f"X-Hub-Signature-256: {hook.secret}", credentials=None))


def broken_services(told: Told) -> None:
    fort = told.fort
    origin = fort.behind.url
    places = [["location", f"{origin}/a"], ["content-location", f"{origin}/b"],
              ["link", f"<{origin}/c>; rel=next, <{origin}>; rel=prev"],
              ["refresh", f"0; url={origin}/d"], ["server", "inner/1.0"], ["via", "1.1 inner"],
              ["x-powered-by", "inner"], ["x-restate-id", "inner"]]  # fmt: skip
    for number, do in enumerate(
        (
            {"status": 302, "headers": places},
            {"status": 201, "headers": places},
            {"status": 500, "headers": places, "body": "{}"},
            {"headers": [["content-length", "3"]]},
            {"die": "before"},
            {"die": "after"},
            {"die": "half", "chunks": ["aa", "bb"], "pause": 0.05},
        )
    ):
        for method, key in (("POST", f"broken-{number}"), ("GET", None)):
            asked = {"method": method, "key": key, "credentials": told.token}
            hear_broken(told, head("/api/v1/orders", f"{DO}: {json.dumps(do)}", **asked))  # type: ignore[arg-type]
            if "die" in do:
                fort.behind.join()
                hear_broken(told, head("/api/v1/orders", **asked))  # type: ignore[arg-type]
                fort.behind.start()
    for method in ("GET", "POST"):
        assert told.hear(head("/nowhere", method=method, credentials=told.token)) == 502


def hear_broken(told: Told, request: bytes) -> None:
    """An answer that is cut off is an answer, too."""
    with told.fort.wire(request) as wire:
        try:
            told.answers.append(repr(wire.answer()).encode())
        except AssertionError as error:
            told.answers.append(str(error).encode())


def deliveries(told: Told) -> None:
    for hook in told.hooks:
        for body in (b"{}", b'{"id": "evt"}', b"x", b"MessageSid=SM1&MessageStatus=sent"):
            good = hook.signed(body)
            told.hear(hook.request(good))
            told.hear(hook.request(good, f"Authorization: Bearer {told.token}"))
            told.hear(hook.request(hook.signed(body, secret=hook.provider.new_secret())))
            told.hear(hook.request(good._replace(headers=())))


# -- what nobody was told ------------------------------------------------------------------------


def test_no_answer_has_a_secret_in_it(fort: Stronghold, told: Told) -> None:
    assert len(told.answers) > 100
    assert {name for answer in told.answers for name in told.found_in(answer)} == set()


def test_no_answer_tells_where_services_are(fort: Stronghold, told: Told) -> None:
    words = (
        f":{fort.behind.port}",
        "127.0.0.1:9",
        "inner",
        str(fort.folder),
        "sqlite",
        "Traceback",
    )
    for answer in told.answers:
        for word in words:
            assert word.encode() not in answer, answer


def test_what_services_say_of_themselves_is_turned_into_paths(fort: Stronghold, told: Told) -> None:
    said = b"\n".join(told.answers).decode("latin-1")
    for line in ("location: /a", "content-location: /b", "link: </c>; rel=next, </>; rel=prev"):
        assert line in said or line.replace(": ", "', '") in said


@pytest.mark.parametrize(
    "words",
    [
        ("audit", "--json"),
        ("webhooks", "list", "--json"),
        ("webhooks", "list"),
        ("apikeys", "list", "--json"),
        ("keys", "list", "--json"),
        ("retention", "list", "--json"),
        ("openapi",),
        ("check",),
    ],
    ids=" ".join,
)
def test_no_command_tells_a_secret(fort: Stronghold, told: Told, words: tuple[str, ...]) -> None:
    said = fort.command(*words)
    assert len(said) > 10
    assert told.found_in(said) == []


def test_nor_do_those_that_show_one_thing(fort: Stronghold, told: Told) -> None:
    for hook in told.hooks[:2]:
        said = fort.command("webhooks", "show", hook.id, "--json")
        assert json.loads(said)["deliveries"]
        assert told.found_in(said) == []
    listed: list[dict[str, Any]] = json.loads(fort.command("keys", "list", "--json"))
    assert listed
    said = fort.command("keys", "show", listed[0]["operation_id"], "--json")
    assert told.found_in(said) == []


def test_nothing_that_is_kept_has_one_in_it(fort: Stronghold, told: Told) -> None:
    """Whoever has the files of the store has no secret yet."""
    kept = [path for path in fort.folder.glob("oncekey.db*") if path.is_file()]
    assert kept
    for path in kept:
        assert told.found_in(path.read_bytes()) == []
    (key,) = fort.folder.glob("*.key")
    assert key.stat().st_mode & 0o077 == 0


def test_nothing_that_is_handed_on_has_one_in_it(fort: Stronghold, told: Told) -> None:
    """But for the token of a caller, which may mean something to the service behind."""
    seen = json.dumps(fort.behind.seen)
    assert set(told.found_in(seen)) <= {"a token", "the signature of a token"}
    assert told.key["secret"] not in seen
    assert fort.admin not in seen


def test_nothing_that_is_logged_has_one_in_it(fort: Stronghold, told: Told) -> None:
    """The last one: it ends the server, to hear all of it."""
    said = fort.stop() + fort.served.banner
    assert told.found_in(said) == []
    assert "Traceback" not in said
