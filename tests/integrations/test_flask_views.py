"""Flask: views of every kind, and everything around them that must stay as it is."""

import io
from collections.abc import Iterator
from pathlib import Path

import flask
import pytest
from flask import Flask, abort, g, request, session
from flask.views import MethodView
from werkzeug.test import TestResponse

from oncekey import Ledger, TerminalError
from oncekey.flask import Idempotency, idempotent
from tests.fixtures.http.asking import KEY, replayed
from tests.fixtures.http.asking import ask_flask as post


@pytest.fixture
def app() -> Flask:
    app = Flask(__name__)
    app.secret_key = "throwaway"
    return app


@pytest.fixture
def installed(app: Flask, ledger: Ledger) -> Flask:
    Idempotency(app, ledger=ledger)
    return app


class TestViews:
    def test_the_endpoint_is_the_rule(self, installed: Flask) -> None:
        seen = []
        blueprint = flask.Blueprint("shop", __name__, url_prefix="/shop")

        @blueprint.post("/orders/<int:id>/pay")
        def pay(id: int) -> str:  # noqa: A002
            seen.append(request.environ["oncekey.claim"].operation.ref.scope.endpoint)
            return "paid"

        installed.register_blueprint(blueprint)
        post(installed, "/shop/orders/7/pay")
        assert seen == ["POST /shop/orders/<int:id>/pay"]
        assert post(installed, "/shop/orders/8/pay").status_code == 422

    def test_views_of_classes(self, installed: Flask, runs: list[str]) -> None:
        class Orders(MethodView):
            @idempotent(required=True)
            def post(self) -> str:
                runs.append("post")
                return "posted"

            def put(self) -> str:
                runs.append("put")
                return "put"

        installed.add_url_rule("/orders", view_func=Orders.as_view("orders"))

        client = installed.test_client()
        assert client.post("/orders").status_code == 400
        assert client.put("/orders").text == "put"
        post(installed)
        assert replayed(post(installed))
        assert runs == ["put", "post"]

    def test_views_that_are_async(self, installed: Flask, runs: list[int]) -> None:
        @installed.post("/orders")
        @idempotent(required=True)
        async def orders() -> str:
            runs.append(1)
            return "ordered"

        assert post(installed).text == "ordered"
        assert replayed(post(installed))
        assert runs == [1]

    def test_an_error_of_http_is_an_answer(self, installed: Flask) -> None:
        @installed.post("/orders")
        def orders() -> str:
            abort(404)

        first, second = post(installed), post(installed)
        assert (first.status_code, second.status_code) == (404, 404)
        assert second.data == first.data
        assert replayed(second)

    def test_an_error_that_the_app_handles_is_an_answer(self, installed: Flask) -> None:
        @installed.errorhandler(ValueError)
        def handle(error: ValueError) -> tuple[str, int]:
            return f"handled: {error}", 422

        @installed.post("/orders")
        def orders() -> str:
            raise ValueError("no")

        post(installed)
        second = post(installed)
        assert (second.status_code, second.text) == (422, "handled: no")
        assert replayed(second)

    def test_a_terminal_error(self, installed: Flask) -> None:
        @installed.post("/orders")
        def orders() -> str:
            raise TerminalError("stolen", status=402)

        first, second = post(installed), post(installed)
        assert first.json is not None
        assert (first.status_code, first.json["detail"]) == (402, "stolen")
        assert replayed(second)

    def test_paths_and_methods_that_lead_nowhere(self, installed: Flask) -> None:
        installed.get("/orders")(lambda: "listed")
        assert post(installed).status_code == 405
        assert post(installed, "/nothing").status_code == 404

    def test_forms_and_files(self, installed: Flask) -> None:
        # Extensions against forged requests read the form first, as this does.
        installed.before_request(lambda: request.form.get("csrf") and None)

        @installed.post("/orders")
        def orders() -> str:
            return request.form["note"] + request.files["file"].read().decode()

        def upload(content: bytes) -> TestResponse:
            file = (io.BytesIO(content), "order.txt")
            return post(installed, data={"note": "n", "file": file})

        assert upload(b"one").text == "none"
        assert replayed(upload(b"one"))
        assert upload(b"two").status_code == 422

    def test_a_stream_with_the_request_around_it(self, installed: Flask) -> None:
        @installed.post("/orders")
        def orders() -> flask.Response:
            def chunks() -> Iterator[str]:
                yield request.method
                yield request.path

            return flask.Response(flask.stream_with_context(chunks()))

        first = post(installed)
        assert first.text == "POST/orders"
        assert first.headers["Idempotency-Stored"] == "false"
        assert post(installed).status_code == 409

    def test_a_file_that_is_sent(self, installed: Flask, tmp_path: Path) -> None:
        file = tmp_path / "order.txt"
        file.write_text("ordered")

        @installed.post("/orders")
        def orders() -> flask.Response:
            return flask.send_file(file)

        assert post(installed).text == "ordered"
        file.write_text("changed")
        second = post(installed)
        assert (second.text, replayed(second)) == ("ordered", True)


