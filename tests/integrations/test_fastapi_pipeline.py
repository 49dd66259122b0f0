"""FastAPI: a marked route keeps all that FastAPI does for it, and does it once."""

from collections.abc import AsyncIterator, Callable
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

from oncekey import Ledger, TerminalError
from oncekey.fastapi import idempotent
from tests.fixtures.http.asking import ask_asgi as post
from tests.fixtures.http.asking import replayed


class Order(BaseModel):
    amount: int


class Receipt(BaseModel):
    run: int
    secret: str = "shown to nobody"


@pytest.fixture
def app() -> FastAPI:
    return FastAPI()


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
