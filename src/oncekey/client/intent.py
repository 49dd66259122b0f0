"""An intent in the hands of the caller: what it wants done, under one key, until it is known."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from oncekey.client.answer import Answer
from oncekey.client.intents import Record
from oncekey.client.request import credentials_in, freeze
from oncekey.client.sending import Keep, Sending
from oncekey.core.steps import Steps

if TYPE_CHECKING:
    from oncekey.client.client import AsyncClient, Client

C = TypeVar("C", bound="Client | AsyncClient")


class BaseIntent(Generic[C]):
    """What both colours have in common."""

    def __init__(self, client: C, record: Record) -> None:
        self._sending = Sending(client.terms, record)
        self._terms = client.terms
        self._client = client

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

    def _sending_of(self, method: str, url: str, content: dict[str, Any]) -> Steps[Answer]:
        frozen = freeze(self._client.http, self._terms.dialect, method, url, content)
        return self._sending.send(frozen, credentials_in(content.get("headers")))

    def _resuming(self, force: bool, headers: Any) -> Steps[Answer | None]:
        return self._sending.resume(credentials_in(headers), force=force)

    def _recovering(self, headers: Any) -> Steps[Answer | None]:
        return self._sending.recover(credentials_in(headers))

    def _abandoning(self) -> Steps[None]:
        yield Keep(self._terms.intents.forget, (self._sending.record,))


class Intent(BaseIntent["Client"]):
    """`content` are the arguments of httpx: `json`, `data`, `files`, `content`, `params`, and
    `headers`. Credentials among these are sent, and never kept."""

    def request(self, method: str, url: str, **content: Any) -> Answer:
        """Send it, as often as it takes, and get its answer. The first request that an intent is
        given is the one that it stands for: another one is refused with `IntentChanged`."""
        return self._client.drive(self._sending_of(method, url, content))

    def post(self, url: str, **content: Any) -> Answer:
        return self.request("POST", url, **content)

    def put(self, url: str, **content: Any) -> Answer:
        return self.request("PUT", url, **content)

    def patch(self, url: str, **content: Any) -> Answer:
        return self.request("PATCH", url, **content)

    def delete(self, url: str, **content: Any) -> Answer:
        return self.request("DELETE", url, **content)

    def resume(self, *, force: bool = False, headers: Any = None) -> Answer | None:
        """Send again what was on its way; None if nothing ever was, or it was given up. `force`:
        also when the server may have forgotten the key. `headers`: credentials for this call."""
        return self._client.drive(self._resuming(force, headers))

    def recover(self, *, headers: Any = None) -> Answer | None:
        """Ask the server what became of it, and cause nothing. None when it knows nothing of it;
        `InFlight` while it runs."""
        return self._client.drive(self._recovering(headers))

    def abandon(self) -> None:
        """Give it up: its key is forgotten, and its name is free."""
        self._client.drive(self._abandoning())


class AsyncIntent(BaseIntent["AsyncClient"]):
    """As `Intent`, to be awaited."""

    async def request(self, method: str, url: str, **content: Any) -> Answer:
        """See `Intent.request`."""
        return await self._client.drive(self._sending_of(method, url, content))

    async def post(self, url: str, **content: Any) -> Answer:
        return await self.request("POST", url, **content)

    async def put(self, url: str, **content: Any) -> Answer:
        return await self.request("PUT", url, **content)

    async def patch(self, url: str, **content: Any) -> Answer:
        return await self.request("PATCH", url, **content)

    async def delete(self, url: str, **content: Any) -> Answer:
        return await self.request("DELETE", url, **content)

    async def resume(self, *, force: bool = False, headers: Any = None) -> Answer | None:
        """See `Intent.resume`."""
        return await self._client.drive(self._resuming(force, headers))

    async def recover(self, *, headers: Any = None) -> Answer | None:
        """See `Intent.recover`."""
        return await self._client.drive(self._recovering(headers))

    async def abandon(self) -> None:
        """See `Intent.abandon`."""
        await self._client.drive(self._abandoning())