class TestSurroundings:
    def test_hooks_context_and_teardown(self, installed: Flask, runs: list[str]) -> None:
        installed.before_request(lambda: setattr(g, "user", "ada"))
        installed.teardown_request(lambda error: runs.append(f"teardown {g.user}"))

        @installed.after_request
        def count(response: flask.Response) -> flask.Response:
            runs.append(f"after {response.status_code}")
            response.headers["X-User"] = g.user
            return response

        @installed.post("/orders")
        def orders() -> str:
            runs.append(f"view {g.user}")
            return "ordered"

        first, second = post(installed), post(installed)
        assert first.headers["X-User"] == second.headers["X-User"] == "ada"
        assert runs == ["view ada", "after 200", "teardown ada", "after 200", "teardown ada"]

    def test_whoever_may_not_come_in_gets_no_replay(self, installed: Flask) -> None:
        installed.before_request(lambda: None if "X-Ticket" in request.headers else abort(401))
        installed.post("/orders")(lambda: "ordered")

        ticket = {**KEY, "X-Ticket": "1"}
        assert post(installed).status_code == 401
        assert post(installed, headers=ticket).text == "ordered"
        assert replayed(post(installed, headers=ticket))
        assert post(installed).status_code == 401

    def test_sessions_work_on(self, installed: Flask) -> None:
        @installed.before_request
        def count() -> None:
            session["visits"] = session.get("visits", 0) + 1

        @installed.post("/orders")
        def orders() -> str:
            session["ordered"] = True
            return str(session["visits"])

        client = installed.test_client()
        with client.session_transaction() as given:
            given["user_id"] = 7
        first = client.post("/orders", headers=KEY)
        second = client.post("/orders", headers=KEY)
        # The session changed in between, and with it its cookie; the user did not.
        assert (first.text, second.text, replayed(second)) == ("1", "1", True)
        with client.session_transaction() as kept:
            assert dict(kept) == {"user_id": 7, "visits": 2, "ordered": True}

    def test_users_have_keys_of_their_own(self, installed: Flask, runs: list[str]) -> None:
        @installed.post("/orders")
        def orders() -> str:
            runs.append(request.environ["oncekey.claim"].operation.ref.scope.namespace)
            return "ordered"

        for user in (7, 8, 7):
            client = installed.test_client()
            with client.session_transaction() as given:
                given["_user_id"] = user
            client.post("/orders", headers=KEY)
        assert runs == ["t-default:_tenant:user:7", "t-default:_tenant:user:8"]

    def test_the_application_may_say_who_is_calling(self, app: Flask, ledger: Ledger) -> None:
        def whose(request: flask.Request) -> str:
            return f"user:{g.user}"

        Idempotency(app, ledger=ledger, identity=whose)
        app.before_request(lambda: setattr(g, "user", request.headers["X-User"]))
        app.post("/orders")(lambda: g.user)

        assert post(app, headers={**KEY, "X-User": "ada"}).text == "ada"
        assert post(app, headers={**KEY, "X-User": "bob"}).text == "bob"
        assert replayed(post(app, headers={**KEY, "X-User": "ada"}))

    def test_a_hook_that_fails_lets_the_view_run_again(
        self, installed: Flask, runs: list[int]
    ) -> None:
        @installed.after_request
        def fail(response: flask.Response) -> flask.Response:
            if len(runs) == 1:
                raise ValueError("the hook fails")
            return response

        @installed.post("/orders")
        def orders() -> str:
            runs.append(1)
            return "ordered"

        assert post(installed).status_code == 500
        assert post(installed).text == "ordered"
        assert replayed(post(installed))

    def test_a_middleware_in_front_holds_the_claim(self, installed: Flask, ledger: Ledger) -> None:
        from oncekey.wsgi import IdempotencyMiddleware

        installed.post("/orders")(lambda: "ordered")
        front = IdempotencyMiddleware(installed.wsgi_app, ledger=ledger)
        installed.wsgi_app = front  # type: ignore[method-assign,assignment]

        assert post(installed).text == "ordered"
        assert replayed(post(installed))
