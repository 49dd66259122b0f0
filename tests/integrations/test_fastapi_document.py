"""The OpenAPI document says of a marked route what it does."""

from typing import Any

import pytest
from fastapi import APIRouter, FastAPI
from fastapi.responses import RedirectResponse

import oncekey
from oncekey import Ledger
from oncekey.fastapi import Idempotency, idempotent

REPLAY_HEADERS = {
    "Idempotent-Replayed",
    "Original-Request-Id",
    "X-Operation-Id",
    "Idempotency-Expires",
    "Idempotency-Stored",
}


@pytest.fixture
def app() -> FastAPI:
    return FastAPI()


@pytest.fixture
def ledger() -> Ledger:
    return oncekey.open("memory://")


def operation(app: FastAPI, path: str = "/orders") -> dict[str, Any]:
    found: dict[str, Any] = app.openapi()["paths"][path]["post"]
    return found


def key_parameters(found: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for each in found.get("parameters", []) if each["name"] == "Idempotency-Key"]


def test_a_route_alone(app: FastAPI, ledger: Ledger) -> None:
    @app.post("/orders", status_code=201)
    @idempotent(ledger=ledger, required=True)
    async def create(amount: int) -> int:
        return amount

    found = operation(app)
    (key,) = key_parameters(found)

    assert key["in"] == "header"
    assert key["required"] is True
    assert key["description"]
    assert key["schema"]["maxLength"] == 255
    assert key["schema"]["pattern"]
    assert found["responses"]["201"]["headers"].keys() >= REPLAY_HEADERS
    for status in ("400", "409", "422", "503"):
        schema = found["responses"][status]["content"]["application/problem+json"]["schema"]
        assert schema["required"] == ["type", "title", "status", "detail"]
    assert "application/json" in found["responses"]["422"]["content"]
    assert "Retry-After" in found["responses"]["409"]["headers"]
    assert [each["name"] for each in found["parameters"]] == ["amount", "Idempotency-Key"]


def test_a_route_that_is_not_marked(app: FastAPI) -> None:
    @app.post("/orders")
    async def create() -> None: ...

    found = operation(app)
    assert "parameters" not in found
    assert found["responses"].keys() == {"200"}


@pytest.mark.parametrize("first", [True, False], ids=["before", "after"])
def test_what_the_app_says_holds_for_its_routes(app: FastAPI, ledger: Ledger, first: bool) -> None:
    if first:
        Idempotency(app, ledger=ledger, required=True)
    router = APIRouter()

    @router.post("/orders")
    @idempotent
    async def create() -> None: ...

    @router.post("/notes")
    @idempotent(required=False)
    async def note() -> None: ...

    app.include_router(router, prefix="/v1")
    if not first:
        Idempotency(app, ledger=ledger, required=True)

    assert [each["required"] for each in key_parameters(operation(app, "/v1/orders"))] == [True]
    assert [each["required"] for each in key_parameters(operation(app, "/v1/notes"))] == [False]


def test_a_route_where_keys_are_not_allowed(app: FastAPI, ledger: Ledger) -> None:
    @app.post("/orders")
    @idempotent(ledger=ledger, key="prohibited")
    async def create() -> None: ...

    found = operation(app)
    assert key_parameters(found) == []
    assert "400" in found["responses"]
    assert "409" not in found["responses"]


def test_a_route_where_keys_are_not_looked_at(app: FastAPI, ledger: Ledger) -> None:
    @app.post("/orders")
    @idempotent(ledger=ledger, key="ignored")
    async def create() -> None: ...

    found = operation(app)
    assert key_parameters(found) == []
    assert set(found["responses"]) == {"200"}
    assert "headers" not in found["responses"]["200"]


def test_what_the_application_writes_itself_stays(app: FastAPI, ledger: Ledger) -> None:
    extra = {
        "parameters": [{"name": "X-Own", "in": "header", "schema": {"type": "string"}}],
        "responses": {"409": {"description": "Ours"}},
        "x-own": True,
    }

    @app.post("/orders", openapi_extra=extra, responses={410: {"description": "Gone"}})
    @idempotent(ledger=ledger)
    async def create() -> None: ...

    found = operation(app)
    assert {each["name"] for each in found["parameters"]} == {"Idempotency-Key", "X-Own"}
    assert found["responses"]["409"]["description"] == "Ours"
    assert "application/problem+json" in found["responses"]["409"]["content"]
    assert found["responses"]["410"]["description"] == "Gone"
    assert found["x-own"] is True


def test_an_answer_whose_class_has_a_status_of_its_own(app: FastAPI, ledger: Ledger) -> None:
    @app.post("/orders", response_class=RedirectResponse)
    @idempotent(ledger=ledger)
    async def create() -> str:
        return "/orders/1"

    assert operation(app)["responses"]["307"]["headers"].keys() >= REPLAY_HEADERS


def test_the_hidden_parameter_is_not_shown(app: FastAPI, ledger: Ledger) -> None:
    @app.post("/orders")
    @idempotent(ledger=ledger)
    async def create() -> None: ...

    assert "oncekey_connection" not in str(app.openapi())
