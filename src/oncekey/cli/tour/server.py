"""The server of the tour: a real `oncekey serve`, to be killed and started again."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

from oncekey.cli.failure import Failure
from oncekey.cli.tour.patience import Patience

_MAIN = "from oncekey.cli.main import main; main()"
_LOG = "server.log"
_SHOWN = 8


class Server:
    """`log` in its folder has all that it says."""

    def __init__(self, folder: Path, patience: Patience) -> None:
        self._folder = folder
        self._patience = patience
        self._process: subprocess.Popen[str] | None = None
        self._url = ""

    @property
    def url(self) -> str:
        return self._url

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Answers when it takes requests."""
        self._process = process = subprocess.Popen(  # noqa: S603 - our own command
            # Each start has a port of its own: another one may be taken meanwhile.
            [sys.executable, "-c", _MAIN, "serve", "--config", "oncekey.toml", "--port", "0"],
            cwd=self._folder,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            errors="replace",
            # Ctrl-C at the terminal is ours to hear.
            start_new_session=True,
        )
        heard = threading.Event()
        threading.Thread(target=self._listen, args=(process, heard), daemon=True).start()
        self._patience.wait_for(heard, "the server does not get ready")
        if not self._url:
            process.wait()
            said = (self._folder / _LOG).read_text().splitlines()
            raise Failure("\n".join(["the server did not start; it said:", *said[-_SHOWN:]]))

    def kill(self) -> None:
        """At once and for good, with nothing put in order: SIGKILL."""
        self.strike()
        process, self._process, self._url = self._process, None, ""
        if process is not None:
            process.wait()

    def strike(self) -> None:
        """Kill it, and leave the rest for later: a signal handler may do that."""
        # The number of one that was waited for may be another's.
        if self._process is not None and self._process.returncode is None:
            os.killpg(self._process.pid, signal.SIGKILL)

    def _listen(self, process: subprocess.Popen[str], heard: threading.Event) -> None:
        """All of it is taken: a pipe that is full would stop the server."""
        assert process.stdout is not None
        url = ""
        with process.stdout, (self._folder / _LOG).open("a") as log:
            for line in process.stdout:
                log.write(line)
                log.flush()
                if found := re.search(r"^OnceKey serves .* on (http://\S+)", line):
                    url = found[1]
                elif line.startswith("Ctrl-C"):
                    self._url = url
                    heard.set()
        heard.set()


def _environment() -> dict[str, str]:
    """Without settings: those of whoever runs the tour may name a store that is in use."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ONCEKEY_")}
    return {**kept, "PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8"}
