"""A tick posted to an address: signed, bounded in time, tried again under the same key."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from oncekey.core.clock import Clock
from oncekey.core.errors import ConfigurationError
from oncekey.schedules.signing import HEADER, sign

if TYPE_CHECKING:
    import httpx

# An idempotent receiver that is still at the first attempt answers 409: it is asked again.
_TRY_AGAIN = frozenset({409, 429})
_LONGEST_PAUSE = 60.0
_LONGEST_RETRY_AFTER = 300.0
# More of an answer than this is not waited for; nothing of it is kept.
_READ = 1 << 20


class Done(NamedTuple):
    """How a tick ended: what came of it, or why nothing did."""

    ok: bool
    text: str


class Letter(NamedTuple):
    """What is posted, and how often it is tried."""

    url: str
    key: str
    body: bytes
    secret: str
    timeout: float
    attempts: int


class _Answer(NamedTuple):
    """One attempt. Without a status there was no answer."""

    status: int | None
    text: str
    retry_after: float = 0.0

    @property
    def is_final(self) -> bool:
        status = self.status
        return status is not None and status < 500 and status not in _TRY_AGAIN


class Post:
    """`backoff` is the first pause between two attempts, in seconds; each is twice the one before.

    Redirects are not followed, and proxies of the environment are not used: the letter goes to the
    address that was declared or nowhere.
    """

    def __init__(
        self,
        clock: Clock,
        client: httpx.AsyncClient | None = None,
        *,
        backoff: float = 1.0,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._clock = clock
        self._client = client
        self._own: httpx.AsyncClient | None = None
        self._backoff = backoff
        self._chance = chance

    async def send(self, letter: Letter) -> Done:
        client, attempt = self._client or self._open(), 1
        answer = await self._attempt(client, letter)
        while not answer.is_final and attempt < letter.attempts:
            await asyncio.sleep(self._pause_after(attempt, answer))
            attempt += 1
            answer = await self._attempt(client, letter)
        ok = answer.status is not None and 200 <= answer.status < 300
        return Done(ok, answer.text if answer.is_final else f"{answer.text}, {attempt} times")

    async def close(self) -> None:
        if self._own is not None:
            await self._own.aclose()
            self._own = None

    def _open(self) -> httpx.AsyncClient:
        if self._own is None:
            try:
                import httpx
            except ModuleNotFoundError as error:
                missing = f"{error}; schedules that call an address need it"
                raise ConfigurationError(f"{missing}: pip install 'oncekey[edge]'") from error
            limits = httpx.Limits(max_connections=None, max_keepalive_connections=20)
            self._own = httpx.AsyncClient(trust_env=False, limits=limits)
        return self._own

    async def _attempt(self, client: httpx.AsyncClient, letter: Letter) -> _Answer:
        import httpx

        try:
            async with asyncio.timeout(letter.timeout):
                return await self._post(client, letter)
        except TimeoutError:
            return _Answer(None, f"no answer within {letter.timeout:g} s")
        except httpx.InvalidURL as error:
            return _Answer(0, f"no address to call: {error}")
        except httpx.RequestError as error:
            return _Answer(None, f"not reached: {type(error).__name__}")

    async def _post(self, client: httpx.AsyncClient, letter: Letter) -> _Answer:
        headers = {
            "Content-Type": "application/json",
            "Idempotency-Key": letter.key,
            HEADER: sign(letter.secret, letter.body, self._clock.now() // 1000),
        }
        async with client.stream(
            "POST",
            letter.url,
            content=letter.body,
            headers=headers,
            timeout=letter.timeout,
            follow_redirects=False,
        ) as answer:
            size = 0
            async for chunk in answer.aiter_raw():
                size += len(chunk)
                if size > _READ:
                    break
            status, after = answer.status_code, answer.headers.get("Retry-After", "")
        moved = ", a redirect, which is not followed" if 300 <= status < 400 else ""
        wait = float(after) if after.isascii() and after.isdigit() and len(after) < 9 else 0.0
        return _Answer(status, f"answered {status}{moved}", wait)

    def _pause_after(self, attempt: int, answer: _Answer) -> float:
        """Half of it by chance, so that those who failed together do not come back together."""
        pause: float = min(self._backoff * 2 ** (attempt - 1), _LONGEST_PAUSE)
        pause *= 0.5 + 0.5 * self._chance()
        return max(pause, min(answer.retry_after, _LONGEST_RETRY_AFTER))
