"""Where the keys of tokens come from: given once, or from an address that is asked now and then.

An address that is away, slow or talking nonsense changes nothing: the last keys that it gave hold.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Protocol

from oncekey.core.clock import Clock
from oncekey.core.errors import IdentityUnavailable
from oncekey.edge.identity.jwk import KeyRing, VerifyingKey, ring_of_jwks
from oncekey.edge.identity.remote import Remote, check_address

if TYPE_CHECKING:
    import httpx

log = logging.getLogger("oncekey")

MAX_JWKS = 256 << 10
# So that those who ask while an address is away do not ask it each.
_PAUSE_AFTER_FAILURE = 1_000


class Keys(Protocol):
    @property
    def generation(self) -> int:
        """Another one means other keys."""
        ...

    async def find(self, kid: str | None, algorithm: str) -> list[VerifyingKey]:
        """Those that may have signed a token. Raises `IdentityUnavailable` when no keys are known
        and none can be had."""
        ...

    async def close(self) -> None: ...


class GivenKeys:
    """A secret, a public key or the JWKS of a file."""

    generation = 0

    def __init__(self, ring: KeyRing) -> None:
        self._ring = ring

    async def find(self, kid: str | None, algorithm: str) -> list[VerifyingKey]:
        return self._ring.find(kid, algorithm)

    async def close(self) -> None:
        """Nothing is open."""


class FetchedKeys:
    """Asked for when first needed, then every `refresh` seconds; and for a kid that nobody knows at
    most once per `cooldown`, so that made-up ones cause no storm. One question at a time."""

    def __init__(
        self,
        url: str,
        clock: Clock,
        *,
        algorithms: frozenset[str] | None = None,
        refresh: float = 600.0,
        cooldown: float = 30.0,
        timeout: float = 5.0,
        insecure: bool = False,
        client: httpx.AsyncClient | None = None,
    ) -> None:
        self._url = check_address(url, "auth.jwt.jwks_url", insecure=insecure)
        self._steady = clock.steady
        self._algorithms = algorithms
        self._refresh, self._cooldown = int(refresh * 1000), int(cooldown * 1000)
        self._remote = Remote(timeout=timeout, most=MAX_JWKS, client=client)
        self._ring: KeyRing | None = None
        self._failure = ""
        """Why the last question had no answer; empty when it had one."""
        self._questions = 0
        self._due = self._due_for_unknown = 0
        self._under_way: asyncio.Task[None] | None = None
        self.generation = 0

    async def find(self, kid: str | None, algorithm: str) -> list[VerifyingKey]:
        questions = self._questions
        ring = await self._current()
        new = self._questions != questions
        if not new and not ring.knows(kid) and await self._asked_for_unknown():
            ring = await self._current()
        return ring.find(kid, algorithm)

    async def close(self) -> None:
        if self._under_way is not None:
            self._under_way.cancel()
            await asyncio.wait([self._under_way])
        await self._remote.close()

    async def _current(self) -> KeyRing:
        """Keys no older than `refresh` while the address answers; the last ones while not."""
        if self._steady() >= self._due:
            question = self._ask()
            if self._ring is None or not self._failure:
                await asyncio.shield(question)
        if self._ring is None:
            raise IdentityUnavailable(self._failure)
        return self._ring

    async def _asked_for_unknown(self) -> bool:
        """False when it was asked for one a moment ago."""
        now = self._steady()
        if self._under_way is None:
            if now < self._due_for_unknown:
                return False
            self._due_for_unknown = now + self._cooldown
        await asyncio.shield(self._ask())
        return True

    def _ask(self) -> asyncio.Task[None]:
        """Whoever asks while a question is under way gets the answer to that one."""
        if self._under_way is None:
            self._under_way = asyncio.create_task(self._fetch())
            self._under_way.add_done_callback(self._done)
        return self._under_way

    def _done(self, _: asyncio.Task[None]) -> None:
        self._under_way = None

    async def _fetch(self) -> None:
        self._questions += 1
        try:
            document = await self._remote.get(self._url)
            ring = ring_of_jwks(document, self._algorithms)
        except IdentityUnavailable as error:
            self._failed(str(error))
        except asyncio.CancelledError:
            # Those who wait are told so, instead of being cancelled with it.
            self._failed("the edge is being closed")
        except ValueError as error:
            self._failed(f"auth.jwt.jwks_url gave no JWKS: {error}")
        except Exception as error:  # noqa: BLE001 - whatever it is, the last keys hold
            self._failed(f"auth.jwt.jwks_url cannot be asked: {error!r}")
        else:
            self._learn(ring)

    def _learn(self, ring: KeyRing) -> None:
        if not ring.keys:
            log.warning("auth.jwt.jwks_url has no key that can be used: no token is believed")
        if ring != self._ring:
            self._ring = ring
            self.generation += 1
        self._failure = ""
        self._due = self._steady() + self._refresh

    def _failed(self, reason: str) -> None:
        held = "the last keys hold" if self._ring is not None else "no token can be verified"
        log.warning("keys of tokens cannot be fetched, %s: %s", held, reason)
        self._failure = reason
        pause = _PAUSE_AFTER_FAILURE if self._ring is None else self._cooldown
        self._due = self._steady() + pause
