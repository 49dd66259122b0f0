-- Schedules on SQLite. Names are shared with PostgreSQL; `core/schedules.py` says what each must do.

-- name: keep_schedule
-- One statement, so that processes that start together agree: only another declaration moves the
-- next tick or undoes what an operator has paused.
INSERT INTO oncekey_schedules (id, tenant, spec, paused, next_at, last_at, updated_at)
VALUES (:id, :tenant, :spec, :paused, :next_at, NULL, :now)
ON CONFLICT (id) DO UPDATE SET
    tenant = excluded.tenant,
    spec = excluded.spec,
    paused = CASE
        WHEN spec ->> 'paused' IS excluded.spec ->> 'paused' THEN paused
        ELSE excluded.paused END,
    next_at = CASE
        WHEN spec ->> 'paused' IS excluded.spec ->> 'paused'
            AND spec ->> 'timing' IS excluded.spec ->> 'timing' THEN next_at
        ELSE excluded.next_at END,
    updated_at = excluded.updated_at
RETURNING id, tenant, spec, paused, next_at, last_at, updated_at

-- name: pause_schedule
UPDATE oncekey_schedules SET
    paused = :paused,
    next_at = CASE WHEN paused = 1 AND :paused = 0 THEN :next_at ELSE next_at END,
    updated_at = :now
WHERE id = :id
RETURNING id, tenant, spec, paused, next_at, last_at, updated_at

-- name: take_tick
-- Whoever comes second sees another next tick, and changes nothing.
UPDATE oncekey_schedules
SET next_at = :next_at, last_at = coalesce(:last_at, last_at), updated_at = :now
WHERE id = :id AND next_at = :seen
RETURNING id

-- name: drop_schedule
DELETE FROM oncekey_schedules WHERE id = :id RETURNING id

-- name: find_schedule
SELECT id, tenant, spec, paused, next_at, last_at, updated_at FROM oncekey_schedules
WHERE id = :id

-- name: list_schedules
SELECT id, tenant, spec, paused, next_at, last_at, updated_at FROM oncekey_schedules
WHERE id > :after AND (:tenant IS NULL OR tenant = :tenant)
ORDER BY id
LIMIT :limit

-- name: due_schedules
SELECT id, tenant, spec, paused, next_at, last_at, updated_at FROM oncekey_schedules
WHERE paused = 0 AND next_at <= :now AND (next_at, id) > (:tick, :id)
ORDER BY next_at, id
LIMIT :limit

-- name: next_schedule
SELECT min(next_at) FROM oncekey_schedules WHERE paused = 0 AND next_at > :now
