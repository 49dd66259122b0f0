-- Lists on PostgreSQL, newest first. Names are shared with SQLite; `stores/windows.py` says what
-- each must do: an index leads to the numbers from `since` up to `before`, which are not many, and
-- what else is asked for is looked for there. An edge is the number so many places below `before`.
--
-- Those of one tenant, webhook, status or operation are compared and sorted by that, too: only so
-- does every plan use the index that begins with it. A plan for whatever tenant would else go through
-- the numbers of all.

-- name: lowest_floor
-- Whatever a process has claimed and not settled lies above it.
SELECT coalesce(min(floor), 0) FROM oncekey_owners

-- name: list_keys
SELECT * FROM oncekey_key_rows
WHERE id < %(before)s AND id >= %(since)s
    AND (CAST(%(namespace)s AS TEXT) IS NULL OR namespace = %(namespace)s)
    AND (CAST(%(within)s AS TEXT) IS NULL OR starts_with(namespace, %(within)s))
    AND (CAST(%(endpoint)s AS TEXT) IS NULL OR endpoint = %(endpoint)s)
    AND (CAST(%(prefix)s AS TEXT) IS NULL OR starts_with(key, %(prefix)s))
    AND (CAST(%(key)s AS TEXT) IS NULL OR key = %(key)s)
    AND (CAST(%(state)s AS INTEGER) IS NULL OR CAST(%(state)s AS INTEGER) = CASE
        WHEN kind IS NULL THEN CASE WHEN promise_id IS NULL THEN 0 ELSE 3 END
        WHEN kind = 2 OR status >= 400 THEN 2
        ELSE 1 END)
    AND (kind IS NULL OR kept_until > %(now)s)
ORDER BY id DESC
LIMIT %(limit)s

-- name: list_keys_edge
SELECT id FROM oncekey_claims
WHERE id < %(before)s AND id >= %(lowest)s
ORDER BY id DESC
LIMIT 1 OFFSET %(skip)s

-- name: list_held_keys
-- What nobody has any more, or durable work has: it may lie below every floor. A window of it is
-- sorted, since it comes from two indexes.
SELECT k.*
FROM (
    SELECT c.id FROM oncekey_claims AS c
    WHERE c.owner = 0 AND c.id < %(before)s AND c.id >= %(since)s
    UNION ALL
    SELECT c.id FROM oncekey_claims AS c
    WHERE c.owner = -2 AND c.id < %(before)s AND c.id >= %(since)s
) AS held
JOIN oncekey_key_rows AS k ON k.id = held.id
WHERE (CAST(%(namespace)s AS TEXT) IS NULL OR k.namespace = %(namespace)s)
    AND (CAST(%(within)s AS TEXT) IS NULL OR starts_with(k.namespace, %(within)s))
    AND (CAST(%(endpoint)s AS TEXT) IS NULL OR k.endpoint = %(endpoint)s)
    AND (CAST(%(prefix)s AS TEXT) IS NULL OR starts_with(k.key, %(prefix)s))
    AND (CAST(%(key)s AS TEXT) IS NULL OR k.key = %(key)s)
    AND k.kind IS NULL AND (k.promise_id IS NOT NULL) = (CAST(%(state)s AS INTEGER) = 3)
ORDER BY k.id DESC
LIMIT %(limit)s

-- name: list_held_keys_edge
SELECT id
FROM (
    (
        SELECT c.id FROM oncekey_claims AS c
        WHERE c.owner = 0 AND c.id < %(before)s AND c.id >= %(lowest)s
        ORDER BY c.id DESC
        LIMIT %(skip)s + 1
    )
    UNION ALL
    (
        SELECT c.id FROM oncekey_claims AS c
        WHERE c.owner = -2 AND c.id < %(before)s AND c.id >= %(lowest)s
        ORDER BY c.id DESC
        LIMIT %(skip)s + 1
    )
) AS held
ORDER BY id DESC
LIMIT 1 OFFSET %(skip)s

-- name: list_executions
SELECT * FROM oncekey_execution_rows
WHERE id < %(before)s AND id >= %(since)s
    AND (CAST(%(status)s AS INTEGER) IS NULL OR status = %(status)s)
    AND (CAST(%(name)s AS TEXT) IS NULL OR name = %(name)s)
    AND (CAST(%(sort)s AS INTEGER) IS NULL OR sort = %(sort)s)
ORDER BY id DESC
LIMIT %(limit)s

-- name: list_executions_edge
SELECT id FROM oncekey_executions
WHERE id < %(before)s AND id >= %(lowest)s
ORDER BY id DESC
LIMIT 1 OFFSET %(skip)s

-- name: list_executions_of
SELECT * FROM oncekey_execution_rows
WHERE (tenant, id) < (%(tenant)s, %(before)s)
    AND (tenant, id) >= (%(tenant)s, %(since)s)
    AND (CAST(%(status)s AS INTEGER) IS NULL OR status = %(status)s)
    AND (CAST(%(name)s AS TEXT) IS NULL OR name = %(name)s)
    AND (CAST(%(sort)s AS INTEGER) IS NULL OR sort = %(sort)s)
