-- SQL of durable work on PostgreSQL. Names are shared with SQLite; `stores/work` says what each must
-- do. Whoever changes what belongs to an execution locks the execution first; a second statement
-- sees what was committed meanwhile. Locks are taken in one order: keys, executions by number,
-- promises, claims.

-- name: work
SELECT oncekey_work($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)

-- name: lock_key
-- Whoever makes a promise under a key, and whoever finds none there, take turns until they commit.
SELECT pg_advisory_xact_lock(
    CAST(CAST('x' || encode(substring(CAST(%(digest)s AS BYTEA) FROM 1 FOR 8), 'hex') AS BIT(64))
        AS BIGINT)
)

-- name: claim_for_engine
INSERT INTO oncekey_claims (
    id, digest, namespace, endpoint, key, fingerprint, owner, fence,
    request_id, retention, created_at, expires_at, workflow_id, task_id, promise_id
)
VALUES (
    %(id)s, %(digest)s, %(namespace)s, %(endpoint)s, %(key)s, %(fingerprint)s, %(owner)s, 1,
    %(request_id)s, %(retention)s, %(created_at)s, %(expires_at)s, %(workflow_id)s, %(task_id)s,
    %(promise_id)s
)
ON CONFLICT DO NOTHING
RETURNING id

-- name: forget_claim
DELETE FROM oncekey_claims WHERE id = %(id)s

-- name: make_execution
INSERT INTO oncekey_executions (
    id, tenant, sort, name, input, status, owner, fence, created_at, wakes, keep, keyed, frees_key,
    called, due_at, forked_from, forked_at, origin
)
VALUES (
    %(id)s, %(tenant)s, %(sort)s, %(name)s, %(input)s, %(status)s, %(owner)s, %(fence)s,
    %(created_at)s, 0, %(keep)s, %(keyed)s, %(frees_key)s, 0, %(due_at)s, %(forked_from)s,
    %(forked_at)s, %(origin)s
)
ON CONFLICT DO NOTHING
RETURNING id

-- name: withdraw
-- Only a start that nobody has done anything with.
DELETE FROM oncekey_executions
WHERE id = %(id)s AND fence = 1 AND (status = 0 OR (status = 1 AND owner = %(owner)s))
    AND NOT EXISTS (SELECT 1 FROM oncekey_journal WHERE execution = %(id)s)
    AND NOT EXISTS (SELECT 1 FROM oncekey_promises WHERE execution = %(id)s)
RETURNING keyed

-- name: lock_execution
SELECT status, fence, tenant, forked_from FROM oncekey_executions WHERE id = %(id)s FOR UPDATE

-- name: try_lock_execution
-- What somebody is at is left for the next time.
SELECT status FROM oncekey_executions WHERE id = %(id)s FOR UPDATE SKIP LOCKED

-- name: append
INSERT INTO oncekey_journal (
    execution, seq, step, name, fingerprint, failed, body, attempts, started_at, at
)
VALUES (
    %(execution)s, %(seq)s, %(step)s, %(name)s, %(fingerprint)s, %(failed)s, %(body)s,
    %(attempts)s, %(started_at)s, %(at)s
)
ON CONFLICT DO NOTHING

-- name: entry_at
SELECT body FROM oncekey_journal WHERE execution = %(execution)s AND seq = %(seq)s

-- name: lie_down
UPDATE oncekey_executions SET status = 2, owner = 0
WHERE id = %(id)s AND fence = %(fence)s AND status = 1 AND wakes = %(wakes)s
RETURNING id

-- name: get_up
UPDATE oncekey_executions SET status = 1, owner = %(owner)s WHERE id = %(id)s

-- name: hand_back
UPDATE oncekey_executions SET status = 0, owner = 0
WHERE id = %(id)s AND fence = %(fence)s AND status = 1
RETURNING id

-- name: wake
-- One that waits is ready for anybody; one that runs is told by its count.
UPDATE oncekey_executions
SET wakes = wakes + 1, status = CASE status WHEN 2 THEN 0 ELSE status END
WHERE id = %(id)s
RETURNING status

-- name: end_execution
UPDATE oncekey_executions
SET status = %(status)s, result = %(result)s, completed_at = %(completed_at)s,
    expires_at = %(expires_at)s, owner = 0, fence = fence + %(bump)s
WHERE id = %(id)s
RETURNING keyed, frees_key, called, sort

-- name: cancel_promises
UPDATE oncekey_promises SET state = 4, settled_at = %(now)s
WHERE execution = %(execution)s AND state = 0

