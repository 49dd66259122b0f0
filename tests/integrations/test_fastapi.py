"""FastAPI: routes with all that FastAPI does for them, each run once for its key."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Annotated, Any

import httpx
import pytest
from fastapi import (
    APIRouter,
    BackgroundTasks,
    Depends,
    FastAPI,
    Form,
    HTTPException,
    Request,
    Response,
    UploadFile,
)
from fastapi.responses import JSONResponse, StreamingResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.requests import HTTPConnection
from starlette.routing import Route

import oncekey
from oncekey import ConfigurationError, Ledger, TerminalError
from oncekey.asgi import IdempotencyMiddleware
from oncekey.fastapi import Idempotency, check, idempotent

KEY = {"Idempotency-Key": "k"}


class Order(BaseModel):
    amount: int


class Receipt(BaseModel):
    run: int
    secret: str = "shown to nobody"


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    ledger = oncekey.open("memory://")
    yield ledger
    ledger.close()


@pytest.fixture
def app() -> FastAPI:
    return FastAPI()


@pytest.fixture
def runs() -> list[Any]:
    return []


def post(app: Any, path: str = "/orders", method: str = "POST", **options: Any) -> httpx.Response:
    async def send() -> httpx.Response:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://shop") as client:
            return await client.request(method, path, **{"headers": KEY, **options})

    return asyncio.run(send())


def replayed(answer: httpx.Response) -> bool:
    return answer.headers.get("idempotent-replayed") == "true"


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


@pytest.fixture
def idem(ledger: Ledger) -> Any:
    return idempotent(ledger=ledger)


class TestWhatFastApiDoes:
    def test_functions_of_both_colours(self, app: FastAPI, idem: Any, runs: list[str]) -> None:
        @app.post("/blocking")
        @idem
        def blocking(order: Order) -> str:
            runs.append("blocking")
            return "blocking"

        @app.post("/awaiting")
        @idem
        async def awaiting(order: Order) -> str:
            runs.append("awaiting")
            return "awaiting"

        for path in ("/blocking", "/awaiting", "/blocking", "/awaiting"):
            assert post(app, path, json={"amount": 1}).json() == path[1:]
        assert runs == ["blocking", "awaiting"]

    def test_dependencies_run_once_and_end(self, app: FastAPI, idem: Any, runs: list[str]) -> None:
        async def session() -> AsyncIterator[str]:
            runs.append("open")
            yield "session"
            runs.append("close")

        def limit() -> None:
            runs.append("limit")

        @app.post("/orders", dependencies=[Depends(limit)])
        @idem
        async def create(found: Annotated[str, Depends(session)]) -> str:
            runs.append("run")
            return found

        assert post(app).json() == "session"
        assert replayed(post(app))
        assert runs == ["limit", "open", "run", "close"]

    def test_the_response_model_decides_what_is_stored(self, app: FastAPI, idem: Any) -> None:
        @app.post("/orders", response_model=Receipt, response_model_exclude={"secret"})
        @idem
        async def create() -> Any:
            return {"run": 1, "more": "dropped"}

        assert post(app).json() == post(app).json() == {"run": 1}

    def test_responses_of_the_endpoints_own(self, app: FastAPI, idem: Any) -> None:
        @app.post("/orders")
        @idem
        async def create(response: Response) -> Response:
            return JSONResponse({"a": 1}, 202, headers={"X-Own": "yes"})

        @app.post("/headers")
        @idem
        async def headers(response: Response) -> str:
            response.headers["X-Set"] = "yes"
            response.set_cookie("c", "1")
            response.status_code = 203
            return "set"

        second = [post(app), post(app)][1]
        assert (second.status_code, second.headers["x-own"], replayed(second)) == (202, "yes", True)
        first, second = post(app, "/headers"), post(app, "/headers")
        assert "set-cookie" in first.headers
        assert "set-cookie" not in second.headers
        assert (second.status_code, second.headers["x-set"]) == (203, "yes")

    def test_background_tasks_run_once_after_the_answer(
        self, app: FastAPI, idem: Any, runs: list[str], ledger: Ledger
    ) -> None:
        @app.post("/orders")
        @idem
        async def create(tasks: BackgroundTasks, request: Request) -> str:
            ref = request.scope["oncekey.claim"].operation.ref

            async def mail() -> None:
                record = await ledger.apeek(ref)
                assert record is not None
                runs.append(record.state.name)

            tasks.add_task(mail)
            return "ordered"

        post(app)
        assert replayed(post(app))
        assert runs == ["SUCCEEDED"]

    def test_errors_of_http(self, app: FastAPI, idem: Any, runs: list[int]) -> None:
        @app.post("/orders/{status}")
        @idem
        async def create(status: int) -> None:
            runs.append(status)
            raise HTTPException(status, "no", headers={"X-Why": "no"})

        first, second = post(app, "/orders/404"), post(app, "/orders/404")
        assert (first.status_code, second.json(), replayed(second)) == (404, {"detail": "no"}, True)
        assert second.headers["x-why"] == "no"
        assert [post(app, "/orders/429", headers={"Idempotency-Key": "x"}).status_code] == [429]
        assert not replayed(post(app, "/orders/429", headers={"Idempotency-Key": "x"}))
        assert runs == [404, 429, 429]

    def test_errors_that_the_app_handles(self, app: FastAPI, idem: Any) -> None:
        @app.exception_handler(LookupError)
        async def handle(request: Request, error: LookupError) -> Response:
            return JSONResponse({"lost": str(error)}, 410)

        @app.post("/orders")
        @idem
        async def create() -> None:
            raise LookupError("it")

        second = [post(app), post(app)][1]
        assert (second.status_code, second.json(), replayed(second)) == (410, {"lost": "it"}, True)

    def test_errors_that_nobody_handles(self, app: FastAPI, idem: Any, runs: list[int]) -> None:
        @app.post("/orders")
        @idem
        async def create() -> str:
            runs.append(1)
            if len(runs) == 1:
                raise ValueError("no")
            return "ordered"

        with pytest.raises(ValueError, match="no"):
            post(app)
        assert post(app).json() == "ordered"

    def test_terminal_errors(self, app: FastAPI, idem: Any) -> None:
        @app.post("/orders")
        @idem
        def create() -> None:
            raise TerminalError("stolen", status=402)

        first, second = post(app), post(app)
        assert (first.status_code, first.json()["detail"]) == (402, "stolen")
        assert replayed(second)

    def test_requests_that_do_not_validate(self, app: FastAPI, idem: Any, runs: list[int]) -> None:
        @app.post("/orders")
        @idem
        async def create(order: Order) -> None:
            runs.append(1)

        first = post(app, json={"amount": "many"})
        assert first.status_code == 422
        assert first.json()["detail"][0]["loc"] == ["body", "amount"]
        assert replayed(post(app, json={"amount": "many"}))
        assert post(app, content=b"{", headers={"Idempotency-Key": "j"}).status_code == 422
        assert runs == []

    def test_forms_and_files(self, app: FastAPI, idem: Any) -> None:
        @app.post("/files")
        @idem
        async def upload(file: UploadFile, note: Annotated[str, Form()]) -> list[Any]:
            return [note, file.filename, (await file.read()).decode()]

        @app.post("/forms")
        @idem
        def form(note: Annotated[str, Form()]) -> str:
            return note

        def send(content: bytes) -> httpx.Response:
            return post(app, "/files", files={"file": ("f.txt", content)}, data={"note": "n"})

        assert send(b"one").json() == ["n", "f.txt", "one"]
        assert replayed(send(b"one"))
        assert send(b"two").json()["title"] == "This key was used with another request"
        assert post(app, "/forms", data={"note": "n"}).json() == "n"
        assert replayed(post(app, "/forms", data={"note": "n"}))

    def test_streams(self, app: FastAPI, idem: Any) -> None:
        @app.post("/orders")
        @idem
        async def create() -> Response:
            return StreamingResponse(iter([b"one", b"two"]))

        @app.post("/lines")
        @idem
        async def lines() -> AsyncIterator[Order]:
            yield Order(amount=1)
            yield Order(amount=2)

        for path in ("/orders", "/lines"):
            first = post(app, path)
            assert first.headers["idempotency-stored"] == "false"
            assert len(first.content) > 5
            assert post(app, path).status_code == 409

    def test_connections_that_the_endpoint_asks_for(self, app: FastAPI, idem: Any) -> None:
        @app.post("/orders")
        @idem
        async def create(connection: HTTPConnection, request: Request, **more: Any) -> list[str]:
            return [connection.url.path, request.method]

        assert post(app, params={"more": 1}).json() == ["/orders", "POST"]

    def test_routes_of_another_class(self, app: FastAPI, idem: Any, runs: list[str]) -> None:
        class Timed(APIRoute):
            def get_route_handler(self) -> Callable[[Request], Any]:
                handler = super().get_route_handler()

                async def timed(request: Request) -> Response:
                    runs.append("timed")
                    response: Response = await handler(request)
                    response.headers["X-Timed"] = "yes"
                    return response

                return timed

        router = APIRouter(route_class=Timed)

        @router.post("/orders")
        @idem
        async def create() -> str:
            return "ordered"

        app.include_router(router)
        first, second = post(app), post(app)
        assert first.headers["x-timed"] == second.headers["x-timed"] == "yes"
        assert replayed(second)
        assert runs == ["timed"]

    def test_tests_may_override_dependencies(self, app: FastAPI, idem: Any) -> None:
        def user() -> str:
            return "ada"

        @app.post("/orders")
        @idem
        async def create(name: Annotated[str, Depends(user)]) -> str:
            return name

        app.dependency_overrides[user] = lambda: "bob"
        assert post(app).json() == "bob"
