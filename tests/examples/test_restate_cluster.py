"""The example of a cluster, as its README tells it: asked, robbed of a node and of an edge, and
stopped."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fixtures.command import clean_environment
from tests.fixtures.console import Answer, Reader, commands_of
from tests.fixtures.ports import lasting_port
from tests.fixtures.served import ROOT

pytestmark = [pytest.mark.restate, pytest.mark.timeout(300)]

EXAMPLE = ROOT / "examples" / "restate-cluster"
FILES = ["n1.toml", "n2.toml", "n3.toml", "oncekey.toml", "shop.py", "run.py", "README.md"]
PORT = re.compile(r"\b(2512[123]|2808[123]|2907[123]|871[12]|971[12])\b")
ORDER, AGAIN, PAY, SHOW = range(1, 5)


class Cluster:
    """The example in a folder and on ports of its own."""

    def __init__(self, folder: Path) -> None:
        self.ports: dict[str, str] = {}

        def port(found: re.Match[str]) -> str:
            return self.ports.setdefault(found[0], str(lasting_port()))

        for name in FILES:
            (folder / name).write_text(PORT.sub(port, (EXAMPLE / name).read_text()))
        self.folder = folder
        self.commands = [each.line for each in commands_of(folder / "README.md")]
        self.reader = Reader(folder, "")
        self._process = subprocess.Popen(
            # Whoever runs the tests may have SIGHUP ignored, which processes inherit.
            ["env", "--default-signal=HUP", sys.executable, "-u", "run.py"],
            cwd=folder,
            env=clean_environment(),
            stdout=subprocess.PIPE,
            text=True,
        )
        self.said = self._read()
        self.pids = {
            name: int(pid) for pid, name in re.findall(r"kill -9 (\d+) +# (\S+)", self.said)
        }

    def ask(self, command: int, *, order: int = 42) -> Answer:
        line = _about(order, self.commands[command])
        return self.reader.type(line.replace("try-1", f"try-{order}"))[0].answer

    def pay(self, order: int, *, edge: str) -> None:
        line = _about(order, self.commands[PAY])
        self.reader.type(line.replace(self.ports["8711"], self.ports[edge]))

    def effects(self) -> Counter[str]:
        lines = (self.folder / "effects.txt").read_text().splitlines()
        return Counter(line.partition(",")[0] for line in lines)

    def stop(self, number: signal.Signals = signal.SIGINT) -> int:
        self._process.send_signal(number)
        return self._process.wait(60)

    def end(self) -> None:
        """Whatever has become of it, nothing of it is left."""
        self._process.kill()
        self._process.communicate()
        for pid in self.pids.values():
            if self.folder.name in _where(pid):
                os.kill(pid, signal.SIGKILL)

    def _read(self) -> str:
        assert self._process.stdout is not None
        guard = threading.Timer(200, self._process.kill)
        guard.start()
        said = ""
        for line in self._process.stdout:
            said += line
            if line.startswith("Ctrl-C stops"):
                break
        guard.cancel()
        assert "Ctrl-C stops" in said, said
        return said


def _about(order: int, line: str) -> str:
    """The digits of the order may be in a port as well."""
    return re.sub(r"\b42\b", str(order), line)


def _where(pid: int) -> str:
    """The folder in which a process runs; of one that is gone, nothing."""
    try:
        return str(Path(f"/proc/{pid}/cwd").readlink())
    except OSError:
        return ""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    folder = tmp_path / "restate-cluster"
    folder.mkdir()
    cluster = Cluster(folder)
    yield cluster
    cluster.end()


def shown(cluster: Cluster, workflow: str) -> dict[str, str]:
    line = cluster.commands[SHOW].replace("wf_...", workflow)
    told: dict[str, str] = json.loads(cluster.reader.type(line)[0].output)
    return told


def test_it_does_what_it_says(cluster: Cluster) -> None:
    first, again = cluster.ask(ORDER), cluster.ask(AGAIN)
    assert (first.status, again.status) == (201, 201)
    assert again.body == first.body
    assert again.headers["idempotent-replayed"] == "true"

    # Without a node, and in the middle of an order.
    os.kill(cluster.pids["n1"], signal.SIGKILL)
    assert cluster.ask(AGAIN).body == first.body
    other = cluster.ask(ORDER, order=7)
    assert cluster.ask(AGAIN, order=7).body == other.body
    cluster.pay(42, edge="8711")
    workflow = json.loads(first.body)["workflow"]
    assert shown(cluster, workflow) == {"status": "done", "result": "tea for ann"}

    # Without an edge: the other one goes on with what it has begun.
    os.kill(cluster.pids["edge-a"], signal.SIGKILL)
    assert cluster.ask(AGAIN).body == first.body
    assert cluster.ask(AGAIN, order=7).body == other.body
    cluster.pay(7, edge="8712")
    assert shown(cluster, json.loads(other.body)["workflow"])["status"] == "done"
    assert set(cluster.effects()) == {
        f"order {order}: {what}"
        for order in (7, 42)
        for what in ("taken", "charged", "tea shipped")
    }
    assert set(cluster.effects().values()) == {1}

    assert cluster.stop() == 0
    assert {_where(pid) for pid in cluster.pids.values()} == {""}


def test_a_terminal_that_is_closed_leaves_nothing_behind(cluster: Cluster) -> None:
    assert cluster.stop(signal.SIGHUP) == 0
    assert {_where(pid) for pid in cluster.pids.values()} == {""}


def test_the_readme_shows_what_it_prints() -> None:
    printed = "\n".join(re.findall(r"(?m)^  (curl .*)$", (EXAMPLE / "run.py").read_text()))
    for sign, meant in {"{a}": "8711", "{b}": "8712", "{{": "{", "}}": "}"}.items():
        printed = printed.replace(sign, meant)
    assert printed.splitlines() == [each.line for each in commands_of(EXAMPLE / "README.md")[1:]]
