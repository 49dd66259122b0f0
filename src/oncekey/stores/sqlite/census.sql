-- Counting on SQLite. Names are shared with PostgreSQL; `stores/work/census.py` says what each must
-- do.

-- name: count_claims
-- What is in progress lies above the lowest floor, unless nobody has it any more.
SELECT open, count(*), min(created_at), max(id)
FROM (
    SELECT
        c.id, c.created_at,
        c.owner <> -2 AND NOT EXISTS (
            SELECT 1 FROM oncekey_outcomes AS o WHERE o.id = c.id
        ) AS open
    FROM oncekey_claims AS c
    WHERE c.id > :after AND c.id >= coalesce((SELECT min(floor) FROM oncekey_owners), 0)
    ORDER BY c.id
    LIMIT :limit
)
GROUP BY open

-- name: count_abandoned
SELECT count(*), min(c.created_at)
FROM oncekey_claims AS c
WHERE c.owner = 0 AND c.id < coalesce((SELECT min(floor) FROM oncekey_owners), 0)
    AND NOT EXISTS (SELECT 1 FROM oncekey_outcomes AS o WHERE o.id = c.id)

-- name: count_executions
SELECT sort, status, count(*), min(created_at), max(id)
FROM (
    SELECT id, sort, status, created_at FROM oncekey_executions
    WHERE id > :after
    ORDER BY id
    LIMIT :limit
)
GROUP BY sort, status

-- name: count_promises
SELECT kind, state, count(*), min(created_at), max(id)
FROM (
    SELECT id, kind, state, created_at FROM oncekey_promises
    WHERE id > :after
    ORDER BY id
    LIMIT :limit
)
GROUP BY kind, state