ORDER BY tenant DESC, id DESC
LIMIT %(limit)s

-- name: list_executions_of_edge
SELECT id FROM oncekey_executions
WHERE (tenant, id) < (%(tenant)s, %(before)s)
    AND (tenant, id) >= (%(tenant)s, %(lowest)s)
ORDER BY tenant DESC, id DESC
LIMIT 1 OFFSET %(skip)s

-- name: list_stuck
SELECT * FROM oncekey_execution_rows
WHERE (status, id) < (%(status)s, %(before)s)
    AND (status, id) >= (%(status)s, %(since)s) AND status IN (4, 6)
    AND (CAST(%(tenant)s AS TEXT) IS NULL OR tenant = %(tenant)s)
    AND (CAST(%(name)s AS TEXT) IS NULL OR name = %(name)s)
    AND (CAST(%(sort)s AS INTEGER) IS NULL OR sort = %(sort)s)
ORDER BY status DESC, id DESC
LIMIT %(limit)s

-- name: list_stuck_edge
SELECT id FROM oncekey_executions
WHERE (status, id) < (%(status)s, %(before)s)
    AND (status, id) >= (%(status)s, %(lowest)s) AND status IN (4, 6)
ORDER BY status DESC, id DESC
LIMIT 1 OFFSET %(skip)s

-- name: list_live
-- READY and RUNNING are few beside all others, and have an index that does not sort them by number.
SELECT * FROM oncekey_execution_rows
WHERE id IN (
    SELECT e.id FROM oncekey_executions AS e
    WHERE e.status < 2 AND e.status = %(status)s AND e.id < %(before)s AND e.id >= %(since)s
        AND (CAST(%(tenant)s AS TEXT) IS NULL OR e.tenant = %(tenant)s)
        AND (CAST(%(name)s AS TEXT) IS NULL OR e.name = %(name)s)
        AND (CAST(%(sort)s AS INTEGER) IS NULL OR e.sort = %(sort)s)
    ORDER BY e.id DESC
    LIMIT %(limit)s
)
ORDER BY id DESC

-- name: list_promises
SELECT * FROM oncekey_promise_rows
WHERE id < %(before)s AND id >= %(since)s
    AND (CAST(%(tenant)s AS TEXT) IS NULL OR tenant = %(tenant)s)
    AND kind = %(kind)s
    AND (CAST(%(state)s AS INTEGER) IS NULL OR state = %(state)s)
    AND (CAST(%(key)s AS TEXT) IS NULL OR key = %(key)s)
ORDER BY id DESC
LIMIT %(limit)s

-- name: list_promises_edge
SELECT id FROM oncekey_promises
WHERE id < %(before)s AND id >= %(lowest)s
ORDER BY id DESC
LIMIT 1 OFFSET %(skip)s

-- name: list_promises_of
SELECT * FROM oncekey_promise_rows
WHERE (tenant, id) < (%(tenant)s, %(before)s)
    AND (tenant, id) >= (%(tenant)s, %(since)s) AND kind = 0
    AND (CAST(%(state)s AS INTEGER) IS NULL OR state = %(state)s)
    AND (CAST(%(key)s AS TEXT) IS NULL OR key = %(key)s)
ORDER BY tenant DESC, id DESC
LIMIT %(limit)s

-- name: list_promises_of_edge
SELECT id FROM oncekey_promises
WHERE (tenant, id) < (%(tenant)s, %(before)s)
    AND (tenant, id) >= (%(tenant)s, %(lowest)s) AND kind = 0
ORDER BY tenant DESC, id DESC
LIMIT 1 OFFSET %(skip)s

-- name: list_promises_within
-- Those of one execution.
SELECT * FROM oncekey_promise_rows
WHERE id IN (
        SELECT p.id FROM oncekey_promises AS p
        WHERE p.execution = %(execution)s AND p.id < %(before)s AND p.id >= %(since)s
    )
    AND (CAST(%(tenant)s AS TEXT) IS NULL OR tenant = %(tenant)s)
    AND (CAST(%(kind)s AS INTEGER) IS NULL OR kind = %(kind)s)
    AND (CAST(%(state)s AS INTEGER) IS NULL OR state = %(state)s)
    AND (CAST(%(key)s AS TEXT) IS NULL OR key = %(key)s)
ORDER BY id DESC
LIMIT %(limit)s

-- name: list_events
SELECT id, tenant, topic, data, headers, created_at, expires_at, matched FROM oncekey_events
WHERE id < %(before)s AND id >= %(since)s AND (CAST(%(topic)s AS TEXT) IS NULL OR topic = %(topic)s)
ORDER BY id DESC
LIMIT %(limit)s

