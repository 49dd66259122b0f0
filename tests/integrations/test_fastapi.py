"""FastAPI: routes that bring their ledger along, and apps that have one for all of them."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from fastapi import (
    APIRouter,
    FastAPI,
    Request,
    Response,
)
from pydantic import BaseModel
from starlette.routing import Route

from oncekey import ConfigurationError, Ledger
from oncekey.asgi import IdempotencyMiddleware
from oncekey.fastapi import Idempotency, check, idempotent
from tests.fixtures.http.asking import KEY, replayed
from tests.fixtures.http.asking import ask_asgi as post


class Order(BaseModel):
    amount: int


class Receipt(BaseModel):
    run: int
    secret: str = "shown to nobody"


@pytest.fixture
def app() -> FastAPI:
    return FastAPI()


class TestAlone:
    """Routes that bring their ledger along."""

    def test_a_route_with_a_ledger(self, app: FastAPI, ledger: Ledger, runs: list[int]) -> None:
        @app.post("/orders", status_code=201)
        @idempotent(ledger=ledger, required=True)
        async def create(order: Order) -> dict[str, int]:
            runs.append(order.amount)
            return {"run": len(runs)}

        assert post(app, json={"amount": 1}, headers={}).status_code == 400
        first, second = post(app, json={"amount": 1}), post(app, json={"amount": 1})
        assert (first.status_code, first.json()) == (201, {"run": 1})
        assert (second.status_code, second.json(), replayed(second)) == (201, {"run": 1}, True)
        assert post(app, json={"amount": 2}).status_code == 422
        assert runs == [1]

    @pytest.mark.parametrize("headers", [KEY, {}])
    def test_a_route_without_a_ledger_does_not_run(
        self, app: FastAPI, runs: list[int], headers: dict[str, str]
    ) -> None:
        @app.post("/orders")
        @idempotent
        async def create() -> None:
            runs.append(1)

        with pytest.raises(ConfigurationError, match="POST /orders"):
            post(app, headers=headers)
        with pytest.raises(ConfigurationError, match="POST /orders"):
            check(app)
        assert runs == []

    def test_a_route_that_fastapi_does_not_build_does_not_run(
        self, app: FastAPI, ledger: Ledger, runs: list[int]
    ) -> None:
        @idempotent(ledger=ledger)
        async def create(request: Request) -> Response:
            runs.append(1)
            return Response()

        app.router.routes.append(Route("/orders", create, methods=["POST"]))
        with pytest.raises(ConfigurationError, match="create"):
            post(app)
        assert runs == []

    def test_calls_from_code_are_plain_calls(self, ledger: Ledger) -> None:
        @idempotent(ledger=ledger)
        async def create(order: Order) -> int:
            return order.amount

        @idempotent(ledger=ledger)
        def remove(number: int) -> int:
            return number

        assert asyncio.run(create(Order(amount=3))) == 3
        assert remove(4) == 4

    def test_a_route_of_one_function_under_two_paths(
        self, app: FastAPI, ledger: Ledger, runs: list[str]
    ) -> None:
        @app.post("/a")
        @app.post("/b")
        @idempotent(ledger=ledger)
        async def create(request: Request) -> str:
            runs.append(request.scope["oncekey.claim"].operation.ref.scope.endpoint)
            return request.url.path

        assert [post(app, path).json() for path in ("/a", "/b", "/a", "/b")] == ["/a", "/b"] * 2
        assert runs == ["POST /a", "POST /b"]

    def test_another_decorator_above(self, app: FastAPI, ledger: Ledger, runs: list[int]) -> None:
        import functools

        def counted(function: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
            @functools.wraps(function)
            async def counting(*args: Any, **kwargs: Any) -> Any:
                runs.append(1)
                return await function(*args, **kwargs)

            return counting

        @app.post("/orders")
        @counted
        @idempotent(ledger=ledger)
        async def create(order: Order) -> int:
            return order.amount

        assert post(app, json={"amount": 7}).json() == 7
        assert replayed(post(app, json={"amount": 7}))
        assert runs == [1]


class TestInstalled:
    def test_marked_routes_only(self, app: FastAPI, ledger: Ledger, runs: list[str]) -> None:
        Idempotency(app, ledger=ledger)

        @app.post("/orders")
        @idempotent
        async def create() -> int:
            runs.append("order")
            return len(runs)

        @app.post("/plain")
        async def plain() -> int:
            runs.append("plain")
            return len(runs)

        assert [post(app).json(), post(app).json()] == [1, 1]
        assert [post(app, "/plain").json(), post(app, "/plain").json()] == [2, 3]
        check(app)

    def test_options_of_a_route_go_before_those_of_the_app(
        self, app: FastAPI, ledger: Ledger
    ) -> None:
        @app.post("/orders")
        @idempotent
        async def create() -> str:
            return "ordered"

        @app.post("/notes")
        @idempotent(required=False)
        async def note() -> str:
            return "noted"

        Idempotency(app, ledger=ledger, required=True)
        assert post(app, headers={}).status_code == 400
        assert post(app, "/notes", headers={}).json() == "noted"

    def test_included_routers_mounted_apps_and_late_routes(
        self, app: FastAPI, ledger: Ledger, runs: list[str]
    ) -> None:
        Idempotency(app, ledger=ledger)

        async def pay(order_id: int, request: Request) -> int:
            runs.append(request.scope["oncekey.claim"].operation.ref.scope.endpoint)
            return order_id

        inner, outer, mounted = APIRouter(), APIRouter(prefix="/outer"), FastAPI()
        inner.post("/orders/{order_id}/pay")(idempotent(pay))
        outer.include_router(inner, prefix="/inner")
        app.include_router(outer, prefix="/api")
        app.include_router(inner, prefix="/again")
        mounted.post("/orders/{order_id}/pay")(idempotent(pay))
        app.mount("/mounted", mounted)
        paths = ["/api/outer/inner", "/again", "/mounted"]
        for path in paths:
            assert post(app, f"{path}/orders/7/pay").json() == 7
            assert replayed(post(app, f"{path}/orders/7/pay"))
        outer.post("/late/{order_id:int}")(idempotent(pay))
        app.post("/orders/{order_id}/pay")(idempotent(pay))
        assert post(app, "/orders/7/pay").json() == 7
        assert runs == [
            "POST /api/outer/inner/orders/{order_id}/pay",
            "POST /again/orders/{order_id}/pay",
            "POST /mounted/orders/{order_id}/pay",
            "POST /orders/{order_id}/pay",
        ]

    def test_the_application_may_say_who_is_calling(self, app: FastAPI, ledger: Ledger) -> None:
        async def whose(request: Request) -> str:
            return f"user:{request.headers['x-user']}"

        Idempotency(app, ledger=ledger, identity=whose)

        @app.post("/orders")
        @idempotent
        async def create(request: Request) -> str:
            namespace: str = request.scope["oncekey.claim"].operation.ref.scope.namespace
            return namespace

        ada, bob = {**KEY, "X-User": "ada"}, {**KEY, "X-User": "bob"}
        assert post(app, headers=ada).json() == "t-default:_tenant:user:ada"
        assert post(app, headers=bob).json() == "t-default:_tenant:user:bob"
        assert replayed(post(app, headers=ada))

    def test_a_middleware_in_front_holds_the_claim(
        self, app: FastAPI, ledger: Ledger, runs: list[int]
    ) -> None:
        app.add_middleware(IdempotencyMiddleware, ledger=ledger)

        @app.post("/orders")
        @idempotent(ledger=ledger, required=True)
        async def create() -> None:
            runs.append(1)

        assert post(app).status_code == 200
        assert replayed(post(app))
        assert post(app, headers={}).status_code == 400
        assert runs == [1]
