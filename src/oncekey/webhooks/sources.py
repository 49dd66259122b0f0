"""Webhooks that were made: found by their id, with the secrets their deliveries are signed with.

A webhook that was found is believed for `cache_seconds` without asking again; what is changed here
is seen at once by this process, and after that time by others.
"""

from __future__ import annotations

import functools
import secrets
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple, cast, get_args

from oncekey.core.api_keys import check_label
from oncekey.core.errors import InvalidInput, NotFound, SecretsUnavailable
from oncekey.core.ledger import Ledger
from oncekey.core.retention import MAX_SECONDS
from oncekey.core.scope import namespace_of
from oncekey.core.steps import Steps
from oncekey.core.webhooks import (
    ChangeWebhook,
    DropWebhook,
    FindWebhook,
    KeepWebhook,
    ListWebhooks,
    Repeats,
    StoredWebhook,
    check_provider_name,
    is_webhook_id,
    new_webhook_id,
)
from oncekey.webhooks.secrets import Ring, SecretKeeper, added, good, rotated
from oncekey.webhooks.then import Then, parse_then

SUBJECT = "service:webhook-ingest"
_CACHE_SECONDS = 2.0
OVERLAP = 86400.0


class Source(NamedTuple):
    """A webhook, without its secrets."""

    id: str
    tenant: str
    project: str
    provider: str
    then: Then
    label: str
    created_at: int
    repeats: Repeats = "refuse"


class _Known(NamedTuple):
    webhook: StoredWebhook
    source: Source
    until: float
    """By the steady clock."""
    ring: Ring | None = None