-- name: list_events_edge
SELECT id FROM oncekey_events
WHERE id < %(before)s AND id >= %(lowest)s
ORDER BY id DESC
LIMIT 1 OFFSET %(skip)s

-- name: list_events_of
SELECT id, tenant, topic, data, headers, created_at, expires_at, matched FROM oncekey_events
WHERE (tenant, id) < (%(tenant)s, %(before)s)
    AND (tenant, id) >= (%(tenant)s, %(since)s)
ORDER BY tenant DESC, id DESC
LIMIT %(limit)s

-- name: list_events_of_topic
SELECT id, tenant, topic, data, headers, created_at, expires_at, matched FROM oncekey_events
WHERE tenant = %(tenant)s AND (topic, id) < (%(topic)s, %(before)s)
    AND (topic, id) >= (%(topic)s, %(since)s)
ORDER BY topic DESC, id DESC
LIMIT %(limit)s

-- name: list_deliveries
SELECT id, webhook, at, verdict, identifier, reason, operation, size, times, expires_at
FROM oncekey_deliveries
WHERE id < %(before)s AND id >= %(since)s
    AND (CAST(%(verdict)s AS TEXT) IS NULL OR verdict = %(verdict)s)
    AND (CAST(%(identifier)s AS TEXT) IS NULL OR identifier = %(identifier)s)
ORDER BY id DESC
LIMIT %(limit)s

-- name: list_deliveries_edge
SELECT id FROM oncekey_deliveries
WHERE id < %(before)s AND id >= %(lowest)s
ORDER BY id DESC
LIMIT 1 OFFSET %(skip)s

-- name: list_deliveries_of
SELECT id, webhook, at, verdict, identifier, reason, operation, size, times, expires_at
FROM oncekey_deliveries
WHERE (webhook, id) < (%(webhook)s, %(before)s)
    AND (webhook, id) >= (%(webhook)s, %(since)s)
    AND (CAST(%(verdict)s AS TEXT) IS NULL OR verdict = %(verdict)s)
    AND (CAST(%(identifier)s AS TEXT) IS NULL OR identifier = %(identifier)s)
ORDER BY webhook DESC, id DESC
LIMIT %(limit)s

-- name: list_deliveries_of_edge
SELECT id FROM oncekey_deliveries
WHERE (webhook, id) < (%(webhook)s, %(before)s)
    AND (webhook, id) >= (%(webhook)s, %(lowest)s)
ORDER BY webhook DESC, id DESC
LIMIT 1 OFFSET %(skip)s

-- name: list_deliveries_for
-- Those of one operation.
SELECT id, webhook, at, verdict, identifier, reason, operation, size, times, expires_at
FROM oncekey_deliveries
WHERE (operation, id) < (%(operation)s, %(before)s)
    AND (operation, id) >= (%(operation)s, %(since)s) AND operation IS NOT NULL
    AND (CAST(%(webhook)s AS TEXT) IS NULL OR webhook = %(webhook)s)
    AND (CAST(%(verdict)s AS TEXT) IS NULL OR verdict = %(verdict)s)
    AND (CAST(%(identifier)s AS TEXT) IS NULL OR identifier = %(identifier)s)
ORDER BY operation DESC, id DESC
LIMIT %(limit)s

-- name: list_audit
SELECT id, at, actor, action, target, tenant, details
FROM oncekey_audit
WHERE id < %(before)s AND id >= %(since)s
    AND (CAST(%(actor)s AS TEXT) IS NULL OR actor = %(actor)s)
    AND (CAST(%(action)s AS TEXT) IS NULL OR action = %(action)s)
    AND (CAST(%(target)s AS TEXT) IS NULL OR target = %(target)s)
ORDER BY id DESC
LIMIT %(limit)s

-- name: list_audit_edge
SELECT id FROM oncekey_audit
WHERE id < %(before)s AND id >= %(lowest)s
ORDER BY id DESC
LIMIT 1 OFFSET %(skip)s

-- name: list_audit_of
SELECT id, at, actor, action, target, tenant, details
FROM oncekey_audit
WHERE (tenant, id) < (%(tenant)s, %(before)s)
    AND (tenant, id) >= (%(tenant)s, %(since)s) AND tenant IS NOT NULL
    AND (CAST(%(actor)s AS TEXT) IS NULL OR actor = %(actor)s)
    AND (CAST(%(action)s AS TEXT) IS NULL OR action = %(action)s)
    AND (CAST(%(target)s AS TEXT) IS NULL OR target = %(target)s)
ORDER BY tenant DESC, id DESC
LIMIT %(limit)s

-- name: list_audit_of_edge
SELECT id FROM oncekey_audit
WHERE (tenant, id) < (%(tenant)s, %(before)s)
    AND (tenant, id) >= (%(tenant)s, %(lowest)s) AND tenant IS NOT NULL
ORDER BY tenant DESC, id DESC
LIMIT 1 OFFSET %(skip)s
