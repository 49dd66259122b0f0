"""Keys and promises by the million, straight into the tables; every key has its own digest.

Numbers follow the clock as those of the product do, so that what is claimed later comes after them.
"""

import sqlite3
import time
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import oncekey
from bench.apps.claimer import FINGERPRINT, SCOPE, SETTLED, stored_key
from bench.apps.promiser import TENANT, promise_key
from bench.console.filling import Postgres, Sqlite, copy_into, fill_tables, opened
from bench.console.rows import DAY_MS, NUMBER_BITS, Table
from oncekey.core.execution import PromiseKind, PromiseState
from oncekey.core.model import Ref
from oncekey.core.work import ENGINE
from oncekey.durable.embedded.asking import PROMISES, ref_of
from oncekey.stores.rows import encode_headers

# So many rows share a millisecond: ten million take five seconds, less than it takes to write them.
A_MILLISECOND = 2000
_LINES = 20_000
_CLAIM = (
    "id", "digest", "namespace", "endpoint", "key", "fingerprint", "owner", "fence", "request_id",
    "retention", "created_at", "expires_at",
)  # fmt: skip
_CLAIMS = f"""
INSERT INTO oncekey_claims ({", ".join(_CLAIM)})
WITH RECURSIVE n (n) AS (SELECT :first UNION ALL SELECT n + 1 FROM n WHERE n < :last - 1)
SELECT
    ((:at + (n - :first) / :each) << :bits) + (n - :first) % :each, digest_of(n), :namespace,
    :endpoint, 'order-' || n, :fingerprint, 1, 1, '', 'interactive',
    :at + (n - :first) / :each, :at + (n - :first) / :each + :retention
FROM n
"""
_OUTCOMES = """
INSERT INTO oncekey_outcomes (id, fence, kind, status, headers, body, completed_at, expires_at)
SELECT id, 1, 0, 201, {headers}, {body}, created_at + 5, expires_at
FROM oncekey_claims WHERE id >= {lowest} AND id < {beyond} ORDER BY id
"""


def fill_keys(url: str, first: int, last: int, *, expired: bool = False) -> None:
    """Settled keys from one place to before another, kept for a day, or past their time already."""
    if first >= last:
        return
    oncekey.open(url, sweep_interval=0.0).close()
    at, kept = int(time.time() * 1000), 1 if expired else DAY_MS
    with opened(url) as database:
        if isinstance(database, sqlite3.Connection):
            _keys_in_sqlite(database, first, last, at, kept)
        else:
            _keys_in_postgres(database, first, last, at, kept)


def _keys_in_sqlite(file: Sqlite, first: int, last: int, at: int, kept: int) -> None:
    file.create_function("digest_of", 1, _digest_of, deterministic=True)
    values = {
        "first": first, "last": last, "at": at, "each": A_MILLISECOND, "bits": NUMBER_BITS,
        "namespace": SCOPE.namespace, "endpoint": SCOPE.endpoint, "fingerprint": FINGERPRINT,
        "retention": kept,
    }  # fmt: skip
    file.execute(_CLAIMS, values)
    file.execute(
        _OUTCOMES.format(headers=":headers", body=":body", lowest=":lowest", beyond=":beyond"),
        _outcome(first, last, at),
    )


def _keys_in_postgres(database: Postgres, first: int, last: int, at: int, kept: int) -> None:
    with database.cursor() as cursor, cursor.copy(copy_into("oncekey_claims", _CLAIM)) as copy:
        for start in range(first, last, _LINES):
            places = range(start, min(start + _LINES, last))
            copy.write("".join(_line(place, place - first, at, kept) for place in places))
    marks = {name: f"%({name})s" for name in ("headers", "body", "lowest", "beyond")}
    database.execute(_OUTCOMES.format(**marks).encode(), _outcome(first, last, at))


def _outcome(first: int, last: int, at: int) -> dict[str, Any]:
    return {
        "headers": encode_headers(SETTLED.headers),
        "body": SETTLED.body,
        "lowest": at << NUMBER_BITS,
        "beyond": (at + (last - first) // A_MILLISECOND + 1) << NUMBER_BITS,
    }


def _line(place: int, offset: int, at: int, kept: int) -> str:
    """Of PostgreSQL's text format."""
    created_at = at + offset // A_MILLISECOND
    number = (created_at << NUMBER_BITS) + offset % A_MILLISECOND
    return (
        f"{number}\t\\\\x{_digest_of(place).hex()}\t{SCOPE.namespace}\t{SCOPE.endpoint}\torder-{place}"
        f"\t\\\\x{FINGERPRINT.hex()}\t1\t1\t\tinteractive\t{created_at}\t{created_at + kept}\n"
    )


def _digest_of(place: int) -> bytes:
    return blake2b(_HEAD + str(place).encode(), digest_size=16).digest()


# What is the same in the digest of every key is put together once: there are millions.
_HEAD = (
    f"{len(SCOPE.namespace)}:{SCOPE.namespace}{len(SCOPE.endpoint)}:{SCOPE.endpoint}order-".encode()
)
assert _digest_of(7) == Ref(SCOPE, stored_key(7)).digest


# -- promises ----------------------------------------------------------------------------------


def fill_promises(url: str, first: int, last: int) -> None:
    """Pending, each with a key that is good for a day, as the API makes them."""
    oncekey.open(url, sweep_interval=0.0).close()
    at = int(time.time() * 1000)
    with opened(url) as database:
        fill_tables(
            database,
            [
                Table("oncekey_claims", (*_CLAIM, "promise_id"), _promise_claims(first, last, at)),
                Table("oncekey_promises", _PROMISE, _promises(first, last, at)),
            ],
        )


_PROMISE = (
    "id", "tenant", "kind", "name", "state", "created_at", "fingerprint", "keyed", "attempts",
)  # fmt: skip


def _numbers(first: int, last: int, at: int) -> Iterator[tuple[int, int, int]]:
    """Place, number and time of each."""
    for offset in range(last - first):
        created_at = at + offset // A_MILLISECOND
        number = (created_at << NUMBER_BITS) + offset % A_MILLISECOND
        yield first + offset, number, created_at


def _promise_claims(first: int, last: int, at: int) -> Iterator[tuple[Any, ...]]:
    for place, number, created_at in _numbers(first, last, at):
        ref = ref_of(TENANT, PROMISES, promise_key(place))
        yield (
            number, ref.digest, ref.scope.namespace, ref.scope.endpoint, ref.key, bytes(16),
            ENGINE, 1, "", "interactive", created_at, created_at + DAY_MS, f"pr_{number:016x}:paid",
        )  # fmt: skip


def _promises(first: int, last: int, at: int) -> Iterator[tuple[Any, ...]]:
    kind, state = int(PromiseKind.PROMISE), int(PromiseState.PENDING)
    for _, number, created_at in _numbers(first, last, at):
        yield (number, TENANT, kind, "paid", state, created_at, bytes(16), 1, 0)