class Sources:
    def __init__(
        self,
        ledger: Ledger,
        keeper: SecretKeeper,
        *,
        cache_seconds: float = _CACHE_SECONDS,
        cache_size: int = 4096,
        randbits: Callable[[int], int] = secrets.randbits,
    ) -> None:
        self._ledger = ledger
        self._keeper = keeper
        self._clock = ledger.clock
        self._cache_milliseconds = cache_seconds * 1000
        self._cache_size = cache_size
        self._randbits = randbits
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._changes = 0

    async def find(self, webhook_id: str) -> Source | None:
        known = await self._know(webhook_id)
        return None if known is None else known.source

    async def secrets(self, source: Source) -> tuple[str, ...]:
        """Newest first. Raises `SecretsUnavailable`, also when there are none."""
        found = good(await self.ring(source), self._clock.now())
        if not found:
            raise SecretsUnavailable(
                f"{source.id} has no secret; give it one with `oncekey webhooks rotate {source.id}`"
            )
        return tuple(each.text for each in found)

    async def ring(self, source: Source) -> Ring:
        """All of them, with their times; also such as are no longer good."""
        known = await self._know(source.id)
        if known is None:
            raise NotFound(_none_of(source.id))
        if known.ring is not None:
            return known.ring
        ring = await self._keeper.read(known.webhook)
        if self._known.get(source.id) is known:
            self._known[source.id] = known._replace(ring=ring)
        return ring

    async def has_secret(self, tenant: str, project: str, provider: str) -> bool:
        """Whether a webhook can be made without giving it one: its keeper has one for it."""
        draft = self._draft(tenant, project, provider)
        return bool(good(await self._keeper.read(draft), self._clock.now()))

    async def create(
        self,
        tenant: str,
        project: str,
        provider: str,
        then: Then,
        *,
        secret: str | None,
        label: str = "",
        repeats: Repeats = "refuse",
    ) -> Source:
        """Without a `secret`, one must be there already, where the keeper keeps them.

        Raises `InvalidInput`, `ScopeInvalid`, `SecretsUnavailable`.
        """
        draft = self._draft(tenant, project, provider)
        webhook = draft._replace(
            follows=str(then), label=check_label(label), repeats=_checked(repeats)
        )
        now = webhook.created_at
        if secret is not None:
            change = functools.partial(added, text=secret, now=now, webhook_id=webhook.id)
            webhook = webhook._replace(secrets=await self._keeper.edit(webhook, change))
        elif not good(await self._keeper.read(webhook), now):
            raise InvalidInput("there is no secret for this provider yet; give one with --secret")
        await self._ledger.arun(_ask(KeepWebhook(webhook)))
        return _source_of(webhook)

    async def rotate(self, webhook_id: str, secret: str, *, overlap: float = OVERLAP) -> Source:
        """The secrets there are stay good for `overlap` seconds more. Raises `NotFound`."""
        if not 0 <= overlap <= MAX_SECONDS:
            raise InvalidInput(f"an overlap of {overlap} s is not between 0 and ten years")
        now = self._clock.now()
        change = functools.partial(
            rotated, text=secret, now=now, overlap=overlap, webhook_id=webhook_id
        )
        while True:
            old = await self._stored(webhook_id)
            kept = await self._keeper.edit(old, change)
            changed = await self._put(old, old._replace(secrets=kept))
            if changed is not None:
                return changed

    async def list(
        self, tenant: str | None = None, *, before: str | None = None, limit: int = 100
    ) -> list[Source]:
        """Newest first, of those made before the webhook of that id."""
        if tenant is not None:
            namespace_of(tenant)
        place = None
        if before is not None:
            last = await self._stored(before)
            place = (last.created_at, last.id)
        found = await self._ledger.arun(_ask(ListWebhooks(tenant, place, limit)))
        return [_source_of(each) for each in found]

    async def change(
        self,
        webhook_id: str,
        *,
        then: Then | None = None,
        label: str | None = None,
        repeats: Repeats | None = None,
    ) -> Source:
        """What is not given stays as it is. Raises `NotFound`."""
        while True:
            old = await self._stored(webhook_id)
            new = old._replace(
                follows=old.follows if then is None else str(then),
                label=old.label if label is None else check_label(label),
                repeats=old.repeats if repeats is None else _checked(repeats),
            )
            changed = await self._put(old, new)
            if changed is not None:
                return changed

    async def reseal(self, webhook_id: str) -> Source:
        """Seal its secrets anew, with the newest key: then the older ones can go."""
        while True:
            old = await self._stored(webhook_id)
            kept = await self._keeper.edit(old, lambda ring: ring)
            changed = await self._put(old, old._replace(secrets=kept))
            if changed is not None:
                return changed

    async def delete(self, webhook_id: str) -> bool:
        """Whether there was one. Its deliveries are refused from now on, its secrets are gone."""
        webhook = await self._look(webhook_id)
        if webhook is None:
            return False
        dropped: bool = await self._ledger.arun(_ask(DropWebhook(webhook_id)))
        self._forget(webhook_id)
        await self._keeper.forget(webhook)
        return dropped

    # -- the steps behind the verbs ------------------------------------------------------

    def _draft(self, tenant: str, project: str, provider: str) -> StoredWebhook:
        namespace_of(tenant, project, SUBJECT)
        check_provider_name(provider)
        number, now = new_webhook_id(self._randbits), self._clock.now()
        return StoredWebhook(number, tenant, project, provider, "", "", "refuse", "[]", 1, now, now)

    async def _know(self, webhook_id: str) -> _Known | None:
        """Only webhooks that exist are remembered: nobody fills the cache with what he makes up."""
        known = self._known.get(webhook_id)
        if known is not None and known.until > self._clock.steady():
            return known
        asked_at, changes = self._clock.steady(), self._changes
        webhook = await self._look(webhook_id)
        if webhook is None:
            self._known.pop(webhook_id, None)
            return None
        found = _Known(webhook, _source_of(webhook), asked_at + self._cache_milliseconds)
        # An answer that was under way while something was changed may be older than that.
        if changes == self._changes:
            self._known[webhook_id] = found
            self._known.move_to_end(webhook_id)
            while len(self._known) > self._cache_size:
                self._known.popitem(last=False)
        return found

    async def _stored(self, webhook_id: str) -> StoredWebhook:
        found = await self._look(webhook_id)
        if found is None:
            raise NotFound(_none_of(webhook_id))
        return found

    async def _look(self, webhook_id: str) -> StoredWebhook | None:
        """What cannot be an id is not asked for: no store need know what to make of it."""
        if not is_webhook_id(webhook_id):
            return None
        found: StoredWebhook | None = await self._ledger.arun(_ask(FindWebhook(webhook_id)))
        return found

    async def _put(self, old: StoredWebhook, new: StoredWebhook) -> Source | None:
        """None when somebody else has changed it meanwhile."""
        put = new._replace(version=old.version + 1, updated_at=self._clock.now())
        done = await self._ledger.arun(_ask(ChangeWebhook(put, old.version)))
        self._forget(old.id)
        return _source_of(put) if done else None

    def _forget(self, webhook_id: str) -> None:
        self._changes += 1
        self._known.pop(webhook_id, None)


def _source_of(webhook: StoredWebhook) -> Source:
    return Source(
        webhook.id,
        webhook.tenant,
        webhook.project,
        webhook.provider,
        parse_then(webhook.follows),
        webhook.label,
        webhook.created_at,
        _checked(webhook.repeats),
    )


def _checked(repeats: str) -> Repeats:
    if repeats not in get_args(Repeats):
        raise InvalidInput(f"repeats is refuse or allow, not {repeats!r}")
    return cast("Repeats", repeats)


def _none_of(webhook_id: str) -> str:
    return f"there is no webhook {webhook_id!r}; see `oncekey webhooks list`"


def _ask(request: Any) -> Steps[Any]:
    answer: Any = yield request
    return answer
