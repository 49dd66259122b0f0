"""Flask: the extension, its configuration, and views that bring their ledger along."""

from pathlib import Path
from typing import Any

import flask
import pytest
from flask import Flask, request

from oncekey import ConfigurationError, Ledger
from oncekey.flask import Idempotency, idempotent
from tests.fixtures.http.asking import KEY, replayed
from tests.fixtures.http.asking import ask_flask as post


@pytest.fixture
def app() -> Flask:
    app = Flask(__name__)
    app.secret_key = "throwaway"
    return app


class TestInstalling:
    def test_every_unsafe_route(self, app: Flask, ledger: Ledger, runs: list[int]) -> None:
        Idempotency(app, ledger=ledger)

        @app.route("/orders", methods=["GET", "POST"])
        def orders() -> str:
            runs.append(1)
            return str(len(runs))

        assert [post(app).text, post(app).text] == ["1", "1"]
        assert app.test_client().get("/orders", headers=KEY).text == "2"

    def test_only_marked_routes(self, app: Flask, ledger: Ledger, runs: list[int]) -> None:
        Idempotency(app, ledger=ledger, only_marked=True)

        @app.post("/plain")
        def plain() -> str:
            runs.append(1)
            return str(len(runs))

        @app.post("/orders")
        @idempotent
        def orders() -> str:
            runs.append(1)
            return str(len(runs))

        assert [post(app, "/plain").text, post(app, "/plain").text] == ["1", "2"]
        assert [post(app).text, post(app).text] == ["3", "3"]

    def test_options_of_a_view_go_before_those_of_the_app(self, app: Flask, ledger: Ledger) -> None:
        Idempotency(app, ledger=ledger, required=True)

        @app.post("/orders")
        def orders() -> str:
            return "ordered"

        @app.post("/notes")
        @idempotent(required=False)
        def notes() -> str:
            return "noted"

        assert post(app, headers={}).status_code == 400
        assert post(app, "/notes", headers={}).text == "noted"

    def test_later_with_init_app(self, app: Flask, ledger: Ledger) -> None:
        extension = Idempotency(ledger=ledger)
        extension.init_app(app)
        app.post("/orders")(lambda: "ordered")

        assert not replayed(post(app))
        assert replayed(post(app))
        with pytest.raises(ConfigurationError, match="already"):
            extension.init_app(app)

    def test_from_the_configuration(self, app: Flask, tmp_path: Path) -> None:
        app.config |= {
            "ONCEKEY_URL": f"sqlite:///{tmp_path}/oncekey.db",
            "ONCEKEY_REQUIRED": True,
            "ONCEKEY_MAX_REQUEST_BODY": 10,
        }
        Idempotency(app)
        app.post("/orders")(lambda: "ordered")

        assert post(app, headers={}).status_code == 400
        assert post(app, data=b"x" * 11).status_code == 413
        post(app)
        assert replayed(post(app))
        assert (tmp_path / "oncekey.db").exists()

    def test_a_setting_nobody_knows(self, app: Flask) -> None:
        app.config["ONCEKEY_REQIRED"] = True
        with pytest.raises(ConfigurationError, match="did you mean ONCEKEY_REQUIRED"):
            Idempotency(app)

    def test_without_a_ledger(self, app: Flask) -> None:
        with pytest.raises(ConfigurationError, match="ONCEKEY_URL"):
            Idempotency(app)


class TestAlone:
    """Views that bring their ledger along, without the extension."""

    def test_a_view_with_a_ledger(self, app: Flask, ledger: Ledger, runs: list[int]) -> None:
        @app.post("/orders")
        @idempotent(ledger=ledger, required=True)
        def orders() -> tuple[str, int]:
            runs.append(1)
            return request.get_data(as_text=True), 201

        assert post(app, headers={}).status_code == 400
        first, second = post(app, data="x"), post(app, data="x")
        assert (first.text, second.text) == ("x", "x")
        assert (second.status_code, replayed(second)) == (201, True)
        assert post(app, data="y").status_code == 422
        assert len(runs) == 1

    def test_a_view_without_a_ledger_is_not_called(self, app: Flask, runs: list[int]) -> None:
        @app.post("/orders")
        @idempotent
        def orders() -> str:
            runs.append(1)
            return "ordered"

        app.testing = True
        for headers in (KEY, {}):
            with pytest.raises(ConfigurationError, match="orders"):
                post(app, headers=headers)
        app.testing = False
        assert post(app).status_code == 500
        assert runs == []

    def test_hooks_run_before_the_answer_is_stored(self, app: Flask, ledger: Ledger) -> None:
        @app.after_request
        def stamp(response: flask.Response) -> flask.Response:
            response.headers.add("X-Stamp", "once")
            return response

        @app.post("/orders")
        @idempotent(ledger=ledger)
        def orders() -> str:
            return "ordered"

        first, second = post(app), post(app)
        assert replayed(second)
        assert first.headers.getlist("X-Stamp") == second.headers.getlist("X-Stamp") == ["once"]

    def test_a_form_that_was_read_before_is_an_error(self, app: Flask, ledger: Ledger) -> None:
        app.before_request(lambda: request.form.get("csrf") and None)

        @app.post("/orders")
        @idempotent(ledger=ledger)
        def orders() -> str:
            return request.form["a"]

        app.testing = True
        with pytest.raises(ConfigurationError, match="form was read"):
            post(app, data={"a": "1"})

    def test_json_that_was_read_before(self, app: Flask, ledger: Ledger) -> None:
        app.before_request(lambda: request.get_json() and None)

        @app.post("/orders")
        @idempotent(ledger=ledger)
        def orders() -> dict[str, Any]:
            found: dict[str, Any] = request.get_json()
            return found

        assert post(app, json={"a": 1}).json == {"a": 1}
        assert replayed(post(app, json={"a": 1}))
        assert post(app, json={"a": 2}).status_code == 422

    def test_calls_from_code_are_plain_calls(self, app: Flask) -> None:
        @idempotent
        def orders() -> str:
            return "ordered"

        assert orders() == "ordered"

    def test_a_failing_view_runs_again(self, app: Flask, ledger: Ledger, runs: list[int]) -> None:
        @app.post("/orders")
        @idempotent(ledger=ledger)
        def orders() -> str:
            runs.append(1)
            if len(runs) == 1:
                raise ValueError("no")
            return "ordered"

        app.testing = True
        with pytest.raises(ValueError, match="no"):
            post(app)
        assert post(app).text == "ordered"
