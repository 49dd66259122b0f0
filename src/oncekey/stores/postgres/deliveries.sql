-- The log of deliveries on PostgreSQL. Names are shared with SQLite; `core/deliveries.py` says what
-- each must do.

-- name: keep_delivery
INSERT INTO oncekey_deliveries (
    id, webhook, at, verdict, identifier, reason, operation, size, times, expires_at
)
VALUES (
    %(id)s, %(webhook)s, %(at)s, %(verdict)s, %(identifier)s, %(reason)s, %(operation)s,
    %(size)s, %(times)s, %(expires_at)s
)
ON CONFLICT DO NOTHING

-- name: sweep_deliveries
DELETE FROM oncekey_deliveries
WHERE id IN (
    SELECT id FROM oncekey_deliveries
    WHERE expires_at <= %(now)s
    ORDER BY expires_at
    LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
)
RETURNING id

-- name: count_expired_deliveries
SELECT count(*) FROM oncekey_deliveries WHERE expires_at <= %(now)s
