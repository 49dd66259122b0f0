-- The log of deliveries on SQLite. Names are shared with PostgreSQL; `core/deliveries.py` says what
-- each must do.

-- name: keep_delivery
INSERT INTO oncekey_deliveries (
    id, webhook, at, verdict, identifier, reason, operation, size, times, expires_at
)
VALUES (
    :id, :webhook, :at, :verdict, :identifier, :reason, :operation, :size, :times, :expires_at
)
ON CONFLICT DO NOTHING

-- name: sweep_deliveries
DELETE FROM oncekey_deliveries
WHERE id IN (
    SELECT id FROM oncekey_deliveries WHERE expires_at <= :now ORDER BY expires_at LIMIT :limit
)
RETURNING id

-- name: count_expired_deliveries
SELECT count(*) FROM oncekey_deliveries WHERE expires_at <= :now
