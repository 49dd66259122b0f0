"""The guide to PostgreSQL: followed on a real server, with a ledger that moves there."""

import importlib.util
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

import oncekey
from tests.fixtures.guide import files_of
from tests.fixtures.guided import Guided
from tests.fixtures.pages import DOCS
from tests.fixtures.ports import unused_port
from tests.fixtures.postgres_server import PostgresServer
from tests.fixtures.postgres_tools import with_tools
from tests.fixtures.served import Serve

pytestmark = pytest.mark.postgres

PAGE = DOCS / "how-to" / "postgresql.md"


@pytest.fixture
def server(postgres: PostgresServer) -> Iterator[PostgresServer]:
    """Without what the page makes in it."""
    yield postgres
    with psycopg.connect(postgres.url(), autocommit=True) as connection:
        connection.execute("DROP DATABASE IF EXISTS shop WITH (FORCE)")
        connection.execute("DROP ROLE IF EXISTS shop_owner")
        connection.execute("DROP ROLE IF EXISTS shop_app")


def test_the_guide_is_followed(serve: Serve, server: PostgresServer, tmp_path: Path) -> None:
    ports = {5432: server.port, 8701: unused_port()}
    # The store is the one that the page says, by its file and then by its variable.

    def move_when_stopped(line: str) -> None:
        site.stop()
        assert site.type(line) == "moved\n"

    acts = {"python move.py": move_when_stopped}
    site = Guided(
        PAGE, serve, tmp_path, ports=ports, acts=acts, ONCEKEY_STORE__URL="", PATH=with_tools()
    )
    site.guide.follow()
    assert "shop_app" in site.servers[-1].banner
    assert len(site.servers) == 2


@pytest.fixture
def move(tmp_path: Path) -> object:
    (tmp_path / "move.py").write_text(files_of(PAGE)["move.py"])
    found = importlib.util.spec_from_file_location("move", tmp_path / "move.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module.move


def test_what_moves_is_known_there(move: object, postgres_url: str, tmp_path: Path) -> None:
    def fails() -> str:
        raise SystemExit

    old = oncekey.open(f"sqlite:///{tmp_path}/old.db")
    assert old.once("settled", lambda: "first") == "first"
    with suppress(SystemExit):
        old.once("cut off", fails)
    old.close()
    oncekey.open(postgres_url).close()
    move(str(tmp_path / "old.db"), postgres_url)  # type: ignore[operator]

    new = oncekey.open(postgres_url)
    assert new.once("settled", lambda: "second") == "first"
    with pytest.raises(oncekey.OutcomeUnknown):
        new.once("cut off", lambda: "second", takeover="refuse")
    assert new.once("cut off", lambda: "second") == "second"
    assert new.once("new", lambda: "third") == "third"
    new.close()
