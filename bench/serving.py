"""A contender's server: started on its core, probed for what it can do, ended by the bench."""

import http.client
import os
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from bench.contenders import Contender
from bench.machine import SERVER_CPU, pinned
from bench.services import Postgres, Redis, ServiceFailed, end, free_port, log_tail, wait_for_port

BODY = b'{"item":"book","qty":1}'
STORED_SECONDS = 0.05
ROOT = Path(__file__).resolve().parent.parent

_MODULES = {"asgi": "raw", "starlette": "starlette_app", "fastapi": "fastapi_app"}
UVICORN = ["--loop", "uvloop", "--http", "httptools", "--no-access-log", "--log-level", "warning"]
_GUNICORN = [
    "--worker-class",
    "gthread",
    "--workers",
    "1",
    "--threads",
    "16",
    "--log-level",
    "warning",
]


@dataclass
class Services:
    """The databases of this run; None where one could not be had, with the reason in `absent`."""

    scratch: Path
    redis: Redis | None = None
    postgres: Postgres | None = None
    absent: dict[str, str] = field(default_factory=dict)

    def environment_of(self, contender: Contender) -> dict[str, str]:
        if contender.store in self.absent:
            raise ServiceFailed(f"{contender.store}: {self.absent[contender.store]}")
        folder = self.scratch / contender.name.replace(":", "-")
        folder.mkdir(exist_ok=True)
        found = {
            "BENCH_FRAMEWORK": contender.framework,
            "BENCH_GUARD": contender.guard,
            "BENCH_SCRATCH": str(folder),
        }
        if contender.store == "redis" and self.redis:
            found["BENCH_REDIS_URL"] = self.redis.new_url()
        if contender.store == "postgres" and self.postgres:
            found["BENCH_POSTGRES_URL"] = self.postgres.new_url()
        return found


class Server:
    """One running contender. `refused` says why a scenario cannot be measured on it."""

    def __init__(self, contender: Contender, services: Services) -> None:
        self.contender = contender
        self.refused: dict[str, str] = {}
        self.port = free_port()
        environment = {**os.environ, "PYTHONPATH": str(ROOT), **services.environment_of(contender)}
        self._log = services.scratch / f"{contender.name.replace(':', '-')}.log"
        self._prepare(environment)
        with self._log.open("ab") as output:
            self._process = subprocess.Popen(
                pinned(SERVER_CPU, self._command()), env=environment, stdout=output, stderr=output
            )

    def wait_until_ready(self) -> None:
        wait_for_port(self.port, self._process, self._log)
        self.runs()

    def runs(self) -> int:
        """How often its handler has run."""
        return int(self._ask("GET", "/runs", None)[1])

    def post(self, key: str) -> tuple[int, bytes]:
        return self._ask("POST", "/orders", key)

    def probe(self) -> None:
        """Posts one key twice; what does not hold is refused instead of being measured."""
        before = self.runs()
        first = self.post("probe")
        if first[0] != 201:
            self._refuse(f"the first request is answered with {first[0]}: {log_tail(self._log)}")
        elif not self.contender.is_bare:
            # Some store their answer only after they have sent it.
            time.sleep(STORED_SECONDS)
            again = self.post("probe")
            if self.runs() != before + 1:
                self._refuse("a replay runs the handler again")
            elif again[0] not in {200, 201}:
                self._refuse(f"a replay is answered with {again[0]}", "replays", "duplicates")

    def close(self) -> None:
        end(self._process)

    def _refuse(self, reason: str, *scenarios: str) -> None:
        self.refused |= dict.fromkeys(scenarios or self.contender.scenarios, reason)

    def _prepare(self, environment: dict[str, str]) -> None:
        command = [sys.executable, "-m", "bench.apps.prepare"]
        if self.contender.framework != "django" and self.contender.guard != "idemkit-postgres":
            return
        run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if run.returncode:
            raise ServiceFailed(run.stderr.strip().splitlines()[-1][:200])

    def _command(self) -> list[str]:
        address = f"127.0.0.1:{self.port}"
        if self.contender.framework == "django":
            options = [*_GUNICORN, "--bind", address, "bench.apps.django_app:wsgi()"]
            return [sys.executable, "-m", "gunicorn", *options]
        app = f"bench.apps.{_MODULES[self.contender.framework]}:app"
        return [sys.executable, "-m", "uvicorn", app, "--port", str(self.port), *UVICORN]

    def _ask(self, method: str, path: str, key: str | None) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        headers = {"Content-Type": "application/json"} | ({"Idempotency-Key": key} if key else {})
        try:
            connection.request(method, path, BODY if method == "POST" else None, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise ServiceFailed(f"{error}; {log_tail(self._log)}") from error
        finally:
            with suppress(OSError):
                connection.close()