-- name: callers
-- In the order in which everybody locks those who wait.
SELECT * FROM oncekey_promise_rows WHERE target = %(target)s AND state = 0 ORDER BY execution, seq

-- name: be_called
UPDATE oncekey_executions SET called = 1 WHERE id = %(id)s RETURNING status, result, sort

-- name: pick_up
-- Whether an owner is known is asked in the statement that takes: one that has come meanwhile is, by
-- then. What somebody else is taking is left to them. The arrays are read once, not for every row.
WITH free AS MATERIALIZED (
    SELECT e.id FROM oncekey_executions AS e
    WHERE e.status < 2
        AND (
            e.owner = ANY (CAST((SELECT oncekey_numbers(%(gone)s)) AS BIGINT[]))
            OR NOT EXISTS (SELECT 1 FROM oncekey_owners AS w WHERE w.id = e.owner)
        )
        AND CAST(e.sort AS TEXT) || e.name
            = ANY (CAST((SELECT oncekey_texts(%(names)s)) AS TEXT[]))
        AND (CAST(%(only)s AS BIGINT) IS NULL OR e.id = %(only)s)
    ORDER BY e.id
    LIMIT %(limit)s
    FOR UPDATE OF e SKIP LOCKED
)
UPDATE oncekey_executions SET status = 1, owner = %(owner)s, fence = fence + 1
WHERE id IN (SELECT id FROM free)
RETURNING id

-- name: adopt
UPDATE oncekey_executions SET status = 1, owner = %(owner)s, fence = fence + 1
WHERE id = %(id)s AND status = 0
    AND CAST(sort AS TEXT) || name = ANY (oncekey_texts(%(names)s))
RETURNING fence, wakes

-- name: running_of
SELECT id, fence, wakes, sort, name FROM oncekey_executions
WHERE status < 2 AND status = 1 AND owner = %(owner)s

-- name: resume_execution
UPDATE oncekey_executions SET status = 0, owner = 0, result = NULL WHERE id = %(id)s
RETURNING sort

-- name: copy_journal
INSERT INTO oncekey_journal (
    execution, seq, step, name, fingerprint, failed, body, attempts, started_at, at
)
SELECT
    CAST(%(fork)s AS BIGINT), seq, step, name, fingerprint, failed, body, attempts, started_at, at
FROM oncekey_journal
WHERE execution = %(source)s
    AND seq = ANY (oncekey_numbers(%(seqs)s))

-- name: find_execution
SELECT * FROM oncekey_execution_rows
WHERE id = %(id)s AND (CAST(%(tenant)s AS TEXT) IS NULL OR tenant = %(tenant)s)

-- name: journal
SELECT seq, step, name, fingerprint, failed, body, attempts, started_at, at
FROM oncekey_journal
WHERE execution = %(execution)s
ORDER BY seq

-- name: read_executions
SELECT * FROM oncekey_execution_rows
WHERE id = ANY (oncekey_numbers(%(ids)s))
ORDER BY id

-- name: journals
SELECT execution, seq, step, name, fingerprint, failed, body, attempts, started_at, at
FROM oncekey_journal
WHERE execution = ANY (oncekey_numbers(%(ids)s))
ORDER BY execution, seq

-- name: waits_of
SELECT * FROM oncekey_promise_rows
WHERE execution = ANY (oncekey_numbers(%(ids)s))
    AND (state = 0 OR kind = 4)
ORDER BY id

-- name: make_promise
INSERT INTO oncekey_promises (
    id, tenant, kind, name, state, created_at, execution, seq, fingerprint, keyed, due_at, body,
    topic, condition, target, attempts
)
VALUES (
    %(id)s, %(tenant)s, %(kind)s, %(name)s, 0, %(created_at)s, %(execution)s, %(seq)s,
    %(fingerprint)s, %(keyed)s, %(due_at)s, %(body)s, %(topic)s, %(condition)s, %(target)s,
    %(attempts)s
)
ON CONFLICT DO NOTHING
RETURNING id

-- name: forget_promise
DELETE FROM oncekey_promises WHERE id = %(id)s

-- name: forget_retries
DELETE FROM oncekey_promises WHERE execution = %(execution)s AND kind = 4

-- name: find_promise
SELECT * FROM oncekey_promise_rows WHERE id = %(id)s

-- name: find_promise_at
SELECT * FROM oncekey_promise_rows WHERE execution = %(execution)s AND seq = %(seq)s

-- name: find_promise_by_name
SELECT * FROM oncekey_promise_rows
WHERE execution = %(execution)s AND name = %(name)s AND kind = 0

