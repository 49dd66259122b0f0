-- Lists on SQLite, newest first. Names are shared with PostgreSQL; `stores/windows.py` says what
-- each must do: an index leads to the numbers from `since` up to `before`, which are not many, and
-- what else is asked for is looked for there. An edge is the number so many places below `before`.

-- name: lowest_floor
-- Whatever a process has claimed and not settled lies above it.
SELECT coalesce(min(floor), 0) FROM oncekey_owners

-- name: list_keys
SELECT * FROM oncekey_key_rows
WHERE id < :before AND id >= :since
    AND (:namespace IS NULL OR namespace = :namespace)
    AND (:within IS NULL OR substr(namespace, 1, length(:within)) = :within)
    AND (:endpoint IS NULL OR endpoint = :endpoint)
    AND (:prefix IS NULL OR substr(key, 1, length(:prefix)) = :prefix)
    AND (:key IS NULL OR key = :key)
    AND (:state IS NULL OR :state = CASE
        WHEN kind IS NULL THEN CASE WHEN promise_id IS NULL THEN 0 ELSE 3 END
        WHEN kind = 2 OR status >= 400 THEN 2
        ELSE 1 END)
    AND (kind IS NULL OR kept_until > :now)
ORDER BY id DESC
LIMIT :limit

-- name: list_keys_edge
SELECT id FROM oncekey_claims
WHERE id < :before AND id >= :lowest
ORDER BY id DESC
LIMIT 1 OFFSET :skip

-- name: list_held_keys
-- What nobody has any more, or durable work has: it may lie below every floor.
SELECT * FROM oncekey_key_rows
WHERE id IN (
        SELECT c.id FROM oncekey_claims AS c
        WHERE c.owner = 0 AND c.id < :before AND c.id >= :since
        UNION ALL
        SELECT c.id FROM oncekey_claims AS c
        WHERE c.owner = -2 AND c.id < :before AND c.id >= :since
    )
    AND (:namespace IS NULL OR namespace = :namespace)
    AND (:within IS NULL OR substr(namespace, 1, length(:within)) = :within)
    AND (:endpoint IS NULL OR endpoint = :endpoint)
    AND (:prefix IS NULL OR substr(key, 1, length(:prefix)) = :prefix)
    AND (:key IS NULL OR key = :key)
    AND kind IS NULL AND (promise_id IS NOT NULL) = (:state = 3)
ORDER BY id DESC
LIMIT :limit

-- name: list_held_keys_edge
SELECT c.id FROM oncekey_claims AS c
WHERE c.owner = 0 AND c.id < :before AND c.id >= :lowest
UNION ALL
SELECT c.id FROM oncekey_claims AS c
WHERE c.owner = -2 AND c.id < :before AND c.id >= :lowest
ORDER BY id DESC
LIMIT 1 OFFSET :skip

-- name: list_executions
SELECT * FROM oncekey_execution_rows
WHERE id < :before AND id >= :since
    AND (:status IS NULL OR status = :status)
    AND (:name IS NULL OR name = :name)
    AND (:sort IS NULL OR sort = :sort)
ORDER BY id DESC
LIMIT :limit

-- name: list_executions_edge
SELECT id FROM oncekey_executions
WHERE id < :before AND id >= :lowest
ORDER BY id DESC
LIMIT 1 OFFSET :skip

-- name: list_executions_of
SELECT * FROM oncekey_execution_rows
WHERE tenant = :tenant AND id < :before AND id >= :since
    AND (:status IS NULL OR status = :status)
    AND (:name IS NULL OR name = :name)
    AND (:sort IS NULL OR sort = :sort)
ORDER BY id DESC
LIMIT :limit

-- name: list_executions_of_edge
SELECT id FROM oncekey_executions
WHERE tenant = :tenant AND id < :before AND id >= :lowest
ORDER BY id DESC
LIMIT 1 OFFSET :skip

-- name: list_stuck
SELECT * FROM oncekey_execution_rows
WHERE status IN (4, 6) AND status = :status AND id < :before AND id >= :since
    AND (:tenant IS NULL OR tenant = :tenant)
    AND (:name IS NULL OR name = :name)
    AND (:sort IS NULL OR sort = :sort)
ORDER BY id DESC
LIMIT :limit

-- name: list_stuck_edge
SELECT id FROM oncekey_executions
WHERE status IN (4, 6) AND status = :status AND id < :before AND id >= :lowest
ORDER BY id DESC
LIMIT 1 OFFSET :skip

-- name: list_live
-- READY and RUNNING are few beside all others, and have an index that does not sort them by number.
SELECT * FROM oncekey_execution_rows
WHERE id IN (
    SELECT e.id FROM oncekey_executions AS e INDEXED BY oncekey_executions_live
    WHERE e.status < 2 AND e.status = :status AND e.id < :before AND e.id >= :since
        AND (:tenant IS NULL OR e.tenant = :tenant)
        AND (:name IS NULL OR e.name = :name)
        AND (:sort IS NULL OR e.sort = :sort)
    ORDER BY e.id DESC
    LIMIT :limit
)
ORDER BY id DESC

