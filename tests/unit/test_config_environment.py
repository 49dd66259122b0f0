"""Every setting may come from the environment; a command-line option wins over both."""

from pathlib import Path

import pytest

from oncekey.config import load
from oncekey.core.errors import ConfigurationError


def mistakes(environ: dict[str, str]) -> list[str]:
    with pytest.raises(ConfigurationError) as caught:
        load(None, environ)
    return str(caught.value).splitlines()


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "oncekey.toml"
    file.write_text('[store]\nurl = "memory://"\nlease = "5s"\n')
    settings = load(file, {"ONCEKEY_STORE__URL": "postgresql://db/app"})
    assert (settings.store.url, settings.store.lease) == ("postgresql://db/app", 5.0)


def test_an_option_wins_over_the_environment() -> None:
    settings = load(None, {"ONCEKEY_SERVER__PORT": "1"}, {"server.port": 2})
    assert settings.server.port == 2


def test_a_mistake_in_an_option_names_the_option() -> None:
    with pytest.raises(ConfigurationError, match=r"^--port: server\.port must be between"):
        load(None, {}, {"server.port": 99999})


def test_text_is_read_as_the_kind_the_setting_has() -> None:
    settings = load(
        None,
        {
            "ONCEKEY_STORE__CACHE_BYTES": "0",
            "ONCEKEY_STORE__LEASE": "1m",
            "ONCEKEY_RETENTION__NIGHTLY": "36h",
            "ONCEKEY_ROUTES__0__PATH": "/orders",
            "ONCEKEY_ROUTES__0__REQUIRED": "Yes",
            "ONCEKEY_ROUTES__0__FAIL_OPEN": "off",
            "ONCEKEY_ROUTES__0__METHODS": "post, put",
            "ONCEKEY_ROUTES__0__FINGERPRINT": "amount,currency",
            "ONCEKEY_ROUTES__1__PATH": "/other",
            "ONCEKEY_ROUTES__1__POLICY": "PROHIBITED",
            "ONCEKEY_ROUTES__1__FINGERPRINT": "bytes",
        },
    )
    first, second = settings.routes
    assert (settings.store.cache_bytes, settings.store.lease) == (0, 60.0)
    assert settings.retention == {"nightly": 129600.0}
    assert (first.required, first.fail_open) == (True, False)
    assert first.methods == ("POST", "PUT")
    assert first.fingerprint == ("amount", "currency")
    assert (second.policy, second.fingerprint) == ("PROHIBITED", "bytes")


def test_the_environment_reaches_into_a_route_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "oncekey.toml"
    file.write_text("[[routes]]\npath = '/a'\nrequired = true\n")
    (each,) = load(file, {"ONCEKEY_ROUTES__0__IN_FLIGHT": "attach"}).routes
    assert (each.path, each.in_flight) == ("/a", "attach")


def test_a_mistake_names_the_variable() -> None:
    assert mistakes({"ONCEKEY_SERVER__PORT": "http", "ONCEKEY_STORE__ULR": "x"}) == [
        "ONCEKEY_SERVER__PORT: server.port must be a whole number, not 'http'",
        "ONCEKEY_STORE__ULR: there is no setting store.ulr; did you mean 'url'?",
    ]


@pytest.mark.parametrize("text", ["maybe", "", "2"])
def test_a_flag_is_true_or_false(text: str) -> None:
    (mistake,) = mistakes(
        {
            "ONCEKEY_ROUTES__0__PATH": "/a",
            "ONCEKEY_ROUTES__0__POLICY": "ACCEPTED",
            "ONCEKEY_ROUTES__0__FAIL_OPEN": text,
        }
    )
    assert mistake == (
        f"ONCEKEY_ROUTES__0__FAIL_OPEN: routes[0].fail_open must be true or false, not {text!r}"
    )


def test_variables_an_orchestrator_sets_for_a_service_of_this_name_are_no_settings() -> None:
    environ = {"ONCEKEY_PORT": "tcp://10.0.0.1:8700", "ONCEKEY_SERVICE_HOST": "10.0.0.1"}
    assert load(None, environ) == load()


@pytest.mark.parametrize("also", [{}, {"ONCEKEY_STORE__URL": "memory://"}])
def test_a_name_that_reaches_into_a_value_is_told(also: dict[str, str]) -> None:
    assert mistakes({"ONCEKEY_STORE__URL__X": "1", **also}) == [
        "ONCEKEY_STORE__URL: store.url must be text in quotes, not a table"
    ]


def test_a_url_from_the_environment_is_relative_to_where_the_command_runs(tmp_path: Path) -> None:
    file = tmp_path / "oncekey.toml"
    file.write_text("")
    settings = load(file, {"ONCEKEY_STORE__URL": "sqlite:///keys.db"})
    assert settings.store.url == "sqlite:///keys.db"


def test_routes_are_counted_without_gaps() -> None:
    assert mistakes({"ONCEKEY_ROUTES__1__PATH": "/a"}) == [
        "ONCEKEY_ROUTES__1: there is a gap, the next is 0"
    ]


def test_a_route_that_is_not_counted_is_told_by_its_variable(tmp_path: Path) -> None:
    file = tmp_path / "oncekey.toml"
    file.write_text("")
    with pytest.raises(ConfigurationError) as caught:
        load(file, {"ONCEKEY_ROUTES__PATH": "/a"})
    assert str(caught.value) == (
        "ONCEKEY_ROUTES: routes must be an array of tables: write [[routes]]"
    )
