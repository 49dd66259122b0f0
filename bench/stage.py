"""The stage of one run: scratch folder, databases and servers, all ended on leaving."""

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from bench.contenders import Contender
from bench.services import Postgres, Redis, ServiceFailed
from bench.serving import Server, Services


class Stage:
    """Owns every process and file of the run; `absent` says who could not come, and why."""

    def __init__(self, folder: str | None = None) -> None:
        # /tmp is often memory, where durability costs nothing; /var/tmp is a disk.
        self.scratch = Path(tempfile.mkdtemp(prefix="oncekey-bench-", dir=folder or "/var/tmp"))
        self.scratch.chmod(0o755)
        self.services = Services(self.scratch)
        self.servers: dict[str, Server] = {}
        self.absent: dict[str, str] = {}
        self._files = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end_servers()
        for service in (self.services.redis, self.services.postgres):
            if service:
                service.close()
        shutil.rmtree(self.scratch, ignore_errors=True)

    def start(self, contenders: Sequence[Contender]) -> None:
        runnable = [each for each in contenders if not self._is_missing(each)]
        self._start_services({each.store for each in runnable})
        for contender in runnable:
            self._start_server(contender)

    def end_servers(self) -> None:
        while self.servers:
            self.servers.popitem()[1].close()

    def families(self, scenario: str) -> Iterator[tuple[str, list[str]]]:
        """Per framework: the bare application and those that are compared with it."""
        ready = [each for each in self.servers.values() if scenario not in each.refused]
        for bare in (each for each in ready if each.contender.is_bare):
            others = [
                each.contender.name
                for each in ready
                if each.contender.framework == bare.contender.framework
                and not each.contender.is_bare
                and scenario in each.contender.scenarios
            ]
            yield bare.contender.name, others

    def refusals(self, scenario: str) -> dict[str, str]:
        return {
            name: server.refused[scenario]
            for name, server in self.servers.items()
            if scenario in server.refused
        }

    def new_database(self, store: str) -> str:
        """The address of an empty database; a server for it is started when there is none."""
        if store == "sqlite":
            self._files += 1
            return f"sqlite:///{self.scratch / f'database-{self._files}.db'}"
        if not self.services.postgres and store not in self.services.absent:
            self._start_postgres()
        if not self.services.postgres:
            raise ServiceFailed(f"{store}: {self.services.absent[store]}")
        return self.services.postgres.new_url()

    def _is_missing(self, contender: Contender) -> bool:
        if reason := contender.missing():
            self.absent[contender.name] = reason
        return bool(reason)

    def _start_services(self, stores: set[str]) -> None:
        if "redis" in stores:
            try:
                self.services.redis = Redis(self.scratch)
            except (OSError, ServiceFailed) as error:
                self.services.absent["redis"] = str(error)
        if "postgres" in stores:
            self._start_postgres()

    def _start_postgres(self) -> None:
        try:
            self.services.postgres = Postgres(self.scratch)
        except (OSError, ServiceFailed) as error:
            self.services.absent["postgres"] = str(error)

    def _start_server(self, contender: Contender) -> None:
        print(f"  starting {contender.name}", flush=True)
        try:
            server = self.servers[contender.name] = Server(contender, self.services)
            server.wait_until_ready()
            server.probe()
        except (OSError, ServiceFailed) as error:
            self.absent[contender.name] = str(error)
            if failed := self.servers.pop(contender.name, None):
                failed.close()
