"""The examples with real gateways: OnceKey decides, they carry the bytes."""

import http.client
import importlib.util
import json
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from tests.fixtures.command import SCRIPT, clean_environment
from tests.fixtures.gateways import EXAMPLES, NAMES, gateway
from tests.fixtures.http.servers import serving
from tests.fixtures.served import Served

NAMESPACE = "t-acme:shop:user:anna%2F1"
IDENTITY = {"x-tenant-id": "acme", "x-project-id": "shop", "x-subject": "user:anna%2F1"}
FORGED = {
    "X-Tenant-Id": "evil",
    "x-project-id": "evil",
    "X-Subject": "user:evil",
    "X-Idempotency-Policy": "evil",
    "X_Tenant_Id": "evil",
    "X_Project_Id": "evil",
    "X_Subject": "user:evil",
    "X_Idempotency_Policy": "evil",
    "Idempotency_Key": "evil",
    "X-Original-Method": "GET",
    "X-Original-URI": "/evil",
    "X-Forwarded-Method": "GET",
    "X-Forwarded-Uri": "/evil",
}
EVERY_BYTE = bytes(range(256)) * 300


class Answer(NamedTuple):
    status: int
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def code(self) -> str:
        """Of a problem."""
        assert ("content-type", "application/problem+json") in self.headers
        problem = json.loads(self.body)
        assert problem["status"] == self.status
        found: str = problem["type"].rpartition("/")[2]
        return found

    @property
    def shown(self) -> dict[str, Any]:
        """What reached the service."""
        assert self.status == 200, self
        found: dict[str, Any] = json.loads(self.body)
        return found

    @property
    def told(self) -> dict[str, str]:
        """The lines the service may rely on, whatever their spelling."""
        found = [(name.replace("_", "-"), value) for name, value in self.shown["headers"]]
        kept = {"idempotency-key", "x-idempotency-policy", *IDENTITY}
        told = [(name, value) for name, value in found if name in kept]
        assert len(dict(told)) == len(told), found
        return dict(told)


class Site(NamedTuple):
    """A gateway, and the API key of somebody who may use it."""

    port: int
    secret: str
    served: Served

    def ask(
        self,
        method: str,
        target: str,
        *keys: str,
        body: Any = None,
        credentials: dict[str, str] | None = None,
        headers: dict[str, str] | None = None,
        chunked: bool = False,
    ) -> Answer:
        """Sends the target as it is; each of `keys` in a line of its own."""
        while True:
            try:
                return self._ask(method, target, keys, body, credentials, headers, chunked)
            except http.client.IncompleteRead:
                # Go's server cuts an answer that begins before it has seen the end of a body, in
                # Traefik as elsewhere: golang/go#40747. Only status and lines have come.
                continue

    def _ask(
        self,
        method: str,
        target: str,
        keys: tuple[str, ...],
        body: Any,
        credentials: dict[str, str] | None,
        headers: dict[str, str] | None,
        chunked: bool,
    ) -> Answer:
        lines = {"X-API-Key": self.secret} if credentials is None else credentials
        with closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)) as connection:
            connection.putrequest(method, target, skip_accept_encoding=True)
            for name, value in {**lines, **(headers or {})}.items():
                connection.putheader(name, value)
            for key in keys:
                connection.putheader("Idempotency-Key", key)
            if chunked:
                connection.putheader("Transfer-Encoding", "chunked")
            elif body is not None:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders([body] if chunked else body, encode_chunked=chunked)
            answer = connection.getresponse()
            lowered = [(name.lower(), value) for name, value in answer.getheaders()]
            return Answer(answer.status, lowered, answer.read())


@contextmanager
def opened(name: str, folder: Path) -> Iterator[Site]:
    """OnceKey, a gateway and a service, as the example has them."""
    store = {"ONCEKEY_STORE__URL": f"sqlite:///{folder}/oncekey.db"}
    served = Served(["--config", str(EXAMPLES / name / "oncekey.toml")], folder, store)
    try:
        secret = _new_secret(store)
        decides = urlsplit(served.url).port
        assert decides is not None
        with (
            serving("asgi", _service()) as service,
            gateway(name, decides, service) as port,
        ):
            yield Site(port, secret, served)
    finally:
        served.kill()


@pytest.fixture(scope="module", params=NAMES)
def site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    with opened(request.param, tmp_path_factory.mktemp(request.param)) as site:
        yield site


def _new_secret(store: dict[str, str]) -> str:
    words = "apikeys create --tenant acme --project shop --subject user:anna/1 --json".split()
    done = subprocess.run(
        [SCRIPT, *words], env=clean_environment(store), check=True, capture_output=True, timeout=60
    )
    found: str = json.loads(done.stdout)["secret"]
    return found


