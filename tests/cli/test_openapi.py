"""`oncekey openapi`: the edge's own document, and another's with what the edge adds to it."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from openapi_spec_validator import validate

from oncekey.cli import documents
from oncekey.cli.failure import Failure
from tests.fixtures.command import Run

CONFIGURATION = """
[auth.jwt]
secret = "{secret}"

[retention]
nightly = "36h"

[upstreams.orders]
url = "http://127.0.0.1:9000"
[upstreams.reports]
url = "http://127.0.0.1:9001/base"

[[routes]]
path = "/api/v1/orders"
methods = ["POST"]
upstream = "orders"
policy = "REQUIRED_A"
retention = "nightly"
title = "Order"

[[routes]]
path = "/api/v1/orders/{{id}}"
methods = ["GET"]
upstream = "orders"
policy = "PROHIBITED"

[[routes]]
path = "/reports"
methods = ["POST"]
upstream = "reports"
policy = "ACCEPTED"

[[routes]]
path = "/app"
methods = ["POST"]
policy = "REQUIRED_A"
"""
ORDERS = {
    "openapi": "3.0.3",
    "info": {"title": "Orders", "version": "7"},
    "paths": {
        "/api/v1/orders": {"post": {"responses": {"201": {"description": "Made."}}}},
        "/api/v1/orders/{orderId}": {
            "parameters": [
                {"name": "orderId", "in": "path", "required": True, "schema": {"type": "string"}}
            ],
            "get": {"responses": {"200": {"description": "It."}}},
            "delete": {"responses": {"204": {"description": "Gone."}}},
        },
    },
}


@pytest.fixture(autouse=True)
def configured(tmp_path: Path) -> None:
    text = CONFIGURATION.format(secret="s" * 32)
    (tmp_path / "oncekey.toml").write_text(text)
    (tmp_path / "orders.json").write_text(json.dumps(ORDERS))
    (tmp_path / "orders.yaml").write_text(yaml.safe_dump(ORDERS))


def printed(oncekey: Run, *words: object, told: str = "") -> Any:
    done = oncekey("openapi", *words)
    assert (done.returncode, done.stderr) == (0, told)
    document = json.loads(done.stdout)
    validate(document)
    return document


def refused(oncekey: Run, *words: object) -> str:
    done = oncekey("openapi", *words)
    assert (done.returncode, done.stdout) == (1, "")
    return done.stderr


def test_the_edge_describes_its_routes(oncekey: Run) -> None:
    document = printed(oncekey)
    order = document["paths"]["/api/v1/orders"]["post"]
    assert order["summary"] == "Order"
    assert order["x-idempotency-policy"] == "REQUIRED_A"
    assert order["x-idempotency-retention"] == {"class": "nightly", "seconds": 129600}
    assert {"jwt": []} in order["security"]
    assert "/api/v1/orders/by-idempotency-key/{key}/output" in document["paths"]
    assert "502" in document["paths"]["/reports"]["post"]["responses"]
    # What belongs to the app is asked of no service behind.
    assert "502" not in document["paths"]["/app"]["post"]["responses"]


def test_no_store_is_made_and_no_secret_is_told(oncekey: Run, tmp_path: Path) -> None:
    before = set(tmp_path.iterdir())
    assert "ssss" not in json.dumps(printed(oncekey))
    assert set(tmp_path.iterdir()) == before


def test_yaml_says_the_same(oncekey: Run) -> None:
    done = oncekey("openapi", "--yaml")
    assert yaml.safe_load(done.stdout) == printed(oncekey)
    assert "&id" not in done.stdout


@pytest.mark.parametrize("name", ["orders.json", "orders.yaml"])
def test_a_document_is_annotated(oncekey: Run, name: str) -> None:
    told = "no route covers DELETE /api/v1/orders/{orderId}\n"
    document = printed(oncekey, "--upstream", "orders", "--document", name, told=told)
    paths = document["paths"]
    assert paths["/api/v1/orders"]["post"]["x-idempotency-policy"] == "REQUIRED_A"
    assert paths["/api/v1/orders/{orderId}"]["get"]["x-idempotency-policy"] == "PROHIBITED"
    shown = ORDERS["paths"]["/api/v1/orders/{orderId}"]["delete"]  # type: ignore[index]
    assert paths["/api/v1/orders/{orderId}"]["delete"] == shown
    assert document["info"] == ORDERS["info"]


def test_only_the_routes_of_the_upstream_count(oncekey: Run, tmp_path: Path) -> None:
    operation = {"responses": {"202": {"description": "On its way."}}}
    paths = {"/reports": {"post": operation}, "/api/v1/orders": {"post": operation}}
    document = {**ORDERS, "servers": [{"url": "/base"}], "paths": paths}
    (tmp_path / "reports.json").write_text(json.dumps(document))
    found = printed(
        oncekey,
        *("--upstream", "reports", "--document", "reports.json"),
        told="no route covers POST /base/api/v1/orders\n",
    )
    assert found["paths"]["/reports"]["post"]["x-idempotency-policy"] == "ACCEPTED"
    assert found["paths"]["/api/v1/orders"]["post"] == operation


class Serving(BaseHTTPRequestHandler):
    answers: dict[str, tuple[int, bytes]]

    def do_GET(self) -> None:
        status, body = self.answers[self.path]
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
        pass


@contextmanager
def serving(**answers: tuple[int, bytes]) -> Iterator[str]:
    kind = type("Answers", (Serving,), {"answers": {f"/{k}": v for k, v in answers.items()}})
    server = HTTPServer(("127.0.0.1", 0), kind)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_document_is_fetched(oncekey: Run) -> None:
    told = "no route covers DELETE /api/v1/orders/{orderId}\n"
    with serving(orders=(200, json.dumps(ORDERS).encode())) as url:
        document = printed(oncekey, "--document", f"{url}/orders", told=told)
    assert document["paths"]["/api/v1/orders"]["post"]["x-idempotency-policy"] == "REQUIRED_A"


def test_an_address_that_answers_otherwise_is_refused(oncekey: Run) -> None:
    with serving(gone=(410, b"gone"), page=(200, b"<html>: [")) as url:
        assert "410" in refused(oncekey, "--document", f"{url}/gone")
        assert "neither JSON nor YAML" in refused(oncekey, "--document", f"{url}/page")
    assert "cannot be read" in refused(oncekey, "--document", f"{url}/closed")


def test_an_upstream_without_its_document_is_wrong_usage(oncekey: Run) -> None:
    done = oncekey("openapi", "--upstream", "orders")
    assert done.returncode == 2
    assert "--document" in done.stderr


@pytest.mark.parametrize(
    "words, told",
    [
        (("--upstream", "order", "--document", "orders.json"), "there are: orders, reports"),
        (("--document", "nothing.json"), "nothing.json cannot be read: No such file"),
        (("--document", "."), "cannot be read"),
        (("--document", "broken.json"), "broken.json is not JSON"),
        (("--document", "swagger.json"), "OpenAPI 3.0 or 3.1"),
        (("--document", "binary"), "not UTF-8"),
        (("--document", "deep.json"), "nested too deeply"),
        (("--document", "laughs.yaml"), "parts"),
        (("--document", "circle.yaml"), "nested too deeply"),
    ],
)
def test_what_cannot_be_used_is_told_in_one_line(
    oncekey: Run, tmp_path: Path, words: tuple[str, ...], told: str
) -> None:
    (tmp_path / "broken.json").write_text('{"openapi": ')
    (tmp_path / "swagger.json").write_text('{"swagger": "2.0"}')
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    (tmp_path / "deep.json").write_text("[" * 500 + "]" * 500)
    (tmp_path / "circle.yaml").write_text("a: &a [*a]")
    levels = [f"x{each}: &x{each} [{', '.join([f'*x{each - 1}'] * 9)}]" for each in range(1, 9)]
    (tmp_path / "laughs.yaml").write_text("\n".join(["x0: &x0 [1]", *levels]))
    error = refused(oncekey, *words)
    assert told in error
    assert error.startswith("error: ")


def test_a_document_that_is_too_large_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "LARGEST", 10)
    (tmp_path / "large.json").write_text('"0123456789"')
    with pytest.raises(Failure, match="larger than 10 bytes"):
        documents.read_document(str(tmp_path / "large.json"))
    with (
        serving(large=(200, b'"0123456789"')) as url,
        pytest.raises(Failure, match="larger than 10 bytes"),
    ):
        documents.read_document(f"{url}/large")


def test_statuses_that_yaml_takes_for_numbers_are_text_again(oncekey: Run, tmp_path: Path) -> None:
    (tmp_path / "orders.yaml").write_text(
        "openapi: 3.1.0\n"
        "info: {title: Orders, version: 2026-01-31}\n"
        "paths:\n"
        "  /api/v1/orders:\n"
        "    post:\n"
        "      responses:\n"
        "        201: {description: Made.}\n"
    )
    document = printed(oncekey, "--document", "orders.yaml")
    assert document["info"]["version"] == "2026-01-31"
    assert "headers" in document["paths"]["/api/v1/orders"]["post"]["responses"]["201"]
