-- SQL of durable work on SQLite. Names are shared with PostgreSQL; `stores/work` says what each must
-- do. A transaction that writes is alone, so that nothing here has to be locked.

-- name: lock_key
SELECT 1

-- name: claim_for_engine
INSERT INTO oncekey_claims (
    id, digest, namespace, endpoint, key, fingerprint, owner, fence,
    request_id, retention, created_at, expires_at, workflow_id, task_id, promise_id
)
VALUES (
    :id, :digest, :namespace, :endpoint, :key, :fingerprint, :owner, 1,
    :request_id, :retention, :created_at, :expires_at, :workflow_id, :task_id, :promise_id
)
ON CONFLICT DO NOTHING
RETURNING id

-- name: forget_claim
DELETE FROM oncekey_claims WHERE id = :id

-- name: make_execution
INSERT INTO oncekey_executions (
    id, tenant, sort, name, input, status, owner, fence, created_at, wakes, keep, keyed, frees_key,
    called, due_at, forked_from, forked_at, origin
)
VALUES (
    :id, :tenant, :sort, :name, :input, :status, :owner, :fence, :created_at, 0, :keep, :keyed,
    :frees_key, 0, :due_at, :forked_from, :forked_at, :origin
)
ON CONFLICT DO NOTHING
RETURNING id

-- name: withdraw
-- Only a start that nobody has done anything with.
DELETE FROM oncekey_executions
WHERE id = :id AND fence = 1 AND (status = 0 OR (status = 1 AND owner = :owner))
    AND NOT EXISTS (SELECT 1 FROM oncekey_journal WHERE execution = :id)
    AND NOT EXISTS (SELECT 1 FROM oncekey_promises WHERE execution = :id)
RETURNING keyed

-- name: lock_execution
SELECT status, fence, tenant, forked_from FROM oncekey_executions WHERE id = :id

-- name: try_lock_execution
SELECT status FROM oncekey_executions WHERE id = :id

-- name: append
INSERT INTO oncekey_journal (
    execution, seq, step, name, fingerprint, failed, body, attempts, started_at, at
)
VALUES (
    :execution, :seq, :step, :name, :fingerprint, :failed, :body, :attempts, :started_at, :at
)
ON CONFLICT DO NOTHING

-- name: entry_at
SELECT body FROM oncekey_journal WHERE execution = :execution AND seq = :seq

-- name: lie_down
UPDATE oncekey_executions SET status = 2, owner = 0
WHERE id = :id AND fence = :fence AND status = 1 AND wakes = :wakes
RETURNING id

-- name: get_up
UPDATE oncekey_executions SET status = 1, owner = :owner WHERE id = :id

-- name: hand_back
UPDATE oncekey_executions SET status = 0, owner = 0
WHERE id = :id AND fence = :fence AND status = 1
RETURNING id

-- name: wake
-- One that waits is ready for anybody; one that runs is told by its count.
UPDATE oncekey_executions
SET wakes = wakes + 1, status = CASE status WHEN 2 THEN 0 ELSE status END
WHERE id = :id
RETURNING status

-- name: end_execution
UPDATE oncekey_executions
SET status = :status, result = :result, completed_at = :completed_at, expires_at = :expires_at,
    owner = 0, fence = fence + :bump
WHERE id = :id
RETURNING keyed, frees_key, called, sort

-- name: cancel_promises
UPDATE oncekey_promises SET state = 4, settled_at = :now
WHERE execution = :execution AND state = 0

-- name: callers
SELECT * FROM oncekey_promise_rows WHERE target = :target AND state = 0 ORDER BY execution, seq

-- name: be_called
UPDATE oncekey_executions SET called = 1 WHERE id = :id RETURNING status, result, sort

-- name: pick_up
UPDATE oncekey_executions SET status = 1, owner = :owner, fence = fence + 1
WHERE id IN (
    SELECT id FROM oncekey_executions
    WHERE status < 2
        AND (
            owner IN (SELECT value FROM json_each(:gone))
            OR NOT EXISTS (SELECT 1 FROM oncekey_owners AS w WHERE w.id = owner)
        )
        AND sort || name IN (SELECT value FROM json_each(:names))
        AND (:only IS NULL OR id = :only)
    ORDER BY id
    LIMIT :limit
)
RETURNING id

-- name: adopt
UPDATE oncekey_executions SET status = 1, owner = :owner, fence = fence + 1
WHERE id = :id AND status = 0 AND sort || name IN (SELECT value FROM json_each(:names))
RETURNING fence, wakes

-- name: running_of
SELECT id, fence, wakes, sort, name FROM oncekey_executions
WHERE status < 2 AND status = 1 AND owner = :owner