-- name: find_promise_by_key
-- A claim of a promise's key has the promise's number.
SELECT p.* FROM oncekey_claims AS c
JOIN oncekey_promise_rows AS p ON p.id = c.id
WHERE c.digest = %(digest)s

-- name: find_promise_by_token
SELECT p.* FROM oncekey_tokens AS t
JOIN oncekey_promise_rows AS p ON p.id = t.promise
WHERE t.digest = %(digest)s

-- name: lock_promise
SELECT 1 FROM oncekey_promises WHERE id = %(id)s FOR UPDATE

-- name: add_token
INSERT INTO oncekey_tokens (digest, promise) VALUES (%(digest)s, %(promise)s)
ON CONFLICT DO NOTHING

-- name: add_token_at
INSERT INTO oncekey_tokens (digest, promise)
SELECT CAST(%(digest)s AS BYTEA), id FROM oncekey_promises
WHERE execution = %(execution)s AND seq = %(seq)s
ON CONFLICT DO NOTHING

-- name: settle_promise
-- One that no execution waits for is kept for a week after it was settled.
UPDATE oncekey_promises
SET state = %(state)s, body = %(body)s, settled_by = %(settled_by)s, settled_at = %(now)s,
    expires_at = CASE WHEN execution IS NULL THEN CAST(%(now)s AS BIGINT) + 604800000 END
WHERE id = %(id)s AND state = 0
RETURNING id

-- name: park
-- The first to come is the one that counts.
INSERT INTO oncekey_parked (
    digest, tenant, key, state, body, settled_by, created_at, expires_at, request
)
VALUES (
    %(digest)s, %(tenant)s, %(key)s, %(state)s, %(body)s, %(settled_by)s, %(created_at)s,
    %(expires_at)s, %(request)s
)
ON CONFLICT DO NOTHING
RETURNING expires_at

-- name: find_parked
SELECT expires_at FROM oncekey_parked WHERE digest = %(digest)s

-- name: forget_parked_if_past
DELETE FROM oncekey_parked WHERE digest = %(digest)s AND expires_at <= %(now)s

-- name: take_parked
DELETE FROM oncekey_parked WHERE digest = %(digest)s
RETURNING state, body, settled_by, expires_at, request

-- name: link_request
-- Which promise a request was carried out for, when that was not known as it came.
UPDATE oncekey_claims SET promise_id = %(promise_id)s WHERE id = %(id)s AND owner = -2

-- name: make_event
INSERT INTO oncekey_events (
    id, tenant, topic, data, headers, created_at, expires_at, matched, settled
)
VALUES (
    %(id)s, %(tenant)s, %(topic)s, %(data)s, %(headers)s, %(created_at)s, %(expires_at)s, 0, 0
)
ON CONFLICT DO NOTHING
RETURNING id

-- name: event_is_matched
UPDATE oncekey_events SET matched = 1 WHERE id = %(id)s RETURNING settled

-- name: count_matches
UPDATE oncekey_events SET settled = settled + %(count)s WHERE id = %(id)s

-- name: events
SELECT id, tenant, topic, data, headers, created_at, expires_at, matched FROM oncekey_events
WHERE tenant = %(tenant)s AND topic = %(topic)s AND id > %(after)s AND created_at >= %(since)s
ORDER BY id
LIMIT %(limit)s

-- name: unmatched_events
SELECT id, tenant, topic, data, headers, created_at, expires_at, matched FROM oncekey_events
WHERE matched = 0 AND created_at < %(before)s
ORDER BY id
LIMIT %(limit)s

-- name: waits
SELECT * FROM oncekey_promise_rows
WHERE tenant = %(tenant)s AND topic = %(topic)s AND state = 0 AND id > %(after)s
    AND created_at <= %(until)s
ORDER BY id
LIMIT %(limit)s

-- name: note_trouble
UPDATE oncekey_promises SET trouble = %(trouble)s WHERE id = %(id)s AND state = 0

-- name: due_promises
SELECT * FROM oncekey_promise_rows
WHERE state = 0 AND due_at IS NOT NULL AND due_at <= %(now)s
ORDER BY due_at, id
LIMIT %(limit)s

-- name: due_executions
SELECT id, keep FROM oncekey_executions
WHERE status < 3 AND due_at IS NOT NULL AND due_at <= %(now)s
ORDER BY due_at, id
LIMIT %(limit)s

-- name: rewind_promises
-- What somebody has in hand at this moment is left to the next look.
UPDATE oncekey_promises
SET due_at = %(now)s + due_at - created_at, created_at = %(now)s
WHERE id IN (
    SELECT id FROM oncekey_promises
    WHERE id > %(first)s AND state = 0 AND due_at IS NOT NULL AND created_at > %(latest)s
    FOR UPDATE SKIP LOCKED
)
RETURNING id

