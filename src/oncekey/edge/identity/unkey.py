"""API keys that Unkey keeps: it is asked about each, and believed for a few seconds.

A key that Unkey does not call valid is refused; while Unkey cannot be asked, nobody new is let in.
"""

from __future__ import annotations

import asyncio
import json
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from oncekey.core.clock import Clock
from oncekey.core.errors import ConfigurationError, IdentityUnavailable, Unauthorized
from oncekey.core.scope import SUBJECT_TYPES
from oncekey.edge.identity.known import Known, Verified, known_of
from oncekey.edge.identity.remote import Remote, check_address
from oncekey.wire.strict_json import object_in

if TYPE_CHECKING:
    import httpx

URL = "https://api.unkey.com"
_MOST = 256 << 10
_LONGEST_KEY = 512


class Unkey:
    """`root_key` may verify keys there. `cache` and `timeout` are seconds.

    `data.identity.externalId` is the tenant, `data.meta.project_id` the project, and the key itself
    the subject, unless `data.meta.subject` names one with its type.
    """

    generation = 0

    def __init__(
        self,
        root_key: str,
        clock: Clock,
        *,
        url: str = URL,
        cache: float = 10.0,
        timeout: float = 3.0,
        insecure: bool = False,
        client: httpx.AsyncClient | None = None,
    ) -> None:
        if not root_key.isascii() or not root_key.isprintable() or not root_key.strip():
            raise ConfigurationError("auth.unkey: the root key is empty, or is none")
        base = check_address(url, "auth.unkey.url", insecure=insecure).rstrip("/")
        self._url = f"{base}/v2/keys.verifyKey"
        self._headers = {
            "Authorization": f"Bearer {root_key.strip()}",
            "Content-Type": "application/json",
        }
        self._clock = clock
        self._cache = int(cache * 1000)
        self._remote = Remote(timeout=timeout, most=_MOST, client=client)
        self._under_way: dict[bytes, asyncio.Task[Verified]] = {}

    async def verify(self, secret: str) -> Verified:
        if len(secret) > _LONGEST_KEY:
            raise Unauthorized(f"the API key is longer than {_LONGEST_KEY} characters")
        # Whoever sends the same key meanwhile gets the same answer, and costs no second question.
        digest = sha256(secret.encode()).digest()
        question = self._under_way.get(digest)
        if question is None:
            question = asyncio.create_task(self._ask(secret))
            self._under_way[digest] = question
            question.add_done_callback(lambda done: self._answered(digest, done))
        return await asyncio.shield(question)

    async def close(self) -> None:
        questions = list(self._under_way.values())
        for question in questions:
            question.cancel()
        if questions:
            await asyncio.wait(questions)
        await self._remote.close()

    async def _ask(self, secret: str) -> Verified:
        asked_at = self._clock.steady()
        body = json.dumps({"key": secret}).encode()
        try:
            answer = object_in(await self._remote.post(self._url, self._headers, body))
        except ValueError as error:
            raise IdentityUnavailable(f"Unkey gave no answer that can be read: {error}") from None
        except asyncio.CancelledError:
            # Those who wait are told so, instead of being cancelled with it.
            raise IdentityUnavailable("the edge is being closed") from None
        data = answer.get("data")
        if not isinstance(data, dict) or not isinstance(data.get("valid"), bool):
            raise IdentityUnavailable("Unkey does not say whether the key is valid")
        known, expires_at = _known_in(data), self._expiry_in(data)
        return Verified(known, asked_at + self._cache, expires_at, self.generation)

    def _answered(self, digest: bytes, question: asyncio.Task[Verified]) -> None:
        del self._under_way[digest]
        if not question.cancelled():
            # Looked at here: those who asked may have left.
            question.exception()

    def _expiry_in(self, data: dict[str, Any]) -> float | None:
        expires = data.get("expires")
        if expires is None or expires == 0:
            return None
        if isinstance(expires, bool) or not isinstance(expires, int | float):
            raise IdentityUnavailable("Unkey gave an expiry that is no time")
        if self._clock.now() >= expires:
            raise Unauthorized("the API key has expired")
        return expires


def _known_in(data: dict[str, Any]) -> Known:
    code = data.get("code")
    if data["valid"] is not True or code != "VALID" or data.get("enabled") is False:
        # In the log it matters whether the key is wrong or its owner asks too often.
        said = code if isinstance(code, str) and code.isascii() and code.isprintable() else "?"
        raise Unauthorized(f"Unkey refuses the API key: {said[:64]}")
    identity, meta = _object(data.get("identity")), _object(data.get("meta"))
    tenant, project = identity.get("externalId"), meta.get("project_id")
    if not isinstance(tenant, str):
        raise Unauthorized("the API key has no tenant: give its identity an externalId in Unkey")
    if project is not None and not isinstance(project, str):
        raise Unauthorized("the API key has a project_id that is no text")
    return known_of(tenant, project, _subject_in(data, meta))


def _subject_in(data: dict[str, Any], meta: dict[str, Any]) -> str:
    subject, key_id = meta.get("subject"), data.get("keyId")
    if subject is not None:
        if not isinstance(subject, str) or subject.partition(":")[0] not in SUBJECT_TYPES:
            raise Unauthorized("meta.subject of the API key has no type such as 'user:' before it")
        return subject
    if not isinstance(key_id, str) or not key_id:
        raise IdentityUnavailable("Unkey does not say the id of the key")
    return f"service:{key_id}"


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