-- name: resume_execution
UPDATE oncekey_executions SET status = 0, owner = 0, result = NULL WHERE id = :id RETURNING sort

-- name: copy_journal
INSERT INTO oncekey_journal (
    execution, seq, step, name, fingerprint, failed, body, attempts, started_at, at
)
SELECT :fork, seq, step, name, fingerprint, failed, body, attempts, started_at, at
FROM oncekey_journal
WHERE execution = :source AND seq IN (SELECT value FROM json_each(:seqs))

-- name: find_execution
SELECT * FROM oncekey_execution_rows
WHERE id = :id AND (:tenant IS NULL OR tenant = :tenant)

-- name: journal
SELECT seq, step, name, fingerprint, failed, body, attempts, started_at, at
FROM oncekey_journal
WHERE execution = :execution
ORDER BY seq

-- name: read_executions
SELECT * FROM oncekey_execution_rows WHERE id IN (SELECT value FROM json_each(:ids)) ORDER BY id

-- name: journals
SELECT execution, seq, step, name, fingerprint, failed, body, attempts, started_at, at
FROM oncekey_journal
WHERE execution IN (SELECT value FROM json_each(:ids))
ORDER BY execution, seq

-- name: waits_of
SELECT * FROM oncekey_promise_rows
WHERE execution IN (SELECT value FROM json_each(:ids)) AND (state = 0 OR kind = 4)
ORDER BY id

-- name: make_promise
INSERT INTO oncekey_promises (
    id, tenant, kind, name, state, created_at, execution, seq, fingerprint, keyed, due_at, body,
    topic, condition, target, attempts
)
VALUES (
    :id, :tenant, :kind, :name, 0, :created_at, :execution, :seq, :fingerprint, :keyed, :due_at,
    :body, :topic, :condition, :target, :attempts
)
ON CONFLICT DO NOTHING
RETURNING id

-- name: forget_promise
DELETE FROM oncekey_promises WHERE id = :id

-- name: forget_retries
DELETE FROM oncekey_promises WHERE execution = :execution AND kind = 4

-- name: find_promise
SELECT * FROM oncekey_promise_rows WHERE id = :id

-- name: find_promise_at
SELECT * FROM oncekey_promise_rows WHERE execution = :execution AND seq = :seq

-- name: find_promise_by_name
SELECT * FROM oncekey_promise_rows
WHERE execution = :execution AND name = :name AND kind = 0

-- name: find_promise_by_key
-- A claim of a promise's key has the promise's number.
SELECT p.* FROM oncekey_claims AS c
JOIN oncekey_promise_rows AS p ON p.id = c.id
WHERE c.digest = :digest

-- name: find_promise_by_token
SELECT p.* FROM oncekey_tokens AS t
JOIN oncekey_promise_rows AS p ON p.id = t.promise
WHERE t.digest = :digest

-- name: lock_promise
SELECT 1

-- name: add_token
INSERT INTO oncekey_tokens (digest, promise) VALUES (:digest, :promise) ON CONFLICT DO NOTHING

-- name: add_token_at
INSERT INTO oncekey_tokens (digest, promise)
SELECT :digest, id FROM oncekey_promises WHERE execution = :execution AND seq = :seq
ON CONFLICT DO NOTHING

-- name: settle_promise
-- One that no execution waits for is kept for a week after it was settled.
UPDATE oncekey_promises
SET state = :state, body = :body, settled_by = :settled_by, settled_at = :now,
    expires_at = CASE WHEN execution IS NULL THEN :now + 604800000 END
WHERE id = :id AND state = 0
RETURNING id

-- name: park
-- The first to come is the one that counts.
INSERT INTO oncekey_parked (
    digest, tenant, key, state, body, settled_by, created_at, expires_at, request
)
VALUES (
    :digest, :tenant, :key, :state, :body, :settled_by, :created_at, :expires_at, :request
)
ON CONFLICT DO NOTHING
RETURNING expires_at

-- name: find_parked
SELECT expires_at FROM oncekey_parked WHERE digest = :digest

-- name: forget_parked_if_past
DELETE FROM oncekey_parked WHERE digest = :digest AND expires_at <= :now

-- name: take_parked
DELETE FROM oncekey_parked WHERE digest = :digest
RETURNING state, body, settled_by, expires_at, request

-- name: link_request
-- Which promise a request was carried out for, when that was not known as it came.
UPDATE oncekey_claims SET promise_id = :promise_id WHERE id = :id AND owner = -2

