"""`oncekey serve` on a filled store, asked for one path after the other as one operator asks."""

import http.client
import json
import os
import re
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

import oncekey
from bench.console.paths import Asked
from bench.machine import LOAD_CPU, PROGRAMS, SERVER_CPU, pin_self, pinned
from bench.services import ServiceFailed, end
from oncekey.core.callers import Callers

_CONFIG = """
[server]
port = 0

[store]
url = "{url}"

[app]
workflows = "flows:flows"
"""
# None of its names is among those of the store: nothing there is run.
_FLOWS = """
from oncekey import App, Context

flows = App()


@flows.workflow
async def unasked(ctx: Context, given: int) -> int:
    return given
"""


class Timing(NamedTuple):
    """Of the answers to one path, in ms."""

    asked: Asked
    status: int
    size: int
    first: float
    """Of the first one, before anything of it was looked at."""
    times: list[float]

    @property
    def p50(self) -> float:
        return sorted(self.times)[len(self.times) // 2]

    @property
    def p95(self) -> float:
        return sorted(self.times)[int(len(self.times) * 0.95)]

    @property
    def longest(self) -> float:
        return max(*self.times, self.first)


class Served:
    def __init__(
        self, url: str, folder: Path, config: str | None = None, *, signs_in: bool = True
    ) -> None:
        self.secret = _admin_of(url)
        (folder / "oncekey.toml").write_text(config or _CONFIG.format(url=url))
        (folder / "flows.py").write_text(_FLOWS)
        self._log = folder / "serve.log"
        command = [str(PROGRAMS / "oncekey"), "serve", "--config", str(folder / "oncekey.toml")]
        with self._log.open("wb") as output:
            self._process = subprocess.Popen(
                pinned(SERVER_CPU, command),
                stdout=output,
                stderr=output,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
                cwd=folder,
            )
        self.port = self._wait_for_port()
        self.cookie = self._sign_in() if signs_in else ""

    @property
    def pid(self) -> int:
        return self._process.pid

    def _sign_in(self) -> str:
        """To the console."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        connection.request("POST", "/console/sign-in", f"secret={self.secret}", form)
        answer = connection.getresponse()
        cookie = answer.headers["set-cookie"].partition(";")[0]
        connection.close()
        return cookie

    def _wait_for_port(self) -> int:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and self._process.poll() is None:
            found = re.search(r"http://[^\s:]+:(\d+)", self._log.read_text())
            if found:
                return int(found[1])
            time.sleep(0.05)
        raise ServiceFailed(self._log.read_text()[-1000:])

    def processor_seconds(self) -> float:
        """That it has taken so far."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def measure(self, asked: Asked, rounds: int) -> Timing:
        headers = {"Authorization": f"Bearer {self.secret}", "Cookie": self.cookie}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        times = []
        for _ in range(rounds + 1):
            began = time.perf_counter()
            connection.request("GET", asked.path, headers=headers)
            answer = connection.getresponse()
            body = answer.read()
            times.append((time.perf_counter() - began) * 1000)
        connection.close()
        return Timing(asked, answer.status, len(body), times[0], times[1:])

    def see(self, path: str) -> object:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        connection.request("GET", path, headers={"Authorization": f"Bearer {self.secret}"})
        return json.loads(connection.getresponse().read())

    def close(self) -> None:
        end(self._process)


def _admin_of(url: str) -> str:
    """The secret of a new admin."""
    import asyncio

    ledger = oncekey.open(url)
    _, secret = asyncio.run(Callers(ledger).create("operators", role="admin"))
    ledger.close()
    return secret


def measure_all(url: str, folder: Path, asked: list[Asked], rounds: int) -> list[Timing]:
    pin_self(LOAD_CPU)
    served = Served(url, folder)
    try:
        return [served.measure(each, rounds) for each in asked]
    finally:
        served.close()
