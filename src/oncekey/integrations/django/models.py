"""The ledger's tables for reading. Only the ledger writes them: it alone knows the fences."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, ClassVar, NoReturn

from django.db import models

from oncekey.core.model import Kind, Ref, State, operation_id_of
from oncekey.core.scope import Scope
from oncekey.integrations.django.ledgers import ledgers
from oncekey.stores.rows import decode_headers


class ReadOnlyError(TypeError):
    """The ledger's tables are read-only here; forget a key with its `purge()`."""


def _refuse(*_: Any, **__: Any) -> NoReturn:
    raise ReadOnlyError(ReadOnlyError.__doc__)


class Records(models.QuerySet):
    """Queries that read."""

    create = bulk_create = get_or_create = update_or_create = _refuse
    update = bulk_update = delete = _refuse


class Entry(models.Model):
    objects = Records.as_manager()

    class Meta:
        abstract = True

    def save(self, *args: Any, **kwargs: Any) -> NoReturn:
        _refuse()

    def delete(self, *args: Any, **kwargs: Any) -> NoReturn:
        _refuse()


class IdempotencyKey(Entry):
    """One key of one organization and endpoint; `outcome` is None until it is settled."""

    id = models.BigIntegerField(primary_key=True)
    digest = models.BinaryField()
    namespace = models.TextField("organization")
    endpoint = models.TextField()
    key = models.TextField()
    fingerprint = models.BinaryField()
    owner = models.BigIntegerField()
    fence = models.BigIntegerField("attempts")
    request_id = models.TextField()
    retention = models.TextField()
    created_at = models.BigIntegerField()
    expires_at = models.BigIntegerField()
    workflow_id = models.TextField(null=True)
    task_id = models.TextField(null=True)
    promise_id = models.TextField(null=True)

    class Meta:
        app_label = "oncekey"
        db_table = "oncekey_claims"
        ordering: ClassVar = ["-id"]
        verbose_name = "idempotency key"
        # Adding and changing is the ledger's; `delete` allows to purge.
        default_permissions = ("view", "delete")

    def __str__(self) -> str:
        return f"{self.key} ({self.endpoint})"

    @property
    def operation_id(self) -> str:
        return operation_id_of(self.id)

    @property
    def outcome(self) -> IdempotencyOutcome | None:
        return getattr(self, "settled", None)

    @property
    def state(self) -> State:
        return self.outcome.state if self.outcome else State.IN_PROGRESS

    @property
    def attempts(self) -> int:
        return int(self.fence)

    @property
    def created(self) -> datetime:
        return _moment(self.created_at)

    @property
    def expires(self) -> datetime:
        """An outcome is kept from when it is settled; a claim counts from when it was made."""
        return _moment(self.outcome.expires_at if self.outcome else self.expires_at)

    @property
    def ref(self) -> Ref:
        return Ref(Scope(self.namespace, self.endpoint), self.key)

    def purge(self) -> bool:
        """Forget the key: the next request with it runs."""
        return ledgers().for_operators(self._state.db).purge(self.ref)

    @classmethod
    def touch(cls, alias: str, number: int) -> None:
        """Write nothing new: it takes SQLite's one write lock for the transaction that is open."""
        plain = models.QuerySet(cls, using=alias)
        plain.filter(pk=number).update(fence=models.F("fence"))


class IdempotencyOutcome(Entry):
    """How an operation ended."""

    claim = models.OneToOneField(
        IdempotencyKey,
        primary_key=True,
        db_column="id",
        db_constraint=False,
        on_delete=models.DO_NOTHING,
        related_name="settled",
    )
    fence = models.BigIntegerField()
    kind = models.SmallIntegerField()
    status = models.IntegerField()
    headers = models.BinaryField()
    body = models.BinaryField()
    completed_at = models.BigIntegerField()
    expires_at = models.BigIntegerField()

    class Meta:
        app_label = "oncekey"
        db_table = "oncekey_outcomes"
        default_permissions = ()

    def __str__(self) -> str:
        return f"{Kind(self.kind).name.lower()} {self.status}"

    @property
    def state(self) -> State:
        failed = self.kind == Kind.ERROR or self.status >= 400
        return State.FAILED if failed else State.SUCCEEDED

    @property
    def completed(self) -> datetime:
        return _moment(self.completed_at)

    @property
    def header_lines(self) -> list[tuple[str, str]]:
        """The stored headers, in their order."""
        pairs = decode_headers(bytes(self.headers)) if self.headers else ()
        return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in pairs]


def _moment(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)
