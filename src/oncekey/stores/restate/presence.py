"""A process among others on a cluster: signs of life, and what must be served is."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from oncekey.core.errors import OnceKeyError
from oncekey.stores.restate.endpoint import Endpoint
from oncekey.stores.restate.life import Life

log = logging.getLogger("oncekey")

_PAUSE = 0.5

# Told the retention classes that were set at run time.
Hear = Callable[[dict[str, float]], Awaitable[None]]


class Presence:
    """`endpoint` is None for a process that only asks."""

    def __init__(self, life: Life, endpoint: Endpoint | None, hear: Hear, heartbeat: float) -> None:
        self._life = life
        self._endpoint = endpoint
        self._hear = hear
        self._heartbeat = heartbeat
        self._disturbed = asyncio.Event()
        self._ended = False
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._trouble = ""

    def disturb(self) -> None:
        """Something was not answered: look after it now."""
        self._disturbed.set()

    async def end(self) -> None:
        """No sign of life is given after this."""
        self._ended = True
        await self._quiet.wait()

    async def run(self) -> None:
        while not self._ended:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._heartbeat):
                    await self._disturbed.wait()
                    await asyncio.sleep(_PAUSE)
            self._disturbed.clear()
            if not self._ended:
                await self.run_once()

    async def run_once(self) -> None:
        """Serving comes first: what is not served does not hear of life either."""
        self._quiet.clear()
        trouble = "" if self._endpoint is None else await _trouble_with(self._endpoint.keep_up)
        trouble = trouble or await _trouble_with(self._sign)
        self._quiet.set()
        if trouble and trouble != self._trouble:
            log.warning("%s", trouble)
        elif self._trouble and not trouble:
            log.warning("Restate answers again")
        self._trouble = trouble

    async def _sign(self) -> None:
        await self._hear(await self._life.beat())


async def _trouble_with(work: Callable[[], Awaitable[None]]) -> str:
    try:
        await work()
    except OnceKeyError as error:
        return str(error)
    except Exception:
        log.exception("signs of life for Restate: a mistake of OnceKey's own")
    return ""