-- name: list_promises
SELECT * FROM oncekey_promise_rows
WHERE id < :before AND id >= :since
    AND (:tenant IS NULL OR tenant = :tenant)
    AND kind = :kind
    AND (:state IS NULL OR state = :state)
    AND (:key IS NULL OR key = :key)
ORDER BY id DESC
LIMIT :limit

-- name: list_promises_edge
SELECT id FROM oncekey_promises
WHERE id < :before AND id >= :lowest
ORDER BY id DESC
LIMIT 1 OFFSET :skip

-- name: list_promises_of
SELECT * FROM oncekey_promise_rows
WHERE tenant = :tenant AND kind = 0 AND id < :before AND id >= :since
    AND (:state IS NULL OR state = :state)
    AND (:key IS NULL OR key = :key)
ORDER BY id DESC
LIMIT :limit

-- name: list_promises_of_edge
SELECT id FROM oncekey_promises
WHERE tenant = :tenant AND kind = 0 AND id < :before AND id >= :lowest
ORDER BY id DESC
LIMIT 1 OFFSET :skip

-- name: list_promises_within
-- Those of one execution.
SELECT * FROM oncekey_promise_rows
WHERE id IN (
        SELECT p.id FROM oncekey_promises AS p
        WHERE p.execution = :execution AND p.id < :before AND p.id >= :since
    )
    AND (:tenant IS NULL OR tenant = :tenant)
    AND (:kind IS NULL OR kind = :kind)
    AND (:state IS NULL OR state = :state)
    AND (:key IS NULL OR key = :key)
ORDER BY id DESC
LIMIT :limit

-- name: list_events
SELECT id, tenant, topic, data, headers, created_at, expires_at, matched FROM oncekey_events
WHERE id < :before AND id >= :since AND (:topic IS NULL OR topic = :topic)
ORDER BY id DESC
LIMIT :limit

-- name: list_events_edge
SELECT id FROM oncekey_events
WHERE id < :before AND id >= :lowest
ORDER BY id DESC
LIMIT 1 OFFSET :skip

-- name: list_events_of
SELECT id, tenant, topic, data, headers, created_at, expires_at, matched FROM oncekey_events
WHERE tenant = :tenant AND id < :before AND id >= :since
ORDER BY id DESC
LIMIT :limit

-- name: list_events_of_topic
SELECT id, tenant, topic, data, headers, created_at, expires_at, matched FROM oncekey_events
WHERE tenant = :tenant AND topic = :topic AND id < :before AND id >= :since
ORDER BY id DESC
LIMIT :limit

-- name: list_deliveries
SELECT id, webhook, at, verdict, identifier, reason, operation, size, times, expires_at
FROM oncekey_deliveries
WHERE id < :before AND id >= :since
    AND (:verdict IS NULL OR verdict = :verdict)
    AND (:identifier IS NULL OR identifier = :identifier)
ORDER BY id DESC
LIMIT :limit

-- name: list_deliveries_edge
SELECT id FROM oncekey_deliveries
WHERE id < :before AND id >= :lowest
ORDER BY id DESC
LIMIT 1 OFFSET :skip

-- name: list_deliveries_of
SELECT id, webhook, at, verdict, identifier, reason, operation, size, times, expires_at
FROM oncekey_deliveries
WHERE webhook = :webhook AND id < :before AND id >= :since
    AND (:verdict IS NULL OR verdict = :verdict)
    AND (:identifier IS NULL OR identifier = :identifier)
ORDER BY id DESC
LIMIT :limit

-- name: list_deliveries_of_edge
SELECT id FROM oncekey_deliveries
WHERE webhook = :webhook AND id < :before AND id >= :lowest
ORDER BY id DESC
LIMIT 1 OFFSET :skip

-- name: list_deliveries_for
-- Those of one operation.
SELECT id, webhook, at, verdict, identifier, reason, operation, size, times, expires_at
FROM oncekey_deliveries
WHERE operation = :operation AND id < :before AND id >= :since
    AND (:webhook IS NULL OR webhook = :webhook)
    AND (:verdict IS NULL OR verdict = :verdict)
    AND (:identifier IS NULL OR identifier = :identifier)
ORDER BY id DESC
LIMIT :limit

-- name: list_audit
SELECT id, at, actor, action, target, tenant, details
FROM oncekey_audit
WHERE id < :before AND id >= :since
    AND (:actor IS NULL OR actor = :actor)
    AND (:action IS NULL OR action = :action)
    AND (:target IS NULL OR target = :target)
ORDER BY id DESC
LIMIT :limit

-- name: list_audit_edge
SELECT id FROM oncekey_audit
WHERE id < :before AND id >= :lowest
ORDER BY id DESC
LIMIT 1 OFFSET :skip

-- name: list_audit_of
SELECT id, at, actor, action, target, tenant, details
FROM oncekey_audit
WHERE tenant = :tenant AND id < :before AND id >= :since
    AND (:actor IS NULL OR actor = :actor)
    AND (:action IS NULL OR action = :action)
    AND (:target IS NULL OR target = :target)
ORDER BY id DESC
LIMIT :limit

-- name: list_audit_of_edge
SELECT id FROM oncekey_audit
WHERE tenant = :tenant AND id < :before AND id >= :lowest
ORDER BY id DESC
LIMIT 1 OFFSET :skip