def _service() -> Any:
    spec = importlib.util.spec_from_file_location("upstream", EXAMPLES / "upstream.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.app


# -- who calls -------------------------------------------------------------------------------


def test_without_credentials(site: Site) -> None:
    answer = site.ask("POST", "/orders", "k", body=b"{}", credentials={})
    assert (answer.status, answer.code) == (401, "unauthorized")
    challenges = [value for name, value in answer.headers if name == "www-authenticate"]
    assert challenges == ['Bearer realm="oncekey"']


@pytest.mark.parametrize(
    "credentials",
    [{"X-API-Key": "ok_" + "a" * 43}, {"Authorization": "Bearer nobody"}, FORGED],
    ids=["unknown", "no token", "identity headers"],
)
def test_with_credentials_that_are_none(site: Site, credentials: dict[str, str]) -> None:
    answer = site.ask("POST", "/orders", "k", body=b"{}", credentials=credentials)
    assert (answer.status, answer.code) == (401, "unauthorized")


# -- what a key means ------------------------------------------------------------------------


def test_with_a_key_the_service_sees_whose_it_is(site: Site) -> None:
    answer = site.ask("POST", "/orders?a=%2f&b=..", "k-1", body=b'{"item": "tea"}')
    assert answer.told == {
        **IDENTITY,
        "idempotency-key": f"{NAMESPACE}:k-1",
        "x-idempotency-policy": "REQUIRED_A",
    }
    shown = answer.shown
    assert (shown["method"], shown["path"]) == ("POST", "/orders")
    assert (shown["query"], shown["body"]) == ("a=%2f&b=..", '{"item": "tea"}')


def test_by_a_bearer_token_as_well(site: Site) -> None:
    bearer = {"Authorization": f"Bearer {site.secret}"}
    answer = site.ask("PUT", "/orders/7", '"k-2"', body=b"{}", credentials=bearer)
    assert answer.told["idempotency-key"] == f"{NAMESPACE}:k-2"


@pytest.mark.parametrize(
    "method, target, policy",
    [
        ("PUT", "/orders/7", "ACCEPTED"),
        ("GET", "/orders", "PROHIBITED"),
        ("POST", "/imports", "HANDLER_INTERNAL_C"),
    ],
)
def test_without_a_key_where_none_is_needed(
    site: Site, method: str, target: str, policy: str
) -> None:
    """The service sees no key at all: an empty one would be everybody's."""
    body = None if method == "GET" else b"{}"
    told = site.ask(method, target, body=body).told
    assert told == {**IDENTITY, "x-idempotency-policy": policy}


@pytest.mark.parametrize(
    "method, keys, code",
    [
        ("POST", [], "idempotency-key-missing"),
        ("POST", ["t-acme:shop:user:anna%2F1:k"], "idempotency-key-invalid"),
        ("POST", ["t-k"], "idempotency-key-invalid"),
        ("POST", ["k", "k"], "idempotency-key-invalid"),
        ("POST", ["k" * 256], "idempotency-key-invalid"),
        ("GET", ["k"], "idempotency-key-prohibited"),
    ],
)
def test_a_key_that_is_wrong_here(site: Site, method: str, keys: list[str], code: str) -> None:
    answer = site.ask(method, "/orders", *keys, body=None if method == "GET" else b"{}")
    assert (answer.status, answer.code) == (400, code)


def test_a_key_that_is_not_looked_at_goes_no_further(site: Site) -> None:
    told = site.ask("POST", "/imports", f"{NAMESPACE}:k", body=b"{}").told
    assert "idempotency-key" not in told


# -- what a client makes up ------------------------------------------------------------------


@pytest.mark.parametrize("keys", [[], ["k-3"]], ids=["without a key", "with a key"])
def test_forged_lines_never_reach_the_service(site: Site, keys: list[str]) -> None:
    answer = site.ask("PUT", "/orders/7", *keys, body=b"{}", headers=FORGED)
    key = {"idempotency-key": f"{NAMESPACE}:{keys[0]}"} if keys else {}
    assert answer.told == {**IDENTITY, **key, "x-idempotency-policy": "ACCEPTED"}


def test_credentials_end_at_the_gateway(site: Site) -> None:
    for credentials in (
        {"X-API-Key": site.secret},
        {"Authorization": f"Bearer {site.secret}"},
    ):
        answer = site.ask("GET", "/orders", credentials=credentials)
        assert answer.status == 200
        assert site.secret.encode() not in answer.body


@pytest.mark.parametrize(
    "target",
    [
        "/nowhere",
        "/orders/",
        "/orders/7/8",
        "/edge/decide",
        "/edge/decide?refuse=403",
        "/_decide",
        "/orders%2f7",
        "/orders%5c7",
        "/%252e%252e/orders",
        "/orders/%00",
    ],
)
def test_what_has_no_route_goes_nowhere(site: Site, target: str) -> None:
    answer = site.ask("PUT", target, "k", body=b"{}")
    assert answer.status in {400, 404}


@pytest.mark.parametrize("target", ["/public/../orders", "//orders", "/./orders", "/%2e/orders"])
def test_another_spelling_is_no_way_around_a_policy(site: Site, target: str) -> None:
    """Refused, or read by everybody as the path it means."""
    assert site.ask("POST", target, body=b"{}").status in {400, 404}
    answer = site.ask("POST", target, "k-4", body=b"{}")
    if answer.status == 200:
        assert answer.shown["path"] == "/orders"
        assert answer.told["idempotency-key"] == f"{NAMESPACE}:k-4"


# -- the bytes -------------------------------------------------------------------------------


@pytest.mark.parametrize("chunked", [False, True], ids=["with a length", "in chunks"])
def test_a_body_passes_byte_for_byte(site: Site, chunked: bool) -> None:
    answer = site.ask("POST", "/orders", "k-5", body=EVERY_BYTE, chunked=chunked)
    assert answer.shown["body"].encode("latin-1") == EVERY_BYTE


def test_a_body_is_no_matter_to_a_refusal(site: Site) -> None:
    answer = site.ask("POST", "/orders", body=EVERY_BYTE)
    assert (answer.status, answer.code) == (400, "idempotency-key-missing")


@pytest.mark.parametrize("name", NAMES)
def test_nothing_passes_while_nobody_decides(name: str, tmp_path: Path) -> None:
    with opened(name, tmp_path) as site:
        site.served.kill()
        answer = site.ask("PUT", "/orders/7", "k", body=b"{}")
    assert answer.status in {500, 502, 503}
    assert b"x-tenant-id" not in answer.body
