"""The stage of the edge: a service, and what stands in front of it, each process on its core.

Whatever the load meets first has the first core; what is asked from there (the service, OnceKey
where it only decides, PostgreSQL) shares the second with the load generator, for everybody alike.
"""

import hmac
import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Self

from bench.machine import LOAD_CPU, PROGRAMS, SERVER_CPU, pinned, program
from bench.services import ServiceFailed, end, free_port, wait_for_port
from bench.serving import BODY, ROOT, UVICORN

QUIET_SECONDS = 0.3
LOOK_SECONDS = 0.1
_FOLDER = Path(__file__).parent / "apps" / "edge"
_EXAMPLE = ROOT / "examples" / "nginx"
# The ports in the files of both folders: the gateway's own, OnceKey's and the service's.
_FRONT, _ONCEKEY, _SERVICE = 8080, 8700, 9000


@dataclass(frozen=True)
class Caller:
    """What a request says of who sends it."""

    header: str
    value: str

    @property
    def line(self) -> str:
        return f"{self.header}: {self.value}\r\n"


class Running:
    """A process that listens on `port`."""

    def __init__(
        self,
        command: list[str],
        port: int,
        cpu: int | None,
        log: Path,
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.port = port
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                pinned(cpu, command),
                cwd=log.parent,
                env={**os.environ, **environment},
                stdout=output,
                stderr=output,
            )
        try:
            wait_for_port(port, self._process, log)
        except ServiceFailed:
            end(self._process)
            raise

    def cpu_seconds(self) -> float:
        """What it and its children have used of the cores."""
        return sum(map(_cpu_seconds, [self._process.pid, *_children(self._process.pid)]))

    def close(self) -> None:
        end(self._process)


