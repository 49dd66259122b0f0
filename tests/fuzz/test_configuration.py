"""Any configuration: settings, or mistakes that each name their place, and never a traceback."""

import json
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from oncekey.cli.main import cli
from oncekey.compose.openapi import document_for
from oncekey.config import load
from oncekey.core.errors import OnceKeyError
from tests.fixtures.edge_site import CONFIG, SECRET
from tests.fixtures.fuzzed import configuration
from tests.fixtures.fuzzing import fuzz
from tests.fixtures.served import QUICKSTART

MORE = """
[[providers]]
name = "acme"
identifier = { header = "X-Acme-Delivery" }
signature = { header = "X-Acme-Signature", algorithm = "hmac-sha256", encoding = "hex" }
[auth.unkey]
root_key = "r"
[metrics]
max_tenants = 5
[traces]
endpoint = "http://127.0.0.1:4318"
[server]
port = 1
grpc_port = 2
"""
EDGE = CONFIG.format(
    url="http://127.0.0.1:1", secret=SECRET, timeout="5s", body_timeout="5s", gateway=""
)
TEXTS = [(QUICKSTART / "oncekey.toml").read_text(), EDGE, configuration() + MORE]
TABLES = [tomllib.loads(text) for text in TEXTS]


def written(value: Any) -> str:
    """As TOML."""
    match value:
        case dict():
            pairs = (f"{json.dumps(name)} = {written(each)}" for name, each in value.items())
            return f"{{ {', '.join(pairs)} }}"
        case list():
            return f"[{', '.join(written(each) for each in value)}]"
        case bool() | str():
            return json.dumps(value).replace("\x7f", "\\u007f")
        case datetime() | date() | time():
            return value.isoformat()
        case _:
            return str(value)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    inner = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for name, each in inner:
        yield from places(each, (*path, name))


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    first, *rest = path
    copy = list(value) if isinstance(value, list) else dict(value)
    copy[first] = replaced(value[first], tuple(rest), new)
    return copy


letters = st.text(st.characters(codec="utf-8"), max_size=12)
scalars = st.one_of(
    letters,
    st.sampled_from(
        ["", "10s", "-1s", "http://", "http://[", "/{", "/{a}/{a}", "/{a:path}/b", "GET", "*",
         "${X}", "file:/nowhere", "memory://", "sqlite:///", "postgresql://h:x/", "restate://"]
    ),
    st.integers(),
    st.integers(-1, 70000),
    st.floats(),
    st.booleans(),
    st.dates(),
    st.datetimes(),
    st.times(),
)  # fmt: skip
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(letters, inner, max_size=3),
    max_leaves=4,
)


@st.composite
def documents(draw: st.DrawFn) -> str:
    """One with a value replaced, with lines or letters of it moved, or anything at all."""
    match draw(st.sampled_from(["value", "value", "name", "lines", "letters", "anything"])):
        case "value" | "name" as which:
            table = draw(st.sampled_from(TABLES))
            path = draw(st.sampled_from(list(places(table))))
            if which == "name":
                table = replaced(table, path, {draw(letters): draw(anything)})
            else:
                table = replaced(table, path, draw(anything))
            return "".join(
                f"{json.dumps(name)} = {written(each)}\n" for name, each in table.items()
            )
        case "lines":
            lines = draw(st.sampled_from(TEXTS)).splitlines()
            return "\n".join(draw(st.lists(st.sampled_from(lines), max_size=20)))
        case "letters":
            text = draw(st.sampled_from(TEXTS))
            at, new = draw(st.integers(0, len(text))), draw(st.text(max_size=3))
            return text[:at] + new + text[at + draw(st.integers(0, 9)) :]
        case _:
            return draw(st.text(max_size=60) | st.text('[]{}="\n.a1', max_size=40))


def outcome(file: Path, text: str, environ: dict[str, str] | None = None) -> None:
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        settings = load(file, environ or {})
    except OnceKeyError as mistakes:
        told = str(mistakes)
        assert told.startswith((str(file), "ONCEKEY_")), told
        return
    with suppress(OnceKeyError):
        document_for(settings)


@fuzz(150)
@given(text=documents())
def test_a_file_is_settings_or_mistakes(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    outcome(tmp_path_factory.getbasetemp() / "fuzz.toml", text)


names = st.sampled_from(
    "STORE__URL SERVER__PORT ROUTES__0__PATH ROUTES__0__METHODS ROUTES__9__PATH ROUTES__X "
    "AUTH__JWT AUTH__JWT__CLAIMS__TENANT UPSTREAMS__A__URL SCHEDULES__0__INPUT RETENTION__A "
    "WEBHOOKS__DEMO AUTH__GATEWAY__TRUSTED STORE __ _ SERVER__ ROUTES__²__PATH".split()
).map("ONCEKEY_{}".format)


@fuzz(60)
@given(
    environ=st.dictionaries(names, letters | scalars.map(str), max_size=4),
    text=st.sampled_from([*TEXTS, ""]),
)
def test_the_environment_is_settings_or_mistakes(
    tmp_path_factory: pytest.TempPathFactory, environ: dict[str, str], text: str
) -> None:
    outcome(tmp_path_factory.getbasetemp() / "fuzz.toml", text, environ)


@fuzz(10)
@given(text=documents())
def test_the_check_answers_in_lines(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    file = tmp_path_factory.getbasetemp() / "fuzz.toml"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    for words in (["check"], ["openapi"]):
        done = CliRunner().invoke(cli, [*words, "--config", str(file)])
        assert done.exit_code in {0, 1, 2}, done.output
        assert isinstance(done.exception, SystemExit | None), done.exception
        assert "Traceback" not in done.output
