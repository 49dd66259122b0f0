"""Three nodes of Restate and two processes of OnceKey on this machine, until Ctrl-C.

Whatever is killed is started again ten seconds later, as a service manager would.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
import tomllib
import urllib.error
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
LOGS = HERE / "data"
# Beside the Python that runs this, where `make` has put them, or wherever the shell finds them.
PATH = f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}"
# Where each is asked, and where Restate calls it.
EDGES = {"edge-a": (8711, 9711), "edge-b": (8712, 9712)}
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
REST = 10.0
PATIENCE = 120.0
_LOOK_AGAIN = 0.2

TRY = """
Take an order, with a key, and ask again, at the other edge:

  curl -i http://127.0.0.1:{a}/orders -H 'Idempotency-Key: try-1' -d '{{"id": 42, "item": "tea"}}'
  curl -i http://127.0.0.1:{b}/orders -H 'Idempotency-Key: try-1' -d '{{"id": 42, "item": "tea"}}'

Pay it, and look at the workflow that the order has named:

  curl -X POST http://127.0.0.1:{a}/orders/42/pay
  curl http://127.0.0.1:{b}/workflows/wf_...

Kill any one of them, at any time, and ask again. It comes back after {rest:.0f} seconds.

{kills}

Every effect is a line in {effects}; what each process says is in {logs}.
Ctrl-C stops everything. What was kept is there again the next time.
"""


class Part:
    """One process, with a log of its own."""

    def __init__(self, name: str, words: list[str], **environ: str) -> None:
        self.name = name
        self._log = LOGS / f"{name}.log"
        self._words = words
        self._environ = {**os.environ, "PATH": PATH, "DO_NOT_TRACK": "1", **environ}
        self._starts_at: float | None = None
        self._start()

    @property
    def runs(self) -> bool:
        return self.process.poll() is None

    @property
    def last_words(self) -> str:
        return "".join(self._log.read_text().splitlines(keepends=True)[-5:])

    def look_after(self) -> None:
        """Start it again when it has been gone for a while."""
        now = time.monotonic()
        if self._starts_at is None and not self.runs:
            self._starts_at = now + REST
            print(f"{self.name} is gone; it comes back in {REST:.0f} seconds", flush=True)
        elif self._starts_at is not None and now >= self._starts_at:
            self._starts_at = None
            self._start()
            print(f"{self.name} is back: kill -9 {self.process.pid}", flush=True)

    def end(self) -> None:
        """In good order, or else by force."""
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _start(self) -> None:
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                self._words,
                cwd=HERE,
                env=self._environ,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Ctrl-C is for this program, which ends them in their order.
                start_new_session=True,
            )


def node(config: Path) -> Part:
    return Part(config.stem, ["restate-server", "--no-logo", "-c", config.name])


def edge(name: str, port: int, endpoint: int) -> Part:
    url = tomllib.loads((HERE / "oncekey.toml").read_text())["store"]["url"]
    return Part(
        name,
        ["oncekey", "serve", "--config", "oncekey.toml", "--port", str(port)],
        ONCEKEY_STORE__URL=f"{url}&endpoint=http://127.0.0.1:{endpoint}",
    )


def answers(port: int) -> bool:
    """Whether an edge answers, and the cluster behind it: nobody has this order."""
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/workflows/wf_0000000000000000", timeout=20)
    except urllib.error.HTTPError as error:
        return error.code == 404
    except OSError:
        return False
    return True


def wait(parts: list[Part]) -> None:
    patience = time.monotonic() + PATIENCE
    while not all(answers(port) for port, _ in EDGES.values()):
        for part in parts:
            if not part.runs or time.monotonic() > patience:
                raise SystemExit(f"{part.name} does not run. It says:\n{part.last_words}")
        time.sleep(_LOOK_AGAIN)


def stop(parts: list[Part]) -> None:
    for part in parts:
        part.process.terminate()
    for part in parts:
        part.end()


def main() -> None:
    for program in ("restate-server", "oncekey"):
        if shutil.which(program, path=PATH) is None:
            raise SystemExit(f"{program} is not here; in a clone, `make cluster` brings it")
    taken = [port for port, _ in EDGES.values() if answers(port)]
    if taken:
        raise SystemExit(f"somebody answers on port {taken[0]} already; stop that one first")
    LOGS.mkdir(exist_ok=True)
    # A signal to stop, or a terminal that is closed, is as good as Ctrl-C, also where a shell has
    # it ignored. Only `nohup` is taken at its word.
    for number in STOPS:
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler)
    nodes: list[Part] = []
    edges: list[Part] = []
    try:
        print("Three nodes of Restate and two edges of OnceKey start ...", flush=True)
        nodes += [node(config) for config in sorted(HERE.glob("n?.toml"))]
        edges += [edge(name, *ports) for name, ports in EDGES.items()]
        parts = nodes + edges
        wait(parts)
        kills = "\n".join(f"  kill -9 {part.process.pid}    # {part.name}" for part in parts)
        (a, _), (b, _) = EDGES.values()
        told = {"effects": HERE / "effects.txt", "logs": LOGS, "rest": REST}
        print(TRY.format(a=a, b=b, kills=kills, **told), flush=True)
        while True:
            time.sleep(_LOOK_AGAIN)
            for part in parts:
                part.look_after()
    except KeyboardInterrupt:
        print("Stopping ...", flush=True)
    finally:
        # Whoever is impatient must not leave any of them behind.
        for number in STOPS:
            signal.signal(number, signal.SIG_IGN)
        # The edges first: they hand over what they do.
        stop(edges)
        stop(nodes)


if __name__ == "__main__":
    main()