class Gateways:
    """Starts processes in a folder of its own, and ends them all."""

    def __init__(self, scratch: Path, service_cpu: int | None = LOAD_CPU) -> None:
        # Two of them may be in one run, after each other.
        self._folder = Path(tempfile.mkdtemp(prefix="gateways-", dir=scratch))
        self._folder.chmod(0o755)
        self._all = ExitStack()
        self._asked = 0
        self.service = self._nginx("service", _FOLDER / "service.conf", service_cpu, {})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._all.close()

    def runs(self, quiet: float = QUIET_SECONDS) -> int:
        """How many requests have reached the service, when no more have for so many seconds."""
        found, since = self._counted(), time.monotonic()
        while time.monotonic() - since < quiet:
            time.sleep(LOOK_SECONDS)
            if (count := self._counted()) != found:
                found, since = count, time.monotonic()
        return found

    def _counted(self) -> int:
        self._asked += 1
        answer = ask(self.service.port, "GET", "/counted")[1].decode()
        found = re.search(r"^ \d+ \d+ (\d+)", answer, re.MULTILINE)
        if found is None:
            raise ServiceFailed(f"the service counts in unknown words: {answer[:100]}")
        return int(found[1]) - self._asked

    # -- who can be asked ----------------------------------------------------------------

    def nginx(self) -> Running:
        return self._nginx("proxy", _FOLDER / "proxy.conf", SERVER_CPU, {})

    def nginx_deciding(self, oncekey: Running, name: str) -> Running:
        """As the example of this repository has it, with one worker."""
        changes = {
            "worker_processes auto": "worker_processes 1",
            f":{_ONCEKEY}": f":{oncekey.port}",
        }
        return self._nginx(name, _EXAMPLE / "nginx.conf", SERVER_CPU, changes)

    def caddy(self) -> Running:
        port, path = free_port(), self._folder / "caddy"
        text = self._placed((_FOLDER / "Caddyfile").read_text(), port)
        path.mkdir()
        (path / "Caddyfile").write_text(text)
        command = [needed("caddy"), "run", "--config", str(path / "Caddyfile")]
        return self._started(command, port, SERVER_CPU, "caddy")

    def bare(self) -> Running:
        """An app that answers itself, on the server that OnceKey has too."""
        port = free_port()
        command = [sys.executable, "-m", "uvicorn", "bench.apps.raw:app", "--port", str(port)]
        guard = {"BENCH_FRAMEWORK": "asgi", "BENCH_GUARD": "bare", "PYTHONPATH": str(ROOT)}
        return self._started([*command, *UVICORN], port, SERVER_CPU, "bare", guard)

    def restate_service(self, name: str) -> Running:
        """What Restate calls where OnceKey is not."""
        port = free_port()
        command = [sys.executable, "-m", "uvicorn", "bench.apps.restate_orders:app"]
        words = ["--port", str(port), "--timeout-keep-alive", "86400", *UVICORN]
        where = {"BENCH_SERVICE": f"http://127.0.0.1:{self.service.port}", "PYTHONPATH": str(ROOT)}
        return self._started([*command, *words], port, None, name, where)

    def oncekey(
        self, store: str, name: str, cpu: int | None = SERVER_CPU, upstream: str = ""
    ) -> tuple[Running, Caller]:
        """With the API key of somebody who may call it. `upstream`: asked in place of the service
        that everybody asks."""
        port, path = free_port(), self._folder / f"{name}.toml"
        text = self._placed((_FOLDER / "oncekey.toml").read_text(), port)
        if upstream:
            text = text.replace(f"http://127.0.0.1:{self.service.port}", upstream)
        path.write_text(f'[store]\nurl = "{store}"\n\n{text}')
        command = [str(PROGRAMS / "oncekey"), "serve", "--config", str(path), "--port", str(port)]
        running = self._started(command, port, cpu, name)
        return running, Caller("X-API-Key", _api_key(path))

    # -- the steps behind them -----------------------------------------------------------

    def _nginx(self, name: str, path: Path, cpu: int | None, changes: dict[str, str]) -> Running:
        port, folder = free_port(), self._folder / name
        text = self._placed(path.read_text(), port)
        for old, new in changes.items():
            text = text.replace(old, new)
        folder.mkdir()
        # As root, nginx gives its workers another user, who must reach their folder.
        folder.chmod(0o755)
        (folder / "nginx.conf").write_text(text)
        words = ["-p", str(folder), "-e", "stderr", "-c", str(folder / "nginx.conf")]
        return self._started([needed("nginx"), *words], port, cpu, name)

    def _placed(self, text: str, port: int) -> str:
        """With the ports of this run. The service has its own, and is placed before the others."""
        own = _SERVICE if "stub_status" in text else _FRONT
        text = text.replace(f":{own}", f":{port}")
        return text.replace(f":{_SERVICE}", f":{self.service.port}") if own == _FRONT else text

    def _started(
        self,
        command: list[str],
        port: int,
        cpu: int | None,
        name: str,
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> Running:
        print(f"  starting {name}", flush=True)
        running = Running(command, port, cpu, self._folder / f"{name}.log", environment)
        self._all.callback(running.close)
        return running


def ask(
    port: int, method: str, path: str, caller: Caller | None = None, key: str = ""
) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    headers = {"Content-Type": "application/json"} | ({"Idempotency-Key": key} if key else {})
    headers |= {caller.header: caller.value} if caller else {}
    try:
        connection.request(method, path, BODY if method == "POST" else None, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (OSError, http.client.HTTPException) as error:
        raise ServiceFailed(str(error)) from error
    finally:
        connection.close()


def bearer() -> Caller:
    """A token that the configuration of the bench believes, for an hour."""
    secret = re.search(r'secret = "(.*)"', (_FOLDER / "oncekey.toml").read_text())
    assert secret is not None
    claims = {"tenant_id": "acme", "project_id": "shop", "sub": "anna", "exp": time.time() + 3600}
    parts = [_encoded(json.dumps(each).encode()) for each in ({"alg": "HS256"}, claims)]
    signed = ".".join(parts)
    signature = hmac.digest(secret[1].encode(), signed.encode(), sha256)
    return Caller("Authorization", f"Bearer {signed}.{_encoded(signature)}")


def _children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(each) for each in found.read_text().split()] if found.exists() else []


def _cpu_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _encoded(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def _api_key(config: Path) -> str:
    words = "apikeys create --tenant acme --project shop --subject user:anna --json".split()
    command = [str(PROGRAMS / "oncekey"), *words, "--config", str(config)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        raise ServiceFailed(run.stderr.strip()[-200:])
    found: str = json.loads(run.stdout)["secret"]
    return found


def needed(name: str) -> str:
    found = program(name)
    if found is None:
        raise ServiceFailed(f"not installed: {name}; `make bench` brings it")
    return found