-- name: make_event
INSERT INTO oncekey_events (
    id, tenant, topic, data, headers, created_at, expires_at, matched, settled
)
VALUES (:id, :tenant, :topic, :data, :headers, :created_at, :expires_at, 0, 0)
ON CONFLICT DO NOTHING
RETURNING id

-- name: event_is_matched
UPDATE oncekey_events SET matched = 1 WHERE id = :id RETURNING settled

-- name: count_matches
UPDATE oncekey_events SET settled = settled + :count WHERE id = :id

-- name: events
SELECT id, tenant, topic, data, headers, created_at, expires_at, matched FROM oncekey_events
WHERE tenant = :tenant AND topic = :topic AND id > :after AND created_at >= :since
ORDER BY id
LIMIT :limit

-- name: unmatched_events
SELECT id, tenant, topic, data, headers, created_at, expires_at, matched FROM oncekey_events
WHERE matched = 0 AND created_at < :before
ORDER BY id
LIMIT :limit

-- name: waits
SELECT * FROM oncekey_promise_rows
WHERE tenant = :tenant AND topic = :topic AND state = 0 AND id > :after AND created_at <= :until
ORDER BY id
LIMIT :limit

-- name: note_trouble
UPDATE oncekey_promises SET trouble = :trouble WHERE id = :id AND state = 0

-- name: due_promises
SELECT * FROM oncekey_promise_rows
WHERE state = 0 AND due_at IS NOT NULL AND due_at <= :now
ORDER BY due_at, id
LIMIT :limit

-- name: due_executions
SELECT id, keep FROM oncekey_executions
WHERE status < 3 AND due_at IS NOT NULL AND due_at <= :now
ORDER BY due_at, id
LIMIT :limit

-- name: rewind_promises
UPDATE oncekey_promises SET due_at = :now + due_at - created_at, created_at = :now
WHERE id > :first AND state = 0 AND due_at IS NOT NULL AND created_at > :latest
RETURNING id

-- name: rewind_executions
UPDATE oncekey_executions SET due_at = :now + due_at - created_at, created_at = :now
WHERE id > :first AND status < 3 AND due_at IS NOT NULL AND created_at > :latest
RETURNING id

-- name: next_due
SELECT min(due_at) FROM (
    SELECT min(due_at) AS due_at FROM oncekey_promises WHERE state = 0 AND due_at IS NOT NULL
    UNION ALL
    SELECT min(due_at) FROM oncekey_executions WHERE status < 3 AND due_at IS NOT NULL
)

-- name: find_control
SELECT action, execution, parameters, status, answer FROM oncekey_controls
WHERE tenant = :tenant AND request_key = :request_key

-- name: keep_control
INSERT INTO oncekey_controls (
    tenant, request_key, action, execution, parameters, status, answer, updated_at
)
VALUES (:tenant, :request_key, :action, :execution, :parameters, :status, :answer, :now)

-- name: expired_executions
SELECT id FROM oncekey_executions
WHERE expires_at IS NOT NULL AND expires_at <= :now
ORDER BY expires_at
LIMIT :limit

-- name: forget_journals
DELETE FROM oncekey_journal WHERE execution IN (SELECT value FROM json_each(:ids))

-- name: forget_tokens_of
DELETE FROM oncekey_tokens WHERE promise IN (
    SELECT id FROM oncekey_promises WHERE execution IN (SELECT value FROM json_each(:ids))
)

-- name: forget_promises_of
DELETE FROM oncekey_promises WHERE execution IN (SELECT value FROM json_each(:ids))

-- name: forget_executions
DELETE FROM oncekey_executions WHERE id IN (SELECT value FROM json_each(:ids))

-- name: forget_promises
DELETE FROM oncekey_promises
WHERE id IN (
    SELECT id FROM oncekey_promises
    WHERE expires_at IS NOT NULL AND expires_at <= :now
    ORDER BY expires_at
    LIMIT :limit
)
RETURNING id

-- name: forget_tokens
DELETE FROM oncekey_tokens WHERE promise IN (SELECT value FROM json_each(:ids))

-- name: forget_parked
DELETE FROM oncekey_parked
WHERE digest IN (
    SELECT digest FROM oncekey_parked WHERE expires_at <= :now ORDER BY expires_at LIMIT :limit
)
RETURNING digest

-- name: forget_events
DELETE FROM oncekey_events
WHERE id IN (
    SELECT id FROM oncekey_events WHERE expires_at <= :now ORDER BY expires_at LIMIT :limit
)
RETURNING id

