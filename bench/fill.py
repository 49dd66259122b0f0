"""Fills a SQLite ledger with settled keys, by the million, straight into its tables.

The ledger makes its own schema first. Indexes are set aside while rows go in and are built
again from their own definitions, which ends with the same file in a fraction of the time.
"""

import sqlite3
import time
from pathlib import Path

import oncekey
from oncekey.stores.rows import encode_headers

HOUR_MS = 3_600_000
RETENTION_MS = 24 * HOUR_MS
# The number of an operation carries its millisecond above these bits.
NUMBER_BITS = 21

_CLAIMS = """
INSERT INTO oncekey_claims (
    id, digest, namespace, endpoint, key, fingerprint, owner, fence, request_id, retention,
    created_at, expires_at
)
WITH RECURSIVE n (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM n WHERE n < :rows - 1)
SELECT
    ((:first + n * :span / :rows) << :bits) + n % (1 << :bits), randomblob(16),
    't-default:_tenant:client:anonymous', 'POST /orders', 'order-' || n, randomblob(16), 1, 1, '',
    'interactive', :first + n * :span / :rows, :first + n * :span / :rows + :retention
FROM n
"""
_OUTCOMES = """
INSERT INTO oncekey_outcomes (id, fence, kind, status, headers, body, completed_at, expires_at)
SELECT id, 1, 0, 201, :headers, :body, created_at + 5, expires_at
FROM oncekey_claims WHERE created_at BETWEEN :first AND :first + :span
"""
_INDEXES = """
SELECT name, sql FROM sqlite_master
WHERE type = 'index' AND sql IS NOT NULL
    AND tbl_name IN ('oncekey_claims', 'oncekey_outcomes')
"""


def fill(database: Path, *, live: int, expired: int = 0) -> Path:
    """A ledger with `live` keys of the last day and `expired` keys of the day before."""
    oncekey.open(f"sqlite:///{database}").close()
    now = int(time.time() * 1000)
    connection = sqlite3.connect(database, isolation_level=None)
    connection.execute("PRAGMA journal_mode = OFF")
    connection.execute("PRAGMA synchronous = OFF")
    indexes = connection.execute(_INDEXES).fetchall()
    for name, _ in indexes:
        connection.execute(f"DROP INDEX {name}")
    _insert(connection, expired, now - 48 * HOUR_MS, 23 * HOUR_MS)
    _insert(connection, live, now - 20 * HOUR_MS, 19 * HOUR_MS)
    for _, sql in indexes:
        connection.execute(sql)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.close()
    return database


def _insert(connection: sqlite3.Connection, rows: int, first: int, span: int) -> None:
    if not rows:
        return
    when = {"first": first, "span": span}
    connection.execute("BEGIN")
    connection.execute(
        _CLAIMS, {**when, "rows": rows, "bits": NUMBER_BITS, "retention": RETENTION_MS}
    )
    headers = encode_headers(((b"content-type", b"application/json"),))
    body = b'{"id":"ord_1","ok":true}'
    connection.execute(_OUTCOMES, {**when, "headers": headers, "body": body})
    connection.execute("COMMIT")