-- name: rewind_executions
UPDATE oncekey_executions
SET due_at = %(now)s + due_at - created_at, created_at = %(now)s
WHERE id IN (
    SELECT id FROM oncekey_executions
    WHERE id > %(first)s AND status < 3 AND due_at IS NOT NULL AND created_at > %(latest)s
    FOR UPDATE SKIP LOCKED
)
RETURNING id

-- name: next_due
SELECT least(
    (SELECT min(due_at) FROM oncekey_promises WHERE state = 0 AND due_at IS NOT NULL),
    (SELECT min(due_at) FROM oncekey_executions WHERE status < 3 AND due_at IS NOT NULL)
)

-- name: find_control
SELECT action, execution, parameters, status, answer FROM oncekey_controls
WHERE tenant = %(tenant)s AND request_key = %(request_key)s

-- name: keep_control
INSERT INTO oncekey_controls (
    tenant, request_key, action, execution, parameters, status, answer, updated_at
)
VALUES (
    %(tenant)s, %(request_key)s, %(action)s, %(execution)s, %(parameters)s, %(status)s,
    %(answer)s, %(now)s
)

-- name: expired_executions
SELECT id FROM oncekey_executions
WHERE expires_at IS NOT NULL AND expires_at <= %(now)s
ORDER BY expires_at
LIMIT %(limit)s
FOR UPDATE SKIP LOCKED

-- name: forget_journals
DELETE FROM oncekey_journal
WHERE execution = ANY (oncekey_numbers(%(ids)s))

-- name: forget_tokens_of
DELETE FROM oncekey_tokens WHERE promise IN (
    SELECT p.id FROM oncekey_promises AS p
    WHERE p.execution = ANY (oncekey_numbers(%(ids)s))
)

-- name: forget_promises_of
DELETE FROM oncekey_promises
WHERE execution = ANY (oncekey_numbers(%(ids)s))

-- name: forget_executions
DELETE FROM oncekey_executions
WHERE id = ANY (oncekey_numbers(%(ids)s))

-- name: forget_promises
WITH past AS MATERIALIZED (
    SELECT id FROM oncekey_promises
    WHERE expires_at IS NOT NULL AND expires_at <= %(now)s
    ORDER BY expires_at
    LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
)
DELETE FROM oncekey_promises WHERE id IN (SELECT id FROM past) RETURNING id

-- name: forget_tokens
DELETE FROM oncekey_tokens
WHERE promise = ANY (oncekey_numbers(%(ids)s))

-- name: forget_parked
WITH past AS MATERIALIZED (
    SELECT digest FROM oncekey_parked
    WHERE expires_at <= %(now)s
    ORDER BY expires_at
    LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
)
DELETE FROM oncekey_parked WHERE digest IN (SELECT digest FROM past) RETURNING digest

-- name: forget_events
WITH past AS MATERIALIZED (
    SELECT id FROM oncekey_events
    WHERE expires_at <= %(now)s
    ORDER BY expires_at
    LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
)
DELETE FROM oncekey_events WHERE id IN (SELECT id FROM past) RETURNING id

-- name: forget_promise_keys
-- The key of a promise; that of a request which settled one goes with its outcome.
WITH past AS MATERIALIZED (
    SELECT c.id FROM oncekey_claims AS c
    WHERE c.promise_id IS NOT NULL AND c.expires_at <= %(now)s
        AND NOT EXISTS (SELECT 1 FROM oncekey_outcomes AS o WHERE o.id = c.id)
    ORDER BY c.expires_at
    LIMIT %(limit)s
    FOR UPDATE OF c SKIP LOCKED
)
DELETE FROM oncekey_claims WHERE id IN (SELECT id FROM past) RETURNING id

-- name: forget_controls
WITH past AS MATERIALIZED (
    SELECT tenant, request_key FROM oncekey_controls
    WHERE updated_at <= %(before)s
    ORDER BY updated_at
    LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
)
DELETE FROM oncekey_controls
WHERE (tenant, request_key) IN (SELECT tenant, request_key FROM past)
RETURNING request_key

-- name: know
INSERT INTO oncekey_names (sort, name, seen_at) VALUES (%(sort)s, %(name)s, %(now)s)
ON CONFLICT (sort, name) DO UPDATE SET seen_at = excluded.seen_at

-- name: known
SELECT sort, name FROM oncekey_names
