"""One `oncekey serve` that is killed, frozen and started again; callers reach it by a line."""

import asyncio
import os
import re
import signal
import struct
import sys
from collections.abc import Callable
from pathlib import Path

from tests.chaos.site.line import Line
from tests.fixtures.command import SCRIPT, clean_environment

ROOT = Path(__file__).parents[3]
_CLOCK = Path(__file__).parent / "clock"
_START_SECONDS = 120.0

Ended = Callable[[str, str], None]


class Server:
    """`ended` is told of each end that nobody had wished."""

    def __init__(
        self, name: str, folder: Path, source: Path, environ: dict[str, str], ended: Ended
    ) -> None:
        self.name = name
        self.line = Line()
        self.up = asyncio.Event()
        self._ended = ended
        self._folder = folder
        self._clock = folder / f"{name}.clock"
        self._clock.write_bytes(bytes(8))
        path = os.pathsep.join(map(str, (_CLOCK, source, ROOT)))
        self._environ = clean_environment(
            {
                "PYTHONPATH": path,
                "PYTHONUNBUFFERED": "1",
                "CHAOS_CLOCK": str(self._clock),
                "CHAOS_SERVER": name,
                **environ,
            }
        )
        self._process: asyncio.subprocess.Process | None = None

    async def open(self) -> None:
        await self.line.open()
        self._life = asyncio.create_task(self._live())

    async def _live(self) -> None:
        """Run it, and run it again whenever it ends, until it is cancelled."""
        while True:
            await self._start()
            process = self._process
            assert process is not None
            code = await process.wait()
            self.up.clear()
            if code != -signal.SIGKILL:
                self._ended(self.name, f"{self._last_words()} (exit code {code})")
                await asyncio.sleep(0.5)

    def kill(self) -> None:
        self._signal(signal.SIGKILL)

    def freeze(self) -> None:
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._signal(signal.SIGCONT)

    def set_clock(self, seconds: float) -> None:
        """So far from the time that it is."""
        with self._clock.open("r+b") as file:
            file.write(struct.pack("<q", round(seconds * 1e9)))

    async def close(self) -> None:
        self._life.cancel()
        self.kill()
        if self._process is not None:
            await self._process.wait()
        await self.line.close()

    def _signal(self, number: int) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(number)

    async def _start(self) -> None:
        log = (self._folder / f"{self.name}.log").open("ab")
        with log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, SCRIPT, "serve", "--config", self._folder / "oncekey.toml",
                "--port", "0",
                cwd=self._folder, env=self._environ, stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE, stderr=log, start_new_session=True,
            )  # fmt: skip
        try:
            async with asyncio.timeout(_START_SECONDS):
                await self._hear_port()
        except TimeoutError:
            self._ended(self.name, f"it did not start within {_START_SECONDS:.0f} s")
            self.kill()

    async def _hear_port(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            if found := re.search(rb"http://127\.0\.0\.1:(\d+)", line):
                self.line.target = int(found[1])
            if line.startswith(b"Ctrl-C"):
                self.up.set()
                return

    def _last_words(self) -> str:
        lines = (self._folder / f"{self.name}.log").read_text(errors="replace").splitlines()
        return lines[-1][:300] if lines else "nothing"
