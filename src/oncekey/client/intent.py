"""An intent in the hands of the caller: what it wants done, under one key, until it is known."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from oncekey.client.answer import Answer
from oncekey.client.intents import Frozen, Record
from oncekey.client.request import freeze
from oncekey.client.sending import Keep, Sending, Steps

if TYPE_CHECKING:
    from oncekey.client.client import AsyncClient, Client


class Captured:
    """What both colours have in common."""

    def __init__(self, client: Client | AsyncClient, record: Record) -> None:
        self._sending = Sending(client.terms, record)
        self._terms = client.terms
        self._http = client.http

    @property
    def name(self) -> str:
        return self._sending.record.name

    @property
    def key(self) -> str:
        """The same for every attempt, in this process and the next."""
        return self._sending.record.key

    @property
    def created_at(self) -> datetime:
        return datetime.fromtimestamp(self._sending.record.created_at / 1000, UTC)

    @property
    def method(self) -> str | None:
        """Of the request that it was sent with; None as long as it was not."""
        return self._sending.record.request and self._sending.record.request.method

    @property
    def url(self) -> str | None:
        return self._sending.record.request and self._sending.record.request.url

    def __repr__(self) -> str:
        sent = f", {self.method} {self.url}" if self.method else ""
        return f"<{type(self).__name__} {self.name!r}{sent}>"

    def _posting(self, method: str, url: str, content: dict[str, Any]) -> Steps[Answer]:
        frozen: Frozen = freeze(self._http, self._terms.dialect, method, url, content)
        return self._sending.post(frozen)

    def _resuming(self, force: bool) -> Steps[Answer | None]:
        return self._sending.resume(force=force)

    def _recovering(self) -> Steps[Answer | None]:
        return self._sending.recover()

    def _abandoning(self) -> Steps[None]:
        yield Keep(self._terms.intents.forget, (self._sending.record,))


class Intent(Captured):
    """`content` are the arguments of httpx: `json`, `data`, `files`, `content`, `params`, and
    `headers`, of which credentials are left out: those belong to the client."""

    _client: Client

    def __init__(self, client: Client, record: Record) -> None:
        super().__init__(client, record)
        self._client = client

    def request(self, method: str, url: str, **content: Any) -> Answer:
        """Send it, as often as it takes, and get its answer. The first request that an intent is
        given is the one that it stands for: another one is refused with `IntentChanged`."""
        return self._client.drive(self._posting(method, url, content))

    def post(self, url: str, **content: Any) -> Answer:
        return self.request("POST", url, **content)

    def put(self, url: str, **content: Any) -> Answer:
        return self.request("PUT", url, **content)

    def patch(self, url: str, **content: Any) -> Answer:
        return self.request("PATCH", url, **content)

    def delete(self, url: str, **content: Any) -> Answer:
        return self.request("DELETE", url, **content)

    def resume(self, *, force: bool = False) -> Answer | None:
        """Send again what was on its way; None if nothing ever was. `force`: also when the server
        may have forgotten the key."""
        return self._client.drive(self._resuming(force))

    def recover(self) -> Answer | None:
        """Ask the server what became of it, and cause nothing. None when it knows nothing of it;
        `InFlight` while it runs."""
        return self._client.drive(self._recovering())

    def abandon(self) -> None:
        """Give it up: its key is forgotten, and its name is free."""
        self._client.drive(self._abandoning())


class AsyncIntent(Captured):
    """As `Intent`, to be awaited."""

    _client: AsyncClient

    def __init__(self, client: AsyncClient, record: Record) -> None:
        super().__init__(client, record)
        self._client = client

    async def request(self, method: str, url: str, **content: Any) -> Answer:
        """See `Intent.request`."""
        return await self._client.drive(self._posting(method, url, content))

    async def post(self, url: str, **content: Any) -> Answer:
        return await self.request("POST", url, **content)

    async def put(self, url: str, **content: Any) -> Answer:
        return await self.request("PUT", url, **content)

    async def patch(self, url: str, **content: Any) -> Answer:
        return await self.request("PATCH", url, **content)

    async def delete(self, url: str, **content: Any) -> Answer:
        return await self.request("DELETE", url, **content)

    async def resume(self, *, force: bool = False) -> Answer | None:
        """See `Intent.resume`."""
        return await self._client.drive(self._resuming(force))

    async def recover(self) -> Answer | None:
        """See `Intent.recover`."""
        return await self._client.drive(self._recovering())

    async def abandon(self) -> None:
        """See `Intent.abandon`."""
        await self._client.drive(self._abandoning())