-- name: forget_promise_keys
-- The key of a promise; that of a request which settled one goes with its outcome.
DELETE FROM oncekey_claims
WHERE id IN (
    SELECT c.id FROM oncekey_claims AS c
    WHERE c.promise_id IS NOT NULL AND c.expires_at <= :now
        AND NOT EXISTS (SELECT 1 FROM oncekey_outcomes AS o WHERE o.id = c.id)
    ORDER BY c.expires_at
    LIMIT :limit
)
RETURNING id

-- name: forget_controls
DELETE FROM oncekey_controls
WHERE (tenant, request_key) IN (
    SELECT tenant, request_key FROM oncekey_controls
    WHERE updated_at <= :before
    ORDER BY updated_at
    LIMIT :limit
)
RETURNING request_key

-- name: know
INSERT INTO oncekey_names (sort, name, seen_at) VALUES (:sort, :name, :now)
ON CONFLICT (sort, name) DO UPDATE SET seen_at = excluded.seen_at

-- name: known
SELECT sort, name FROM oncekey_names

-- name: work_view
-- As `group_view`, for starts and for what runs have done.
CREATE TEMP VIEW IF NOT EXISTS oncekey_work AS
SELECT
    NULL AS claims, NULL AS starts, NULL AS entries, NULL AS keys, NULL AS waits, NULL AS steps,
    NULL AS endings, NULL AS pieces

