"""The script itself: quick to start, quiet when a pipe closes, and careful at a terminal."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixtures.command import SCRIPT, Run, clean_environment
from tests.fixtures.shelf import Shelf

NOT_NEEDED = {"rich", "uvicorn", "starlette", "psycopg", "httpx", "django", "flask", "sqlite3"}


def at_a_terminal(words: list[str], folder: Path, typed: str = "") -> tuple[int, str]:
    """Run the script with a terminal for its input and output."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [SCRIPT, *words],
        cwd=folder,
        env=clean_environment({"COLUMNS": "200", "TERM": "xterm"}),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        os.write(ours, typed.encode())
        shown = b""
        try:
            while chunk := os.read(ours, 65536):
                shown += chunk
        except OSError:
            # The other side is closed: that is how a terminal ends.
            pass
        finally:
            os.close(ours)
        return process.wait(timeout=30), shown.decode()


def test_help_loads_nothing_that_only_commands_need() -> None:
    script = "import sys, oncekey.cli.main; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert loaded & NOT_NEEDED == set()


def test_the_version_is_told(oncekey: Run) -> None:
    assert oncekey("--version").stdout.startswith("oncekey 0.")


@pytest.mark.parametrize("words", [["nothing"], ["keys", "--wrong"], ["retention", "set", "x"]])
def test_wrong_usage_is_exit_code_2(oncekey: Run, words: list[str]) -> None:
    done = oncekey(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["--version"],
        ["keys", "--wrong"],
        ["keys", "list", "--json"],
        ["keys", "show", "op_none"],
        ["check", "--url", "sqlite:///none.db"],
    ],
)
def test_a_fork_does_what_the_script_does(oncekey: Run, tmp_path: Path, words: list[str]) -> None:
    """Nearly all tests have forks."""
    script = subprocess.run(
        [SCRIPT, *words],
        cwd=tmp_path,
        env=clean_environment({"LANG": "C.UTF-8"}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    fork = oncekey(*words)
    assert (fork.returncode, fork.stdout, fork.stderr) == (
        script.returncode,
        script.stdout,
        script.stderr,
    )


def test_words_that_are_no_text_are_wrong_usage(tmp_path: Path) -> None:
    done = subprocess.run(
        [SCRIPT, "keys", "show", b"a\xff"],
        cwd=tmp_path,
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.endswith("Error: 'a\\udcff' is not UTF-8 text\n")


def test_a_pipe_that_closes_early_is_no_error(shelf: Shelf) -> None:
    for number in range(3):
        shelf.settle(f"k{number}", body=b"x" * 100_000)
    command = f"{SCRIPT} keys show k1 --json | head -c 10; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=shelf.path.parent,
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr
    assert done.stdout.startswith("{")


def test_a_terminal_is_asked_before_a_purge(shelf: Shelf) -> None:
    record = shelf.settle("k")
    status, shown = at_a_terminal(["keys", "purge", "k"], shelf.path.parent, "n\n")
    assert status == 1
    assert "Forget" in shown
    assert shelf.ledger.peek(record.ref) is not None

    status, shown = at_a_terminal(["keys", "purge", "k"], shelf.path.parent, "y\n")
    assert status == 0
    assert f"purged {record.operation_id}" in shown


def test_yes_answers_before_it_is_asked(shelf: Shelf) -> None:
    shelf.settle("k")
    status, shown = at_a_terminal(["keys", "purge", "k", "--yes"], shelf.path.parent)
    assert (status, "Forget" in shown) == (0, False)


def test_a_terminal_gets_a_table(shelf: Shelf) -> None:
    record = shelf.settle("k")
    status, shown = at_a_terminal(["keys", "list"], shelf.path.parent)
    assert status == 0
    assert record.operation_id in shown
    assert "──" in shown


def test_a_sweep_shows_its_progress_at_a_terminal(shelf: Shelf) -> None:
    shelf.ledger.set_retention("interactive", 0.001)
    for number in range(300):
        shelf.settle(f"k{number}")
    status, shown = at_a_terminal(["sweep"], shelf.path.parent)
    assert status == 0
    assert "sweeping" in shown
    assert "swept 300 expired records" in shown
