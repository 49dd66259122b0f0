"""`oncekey demo`: it really happens, can be read anywhere, leaves nothing, and does not lie."""

import fcntl
import io
import os
import pty
import re
import shlex
import signal
import struct
import subprocess
import sys
import tempfile
import termios
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from oncekey.cli.failure import Failure
from oncekey.cli.tour.bank import Bank
from oncekey.cli.tour.guide import guide
from oncekey.cli.tour.teller import Teller, broken, console_of
from tests.fixtures.command import SCRIPT, Run, clean_environment

# More than this is not written before somebody reads.
PIPE = 4096
WRITTEN = re.compile(r"\r?\x1b\[[0-9;?]*[A-Za-z]|[^\n]*\r(?=\x1b)")


@pytest.fixture
def room(tmp_path: Path) -> Path:
    """Where the tour makes its folder."""
    made = tmp_path / "room"
    made.mkdir()
    return made


def demo(room: Path, *words: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [SCRIPT, "demo", *words],
        env=clean_environment({**environ, "TMPDIR": str(room)}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def test_it_tells_what_happens_and_leaves_nothing(room: Path) -> None:
    elsewhere = "postgresql://nobody@127.0.0.1:1/none"
    done = demo(room, "--fast", ONCEKEY_STORE__URL=elsewhere)

    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    told = [" ".join(line.split()) for line in done.stdout.splitlines()]
    for line in (
        "422 Unprocessable Entity",
        "409 Conflict",
        "✓ step 1 was not done again: one charge",
        "✓ it is still replayed",
        "✓ a duplicate is no failure",
        "401 Unauthorized",
        "✓ order 1005 waits on",
        "12 requests sent by clients and by Stripe",
        "3 replays answered from the ledger, nothing done",
        "3 refused another amount, too early, forged",
        "3 charges for three orders, one each",
        "1 parcel for the workflow that was interrupted",
    ):
        assert line in told
    assert list(room.iterdir()) == []


def test_its_folder_can_be_kept_and_looked_at(oncekey: Run, room: Path) -> None:
    done = demo(room, "--keep", PYTHONIOENCODING="ascii")

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.isascii()
    (folder,) = room.iterdir()
    told = done.stdout.partition("The folder is kept:\n  $ ")[2]
    assert shlex.split(told.replace("\\\n", " ")) == [
        "oncekey", "keys", "list", "--config", f"{folder}/oncekey.toml"
    ]  # fmt: skip
    config = ("--config", folder / "oncekey.toml")
    assert "order-1001" in oncekey("keys", "list", *config).stdout
    waiting = oncekey("workflows", "list", "--status", "waiting", *config).stdout
    assert "await_payment-1005" in waiting
    assert processes_in(folder) == []


@pytest.mark.parametrize("words", [[], ["--no-color"]], ids=["colours", "plain"])
def test_a_narrow_terminal_is_wide_enough(room: Path, words: list[str]) -> None:
    environ = {"TERM": "xterm-256color", "TMPDIR": str(room)}
    code, shown = at_terminal(["--fast", *words], environ, columns=60)

    assert code == 0, shown
    assert ("\x1b[" in shown) == (words == [])
    long = [line for line in WRITTEN.sub("", shown).splitlines() if len(line) > 60]
    # What has no blank cannot be folded, and the terminal does it.
    assert [line for line in long if not line.split()[-1].startswith(("/", "HOOK="))] == []
    assert list(room.iterdir()) == []


@pytest.mark.parametrize("term", ["xterm", "dumb"])
def test_no_color_is_heeded(monkeypatch: pytest.MonkeyPatch, term: str) -> None:
    monkeypatch.setenv("TERM", term)
    monkeypatch.setenv("COLUMNS", "60")
    shown = {}
    for value in ("", "1"):
        monkeypatch.setenv("NO_COLOR", value)
        heard = io.StringIO()
        console = console_of(file=heard, force_terminal=True)
        assert console.width == 60
        with Teller(console, is_paced=False).waiting("soon"):
            pass
        shown[value] = heard.getvalue()

    assert shown["1"] == "    (soon)\n"
    assert ("\x1b[" in shown[""]) == (term == "xterm")


def at_terminal(words: list[str], environ: dict[str, str], columns: int) -> tuple[int, str]:
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    kept = clean_environment(environ)
    del kept["COLUMNS"]
    with subprocess.Popen(
        [SCRIPT, "demo", *words], env=kept, stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        shown = b""
        while piece := _read(ours):
            shown += piece
    os.close(ours)
    return process.returncode, shown.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:
        # How a terminal ends.
        return b""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_stopped_in_the_middle_it_leaves_nothing(room: Path, number: signal.Signals) -> None:
    with subprocess.Popen(
        [SCRIPT, "demo", "--fast"],
        env=clean_environment({"TMPDIR": str(room), "PYTHONUNBUFFERED": "1"}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        pipesize=PIPE,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("1. "):
                break
        # It comes no further than the pipe is long.
        (folder,) = room.iterdir()
        assert processes_in(folder) != []
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)

    assert process.returncode == 128 + number
    assert errors == "stopped; its server is gone, and its folder\n"
    assert processes_in(folder) == []
    assert list(room.iterdir()) == []


def processes_in(folder: Path) -> list[str]:
    """Those that have it as their current folder, also when it is gone."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            at = str((process / "cwd").readlink())
        except OSError:
            continue
        if at.startswith(str(folder)):
            found.append(process.name)
    return found


class GreedyBank(Bank):
    """Charges twice for each request."""

    def do(self, path: str, asked: dict[str, Any]) -> dict[str, Any] | None:
        super().do(path, asked)
        return super().do(path, asked)


class ForgetfulBank(Bank):
    """Sends no parcels, whatever it says."""

    def count(self, path: str, order: int | None = None) -> int:
        return 0 if path == "/parcels" else super().count(path, order)


@pytest.mark.parametrize(
    "bank, told",
    [
        (GreedyBank, "the bank has one charge for order 1001; expected 1, found 2"),
        (ForgetfulBank, "step 2 was: one parcel; expected 1, found 0"),
    ],
)
def test_what_is_not_so_is_not_told(
    room: Path, monkeypatch: pytest.MonkeyPatch, bank: type[Bank], told: str
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(room))
    shown = io.StringIO()
    teller = Teller(Console(file=shown, width=80), is_paced=False)

    with pytest.raises(Failure) as failed:
        guide(teller, bank=bank())

    assert str(failed.value.message) == f"what is told is not what happened: {told}"
    assert failed.value.exit_code == 1
    assert f"✗ {told.partition(';')[0]}" in shown.getvalue()
    assert "4. What happened" not in shown.getvalue()
    assert list(room.iterdir()) == []


def test_without_the_edge_it_says_what_to_install() -> None:
    script = "import sys; sys.modules['httpx'] = None; from oncekey.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", script, "demo"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith("; the tour needs it: pip install 'oncekey[edge]'\n")
    assert done.stderr.count("\n") == 1


WORDS = st.lists(st.text("ab{\"}:', ", min_size=1, max_size=30), min_size=1, max_size=6)


@given(WORDS, st.integers(40, 100))
def test_a_command_on_several_lines_is_the_same_command(words: list[str], width: int) -> None:
    lines = broken(["curl", *words], width)
    read = shlex.split("\n".join(lines).replace("\\\n", " "))
    # A new line where there were blanks is one blank to JSON.
    assert [word.split() for word in read] == [word.split() for word in ["curl", *words]]
