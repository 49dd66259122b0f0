-- Schedules on PostgreSQL. Names are shared with SQLite; `core/schedules.py` says what each must do.

-- name: keep_schedule
-- One statement, so that processes that start together agree: only another declaration moves the
-- next tick or undoes what an operator has paused.
INSERT INTO oncekey_schedules AS s (id, tenant, spec, paused, next_at, last_at, updated_at)
VALUES (%(id)s, %(tenant)s, %(spec)s, %(paused)s, %(next_at)s, NULL, %(now)s)
ON CONFLICT (id) DO UPDATE SET
    tenant = excluded.tenant,
    spec = excluded.spec,
    paused = CASE
        WHEN CAST(s.spec AS json) ->> 'paused' = CAST(excluded.spec AS json) ->> 'paused'
        THEN s.paused
        ELSE excluded.paused END,
    next_at = CASE
        WHEN CAST(s.spec AS json) ->> 'paused' = CAST(excluded.spec AS json) ->> 'paused'
            AND CAST(s.spec AS json) ->> 'timing' = CAST(excluded.spec AS json) ->> 'timing'
        THEN s.next_at
        ELSE excluded.next_at END,
    updated_at = excluded.updated_at
RETURNING s.id, s.tenant, s.spec, s.paused, s.next_at, s.last_at, s.updated_at

-- name: pause_schedule
UPDATE oncekey_schedules SET
    paused = %(paused)s,
    next_at = CASE
        WHEN paused = 1 AND CAST(%(paused)s AS INTEGER) = 0 THEN %(next_at)s
        ELSE next_at END,
    updated_at = %(now)s
WHERE id = %(id)s
RETURNING id, tenant, spec, paused, next_at, last_at, updated_at

-- name: take_tick
-- Whoever comes second sees another next tick, and changes nothing.
UPDATE oncekey_schedules SET
    next_at = %(next_at)s,
    last_at = coalesce(CAST(%(last_at)s AS BIGINT), last_at),
    updated_at = %(now)s
WHERE id = %(id)s AND next_at = %(seen)s
RETURNING id

-- name: drop_schedule
DELETE FROM oncekey_schedules WHERE id = %(id)s RETURNING id

-- name: find_schedule
SELECT id, tenant, spec, paused, next_at, last_at, updated_at FROM oncekey_schedules
WHERE id = %(id)s

-- name: list_schedules
SELECT id, tenant, spec, paused, next_at, last_at, updated_at FROM oncekey_schedules
WHERE id > %(after)s COLLATE "C"
    AND (CAST(%(tenant)s AS TEXT) IS NULL OR tenant = %(tenant)s)
ORDER BY id COLLATE "C"
LIMIT %(limit)s

-- name: due_schedules
SELECT id, tenant, spec, paused, next_at, last_at, updated_at FROM oncekey_schedules
WHERE paused = 0 AND next_at <= %(now)s
    AND (next_at, id COLLATE "C") > (CAST(%(tick)s AS BIGINT), CAST(%(id)s AS TEXT))
ORDER BY next_at, id COLLATE "C"
LIMIT %(limit)s

-- name: next_schedule
SELECT min(next_at) FROM oncekey_schedules WHERE paused = 0 AND next_at > %(now)s
