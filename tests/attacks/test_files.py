"""Another account of the same machine: whatever OnceKey makes is its owner's alone, also where the
umask would let everybody in. What an owner has opened to others stays open."""

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import httpx
import pytest
from rich.console import Console

from oncekey import open as open_ledger
from oncekey.cli.tour.bank import Bank
from oncekey.cli.tour.patience import Patience
from oncekey.cli.tour.stage import set_up
from oncekey.cli.tour.teller import Teller
from oncekey.client import SqliteIntents
from tests.fixtures.command import Run
from tests.fixtures.served import Serve

WORKFLOWS = """
import oncekey

app = oncekey.App()


@app.workflow
async def greet(ctx: oncekey.Context, name: str) -> str:
    return f"hello {name}"
"""

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


@pytest.fixture(autouse=True)
def _everybody_may() -> Iterator[None]:
    """Nothing is masked: files are made as their makers say, and others may do what they allow."""
    before = os.umask(0)
    yield
    os.umask(before)


def open_to_others(folder: Path) -> dict[str, str]:
    """By its name, the mode of what somebody else could reach who may enter the folder. What is
    inside one that nobody else may enter is as safe as that."""
    found = {each: each.stat().st_mode for each in folder.iterdir()}
    reached = {each: mode for each, mode in found.items() if mode & _OTHERS}
    inside = [open_to_others(each) for each in reached if each.is_dir()]
    return {each.name: oct(stat.S_IMODE(mode)) for each, mode in reached.items()} | {
        name: mode for names in inside for name, mode in names.items()
    }


def test_what_a_server_makes_is_its_owners_alone(
    serve: Serve, oncekey: Run, tmp_path: Path
) -> None:
    """Its ledger with what is beside it, the key of its webhooks, and what its workers count."""
    scratch = tmp_path / "scratch"
    scratch.mkdir(mode=0o700)
    (tmp_path / "shop.py").write_text(WORKFLOWS)
    (tmp_path / "shop.py").chmod(0o600)
    words = ("--app", "shop:app", "--workers", "2")
    served = serve(*words, TMPDIR=str(scratch), PYTHONDONTWRITEBYTECODE="1")
    # Once it is answered, there are workers.
    assert httpx.get(f"{served.url}/healthz", timeout=60, trust_env=False).status_code == 200
    made = oncekey("webhooks", "create", "--provider", "stripe", "--then", "event:provider")
    assert made.returncode == 0, made.stderr
    found = {each.name for each in tmp_path.iterdir()}
    assert {"oncekey.db", "oncekey.db-wal", "oncekey.db-shm", "oncekey.db-locks"} <= found
    assert list(scratch.glob("oncekey-*"))
    assert open_to_others(tmp_path) == {}
    assert open_to_others(scratch) == {}


def test_so_is_the_file_of_a_client(tmp_path: Path) -> None:
    SqliteIntents(tmp_path / "intents.db").capture("shop", "tea", "k1", 10, 0)
    assert (tmp_path / "intents.db").exists()
    assert open_to_others(tmp_path) == {}


def test_so_is_the_scratch_of_the_tour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    teller = Teller(Console(quiet=True), is_paced=False)
    with set_up(teller, Patience(), Bank(), keep=False) as stage:
        assert stat.S_IMODE(stage.folder.stat().st_mode) == 0o700
        assert (stage.folder / "oncekey.toml").exists()


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o660])
def test_what_an_owner_shares_stays_shared(tmp_path: Path, mode: int) -> None:
    """The log beside it is as the file is, or those who may read it could not."""
    file = tmp_path / "shared.db"
    file.touch(mode)
    with closing(open_ledger(f"sqlite:///{file}")) as ledger:
        ledger.once("k", lambda: 1)
        files = [each for each in tmp_path.glob("shared.db*") if each.is_file()]
        assert {stat.S_IMODE(each.stat().st_mode) for each in files} == {mode}
        assert len(files) == 3


def test_a_file_behind_a_link_is_private_too(tmp_path: Path) -> None:
    """Such as one on another disk, which is not there yet."""
    (tmp_path / "disk").mkdir(mode=0o700)
    (tmp_path / "oncekey.db").symlink_to(tmp_path / "disk" / "kept.db")
    with closing(open_ledger(f"sqlite:///{tmp_path}/oncekey.db")) as ledger:
        ledger.once("k", lambda: 1)
    assert (tmp_path / "disk" / "kept.db").exists()
    assert open_to_others(tmp_path / "disk") == {}