-- name: work_trigger
CREATE TEMP TRIGGER IF NOT EXISTS oncekey_work_spread INSTEAD OF INSERT ON oncekey_work
BEGIN
    INSERT INTO oncekey_claims (
        id, digest, namespace, endpoint, key, fingerprint, owner, fence,
        request_id, retention, created_at, expires_at, workflow_id, task_id
    )
    SELECT
        e.value ->> 0, substr(NEW.pieces, e.value ->> 1, 16), e.value ->> 2, e.value ->> 3,
        e.value ->> 4, substr(NEW.pieces, e.value ->> 5, 16), e.value ->> 6, 1,
        e.value ->> 7, e.value ->> 8, e.value ->> 9, e.value ->> 10, e.value ->> 11,
        e.value ->> 12
    FROM json_each(NEW.claims) AS e
    WHERE true
    ON CONFLICT DO NOTHING;

    -- With a key only if the claim above is its own.
    INSERT INTO oncekey_executions (
        id, tenant, sort, name, input, status, owner, fence, created_at, wakes, keep, keyed,
        frees_key, called, due_at
    )
    SELECT
        e.value ->> 0, e.value ->> 1, e.value ->> 2, e.value ->> 3,
        substr(NEW.pieces, e.value ->> 4, e.value ->> 5), e.value ->> 6, e.value ->> 7,
        e.value ->> 8, e.value ->> 9, 0, e.value ->> 10, (e.value ->> 11) > 0, e.value ->> 12,
        0, e.value ->> 13
    FROM json_each(NEW.starts) AS e
    WHERE e.value ->> 11 = 0 OR EXISTS (
        SELECT 1 FROM oncekey_claims AS c
        WHERE c.id = e.value ->> 0 AND c.digest = substr(NEW.pieces, e.value ->> 11, 16)
    )
    ON CONFLICT DO NOTHING;

    -- The fence decides: what a run has done that was taken over finds nothing to belong to.
    INSERT INTO oncekey_journal (
        execution, seq, step, name, fingerprint, failed, body, attempts, started_at, at
    )
    SELECT
        e.value ->> 0, e.value ->> 2, e.value ->> 3, e.value ->> 4,
        substr(NEW.pieces, e.value ->> 5, e.value ->> 6), e.value ->> 7,
        substr(NEW.pieces, e.value ->> 8, e.value ->> 9), e.value ->> 10, e.value ->> 11,
        e.value ->> 12
    FROM json_each(NEW.entries) AS e
    JOIN oncekey_executions AS x
        ON x.id = e.value ->> 0 AND x.fence = e.value ->> 1 AND x.status = 1
    WHERE true
    ON CONFLICT DO NOTHING;

    -- The keys of promises, as far as the run has its execution. One that a resolution is parked
    -- under goes its own way, as does one that was made before.
    INSERT INTO oncekey_claims (
        id, digest, namespace, endpoint, key, fingerprint, owner, fence,
        request_id, retention, created_at, expires_at, promise_id
    )
    SELECT
        e.value ->> 0, substr(NEW.pieces, e.value ->> 1, 16), e.value ->> 2, e.value ->> 3,
        e.value ->> 4, substr(NEW.pieces, e.value ->> 5, 16), e.value ->> 6, 1,
        e.value ->> 7, e.value ->> 8, e.value ->> 9, e.value ->> 10, e.value ->> 11
    FROM json_each(NEW.keys) AS e
    JOIN oncekey_executions AS x
        ON x.id = e.value ->> 12 AND x.fence = e.value ->> 13 AND x.status = 1
    WHERE NOT EXISTS (
            SELECT 1 FROM oncekey_parked AS p
            WHERE p.digest = substr(NEW.pieces, e.value ->> 1, 16)
        )
        AND NOT EXISTS (
            SELECT 1 FROM oncekey_promises AS p
            WHERE p.execution = x.id AND p.seq = e.value ->> 14
        )
    ON CONFLICT DO NOTHING;

    INSERT INTO oncekey_promises (
        id, tenant, kind, name, state, created_at, execution, seq, fingerprint, keyed, due_at,
        topic, condition, attempts
    )
    SELECT
        e.value ->> 2, e.value ->> 3, e.value ->> 4, e.value ->> 5, 0, e.value ->> 6, x.id,
        e.value ->> 7, substr(NEW.pieces, e.value ->> 8, e.value ->> 9), (e.value ->> 10) > 0,
        e.value ->> 11, e.value ->> 12, e.value ->> 13, 0
    FROM json_each(NEW.waits) AS e
    JOIN oncekey_executions AS x
        ON x.id = e.value ->> 0 AND x.fence = e.value ->> 1 AND x.status = 1
    WHERE e.value ->> 10 = 0 OR EXISTS (
        SELECT 1 FROM oncekey_claims AS c
        WHERE c.id = e.value ->> 2 AND c.digest = substr(NEW.pieces, e.value ->> 10, 16)
    )
    ON CONFLICT DO NOTHING;

    -- What was done before a wait goes in with it.
    INSERT INTO oncekey_journal (
        execution, seq, step, name, fingerprint, failed, body, attempts, started_at, at
    )
    SELECT
        e.value ->> 0, e.value ->> 2, e.value ->> 3, e.value ->> 4,
        substr(NEW.pieces, e.value ->> 5, e.value ->> 6), e.value ->> 7,
        substr(NEW.pieces, e.value ->> 8, e.value ->> 9), e.value ->> 10, e.value ->> 11,
        e.value ->> 12
    FROM json_each(NEW.steps) AS e
    JOIN oncekey_executions AS x
        ON x.id = e.value ->> 0 AND x.fence = e.value ->> 1 AND x.status = 1
    WHERE EXISTS (
        SELECT 1 FROM json_each(NEW.waits) AS w
        JOIN oncekey_promises AS p ON p.id = w.value ->> 2
        WHERE w.value ->> 0 = x.id AND p.execution = x.id
    )
    ON CONFLICT DO NOTHING;

    -- Nothing is left to do but wait, unless something was settled that the run has not seen.
    UPDATE oncekey_executions SET status = 2, owner = 0
    FROM json_each(NEW.waits) AS e
    WHERE oncekey_executions.id = e.value ->> 0 AND oncekey_executions.fence = e.value ->> 1
        AND oncekey_executions.status = 1 AND oncekey_executions.wakes = e.value ->> 14
        AND EXISTS (
            SELECT 1 FROM oncekey_promises AS p
            WHERE p.id = e.value ->> 2 AND p.execution = e.value ->> 0
        );

    -- One that others wait for is ended by itself, so that they are told.
    UPDATE oncekey_executions
    SET status = e.value ->> 2, result = substr(NEW.pieces, e.value ->> 3, e.value ->> 4),
        completed_at = e.value ->> 5, expires_at = e.value ->> 6, owner = 0
    FROM json_each(NEW.endings) AS e
    WHERE oncekey_executions.id = e.value ->> 0 AND oncekey_executions.fence = e.value ->> 1
        AND oncekey_executions.status = 1 AND oncekey_executions.called = 0;

    INSERT INTO oncekey_outcomes (
        id, fence, kind, status, headers, body, completed_at, expires_at
    )
    SELECT
        c.id, c.fence, e.value ->> 8, e.value ->> 9, x'',
        substr(NEW.pieces, e.value ->> 3, e.value ->> 4), e.value ->> 5, e.value ->> 6
    FROM json_each(NEW.endings) AS e
    JOIN oncekey_executions AS x
        ON x.id = e.value ->> 0 AND x.fence = e.value ->> 1 AND x.status = e.value ->> 2
    JOIN oncekey_claims AS c ON c.id = x.id
    WHERE e.value ->> 7 = 1
    ON CONFLICT DO NOTHING;
END

-- name: work
INSERT INTO oncekey_work VALUES (?, ?, ?, ?, ?, ?, ?, ?)
