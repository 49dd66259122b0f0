"""A line between two programs, through which everything goes and which can be broken."""

import asyncio
from contextlib import suppress
from typing import Literal

State = Literal["good", "cut", "slow", "stuck", "deaf"]
"""`cut`: broken, and nobody gets through. `slow`: each piece takes a while. `stuck`: nothing moves,
and nobody is told. `deaf`: what is asked arrives, the answers never do."""

_PIECE = 1 << 16


class Line:
    def __init__(self, target: int = 0) -> None:
        self.target = target
        self.state: State = "good"
        self._moves = asyncio.Event()
        self._moves.set()
        self._ends: set[asyncio.StreamWriter] = set()
        self._pumps: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        self._server.close()
        self.hang_up()
        for pump in self._pumps:
            pump.cancel()

    def become(self, state: State) -> None:
        self.state = state
        if state == "stuck":
            self._moves.clear()
        else:
            self._moves.set()
        if state == "cut":
            self.hang_up()

    def mend(self) -> None:
        """What went missing meanwhile stays missing: whoever waits for it hears that it broke."""
        if self.state == "deaf":
            self.hang_up()
        self.become("good")

    def hang_up(self) -> None:
        for end in list(self._ends):
            end.transport.abort()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._ends.add(writer)
        try:
            if self.state == "cut":
                return
            with suppress(OSError):
                there, back = await asyncio.open_connection("127.0.0.1", self.target)
                self._ends.add(back)
                try:
                    await self._pump_both(reader, back, there, writer)
                finally:
                    self._ends.discard(back)
                    back.close()
        finally:
            self._ends.discard(writer)
            writer.close()

    async def _pump_both(
        self,
        reader: asyncio.StreamReader,
        back: asyncio.StreamWriter,
        there: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        pumps = [
            asyncio.create_task(self._pump(reader, back, asks=True)),
            asyncio.create_task(self._pump(there, writer, asks=False)),
        ]
        self._pumps.update(pumps)
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        for pump in pumps:
            pump.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)
        self._pumps.difference_update(pumps)

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asks: bool
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(_PIECE):
                if self.state == "slow":
                    await asyncio.sleep(0.15)
                await self._moves.wait()
                if self.state == "deaf" and not asks:
                    continue
                writer.write(data)
                await writer.drain()
