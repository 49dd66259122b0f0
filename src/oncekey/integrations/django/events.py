"""Server-sent events that are kept: they go out as they come, their end waits for the store.

A reader that goes away does not stop them: they are read to their end for its retry.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from asgiref.sync import sync_to_async

from oncekey.integrations.django import background
from oncekey.integrations.django.exchange import headers_of
from oncekey.integrations.gatherer import Flow, Gatherer


def keep_events(response: Any, gatherer: Gatherer) -> None:
    """Put ourselves between a streaming response and its reader."""
    gatherer.start(response.status_code, headers_of(response))
    chunks = response.streaming_content
    if response.is_async:
        response.streaming_content = _Pump(chunks, gatherer).read()
        return
    response.streaming_content = Flow(b"", iter(chunks), gatherer, lambda: None)
    # It drains the source when it is closed, so that the source must not be closed before it.
    closers = response._resource_closers  # noqa: SLF001
    closers.insert(0, closers.pop())


class _Pump:
    """Draws from an async source in a task of its own, at the pace of the reader."""

    def __init__(self, chunks: AsyncIterator[bytes], gatherer: Gatherer) -> None:
        self._chunks = chunks
        self._gatherer = gatherer
        self._drawn: asyncio.Queue[bytes | None] = asyncio.Queue(1)
        self._is_read = True

    async def read(self) -> AsyncIterator[bytes]:
        pumping = background.start(self._run())
        try:
            while (chunk := await self._drawn.get()) is not None:
                yield chunk
            await pumping
        finally:
            self._is_read = False
            while not self._drawn.empty():
                self._drawn.get_nowait()

    async def _run(self) -> None:
        gatherer = self._gatherer
        try:
            async for chunk in self._chunks:
                await self._hand_on(gatherer.feed(chunk))
            await sync_to_async(gatherer.finish)()
        except Exception as error:
            await sync_to_async(gatherer.give_up)(error)
            raise
        except BaseException as error:
            gatherer.give_up(error)
            raise
        finally:
            await self._hand_on(None)

    async def _hand_on(self, chunk: bytes | None) -> None:
        if self._is_read:
            await self._drawn.put(chunk)
