"""Restate on loopback, one node or three."""

import http.client
import json
import time
from contextlib import ExitStack
from pathlib import Path

from bench.gateways import Running, needed
from bench.services import READY_SECONDS, ServiceFailed, free_port

REPLICATION = {1: 1, 3: 2}
# On two cores it is faster with four than with the 24 of its defaults.
PARTITIONS = 4
SETTINGS = """\
cluster-name = "{cluster}"
node-name = "{name}"
base-dir = "{folder}"
roles = ["http-ingress", "admin", "worker", "log-server", "metadata-server"]
listen-mode = "tcp"
bind-address = "{node}"
advertised-address = "http://{node}/"
auto-provision = {provisions}
default-num-partitions = {partitions}
default-replication = {replication}
disable-telemetry = true
log-filter = "warn"
log-disable-ansi-codes = true
shutdown-timeout = "5s"

[metadata-client]
type = "replicated"
addresses = {peers}

[ingress]
bind-address = "127.0.0.1:{ingress}"

[admin]
bind-address = "127.0.0.1:{admin}"
"""


class Cluster:
    """Its nodes may use every core. The first is the one that is asked."""

    def __init__(self, folder: Path, size: int) -> None:
        self.size = size
        self._folder = folder / f"restate-{size}"
        self._folder.mkdir()
        self._all = ExitStack()
        self._addresses = [f"127.0.0.1:{free_port()}" for _ in range(size)]
        self._admins = [free_port() for _ in range(size)]
        self.nodes: list[Running] = []
        try:
            for number in range(size):
                self.nodes.append(self._start(number))
                self._all.callback(self.nodes[-1].close)
        except BaseException:
            self.close()
            raise

    def url(self, space: str) -> str:
        """A store of its own."""
        endpoint = f"endpoint=http://127.0.0.1:0&space={space}"
        return f"restate://{self._ingress}?admin={self._admin}&{endpoint}"

    def service_url(self, path: str) -> str:
        """A handler of a service, as an upstream."""
        return f"restate://{self._ingress}/{path}?admin={self._admin}"

    @property
    def _ingress(self) -> str:
        return ",".join(f"127.0.0.1:{node.port}" for node in self.nodes)

    @property
    def _admin(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self._admins)

    def register(self, port: int) -> None:
        """Let it find out which services there are. A cluster that just comes up takes a while."""
        body = json.dumps({"uri": f"http://127.0.0.1:{port}", "use_http_11": True})
        deadline = time.monotonic() + READY_SECONDS
        answer = "no answer"
        while time.monotonic() < deadline:
            try:
                status, answer = _post(self._admins[0], "/deployments", body)
            except (OSError, http.client.HTTPException) as error:
                status, answer = 0, str(error)
            if status in {200, 201}:
                return
            time.sleep(0.1)
        raise ServiceFailed(f"Restate does not take the services of the bench: {answer[:200]}")

    def close(self) -> None:
        self._all.close()

    def _start(self, number: int) -> Running:
        name = f"n{number + 1}"
        port = free_port()
        settings = self._folder / f"{name}.toml"
        settings.write_text(
            SETTINGS.format(
                cluster=self._folder.name,
                name=name,
                folder=self._folder,
                node=self._addresses[number],
                # Exactly one node makes the cluster; the others join it.
                provisions="false" if number else "true",
                partitions=PARTITIONS,
                replication=REPLICATION[self.size],
                peers=json.dumps([f"http://{address}/" for address in self._addresses]),
                ingress=port,
                admin=self._admins[number],
            )
        )
        print(f"  starting restate {name} of {self.size}", flush=True)
        command = [needed("restate-server"), "--no-logo", "-c", str(settings)]
        log = self._folder / f"{name}.log"
        return Running(command, port, None, log, {"DO_NOT_TRACK": "1"})


def _post(port: int, path: str, body: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=READY_SECONDS)
    try:
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read().decode(errors="replace")
    finally:
        connection.close()
