-- SQL of the PostgreSQL store. Names are shared with SQLite; `requests.py` says what each must do.
-- Casts are written in full: `::` behind a placeholder is not understood by every driver's layer.

-- name: group
SELECT oncekey_group($1, $2, $3, $4, $5, $6)

-- name: keep_alive
SELECT 1 WHERE oncekey_keep_alive(%(owner)s, %(stale)s)

-- name: find
SELECT * FROM oncekey_records WHERE digest = %(digest)s

-- name: find_all
SELECT * FROM oncekey_records WHERE digest = ANY (%(digests)s)

-- name: find_by_id
SELECT * FROM oncekey_records WHERE id = %(id)s

-- name: insert
INSERT INTO oncekey_claims (
    id, digest, namespace, endpoint, key, fingerprint, owner, fence,
    request_id, retention, created_at, expires_at
)
VALUES (
    %(id)s, %(digest)s, %(namespace)s, %(endpoint)s, %(key)s, %(fingerprint)s, %(owner)s, 1,
    %(request_id)s, %(retention)s, %(created_at)s, %(expires_at)s
)
ON CONFLICT DO NOTHING
RETURNING id

-- name: lock_claim
-- Locked first, changed by a second statement: only that one sees what was committed meanwhile.
SELECT 1 FROM oncekey_claims WHERE id = %(id)s FOR UPDATE

-- name: try_lock_claim
-- A row that is locked has somebody alive at it. So has, for all we can see, any row when the
-- caller's transaction looks at an old snapshot: an outcome written since then is not in it.
SELECT 1 FROM oncekey_claims
WHERE id = %(id)s AND current_setting('transaction_isolation') = 'read committed'
FOR UPDATE SKIP LOCKED

-- name: take
UPDATE oncekey_claims SET owner = %(owner)s, fence = fence + 1
WHERE id = %(id)s AND fence = %(fence)s
    AND NOT EXISTS (SELECT 1 FROM oncekey_outcomes AS o WHERE o.id = %(id)s)
RETURNING id

-- name: settle
INSERT INTO oncekey_outcomes (id, fence, kind, status, headers, body, completed_at, expires_at)
SELECT
    c.id, c.fence, CAST(%(kind)s AS SMALLINT), CAST(%(status)s AS INTEGER),
    CAST(%(headers)s AS BYTEA), CAST(%(body)s AS BYTEA),
    CAST(%(completed_at)s AS BIGINT), CAST(%(expires_at)s AS BIGINT)
FROM oncekey_claims AS c
WHERE c.id = %(id)s AND c.fence = %(fence)s
FOR NO KEY UPDATE OF c
ON CONFLICT DO NOTHING
RETURNING id

-- name: outcome_fence
SELECT fence FROM oncekey_outcomes WHERE id = %(id)s

-- name: release
DELETE FROM oncekey_claims
WHERE id = %(id)s AND fence = %(fence)s
    AND NOT EXISTS (SELECT 1 FROM oncekey_outcomes AS o WHERE o.id = %(id)s)
RETURNING id

-- name: abandon
-- Owner 0 is nobody: the claim counts as lapsed from now on. The fence alone does not say whose it
-- is: a process that is unsure of its own takeover knows only which fence that would have had.
UPDATE oncekey_claims SET owner = 0
WHERE id = %(id)s AND fence = %(fence)s AND owner IN (%(owner)s, 0)
    AND NOT EXISTS (SELECT 1 FROM oncekey_outcomes AS o WHERE o.id = %(id)s)
RETURNING id

-- name: purge
DELETE FROM oncekey_claims WHERE digest = %(digest)s RETURNING id

-- name: forget_expired
-- Only while it is still expired: a holder that came back may have settled it meanwhile, which a
-- transaction that looks at an old snapshot cannot see.
DELETE FROM oncekey_claims AS c
WHERE c.id = %(id)s AND c.fence = %(fence)s
    AND CASE
        WHEN EXISTS (SELECT 1 FROM oncekey_outcomes AS o WHERE o.id = c.id)
        THEN EXISTS (
            SELECT 1 FROM oncekey_outcomes AS o WHERE o.id = c.id AND o.expires_at <= %(now)s
        )
        ELSE c.expires_at <= %(now)s
            AND current_setting('transaction_isolation') = 'read committed'
    END
RETURNING id

-- name: forget_outcome
DELETE FROM oncekey_outcomes WHERE id = %(id)s

-- name: register
INSERT INTO oncekey_owners (name, host, heartbeat_at, started_at, floor)
VALUES (%(name)s, %(host)s, oncekey_now(), %(now)s, %(floor)s)
RETURNING id

-- name: beat
UPDATE oncekey_owners SET heartbeat_at = oncekey_now(), floor = %(floor)s
WHERE id = %(owner)s
RETURNING id

-- name: retire
-- A process that leaves in good order: what it holds lapses at once.
UPDATE oncekey_owners SET heartbeat_at = 0 WHERE id = %(owner)s

-- name: owners
SELECT id, name, host, oncekey_silence(heartbeat_at), floor, heartbeat_at
FROM oncekey_owners
ORDER BY id

-- name: first_held
-- When the first claims of owners that are not settled are past their time. The bounds of the window
-- are those of the outcomes, too: no plan reads more of them.
SELECT c.owner, c.expires_at
FROM oncekey_claims AS c
WHERE c.id >= %(since)s AND c.id < %(to)s
    AND c.owner = ANY (
        ARRAY(SELECT CAST(e AS BIGINT) FROM jsonb_array_elements_text(%(owners)s::JSONB) AS e)
    )
    AND NOT EXISTS (
        SELECT FROM oncekey_outcomes AS o
        WHERE o.id = c.id AND o.id >= %(since)s AND o.id < %(to)s
    )
ORDER BY c.id

-- name: forget_owner
-- Not when it has beaten meanwhile: it is back.
DELETE FROM oncekey_owners WHERE id = %(owner)s AND heartbeat_at = %(heartbeat)s
RETURNING id

-- name: sweep
-- The outcomes of one batch; their claims follow in the same transaction. The claims are locked
-- first, as everybody does, and what somebody else is at is left for the next batch.
WITH expired AS (
    SELECT c.id
    FROM oncekey_outcomes AS o
    JOIN oncekey_claims AS c ON c.id = o.id
    WHERE o.expires_at <= %(now)s
    ORDER BY o.expires_at
    LIMIT %(limit)s
    FOR UPDATE OF c SKIP LOCKED
)
DELETE FROM oncekey_outcomes WHERE id IN (SELECT id FROM expired) RETURNING id

-- name: count_expired
SELECT count(*) FROM oncekey_outcomes WHERE expires_at <= %(now)s

-- name: forget_claims
DELETE FROM oncekey_claims
WHERE id IN (SELECT CAST(e AS BIGINT) FROM jsonb_array_elements_text(%(ids)s::JSONB) AS e)

-- name: claims_ahead
-- Where a window ends that begins here.
SELECT id FROM oncekey_claims WHERE id >= %(since)s ORDER BY id LIMIT 1 OFFSET %(skip)s

-- name: expired_claims
-- Past their time and never settled; whether the holder is gone is for the caller to find out.
SELECT * FROM oncekey_records
WHERE id >= %(since)s AND id < %(to)s AND kind IS NULL AND expires_at <= %(now)s
ORDER BY id

-- name: expired_abandoned
-- The same, of those that nobody holds.
SELECT * FROM oncekey_records
WHERE id IN (SELECT c.id FROM oncekey_claims AS c WHERE c.owner = 0)
    AND kind IS NULL AND expires_at <= %(now)s
ORDER BY id

-- name: turn
-- Whoever moves the time forward has the turn.
INSERT INTO oncekey_turns (name, taken_at) VALUES (%(name)s, %(now)s)
ON CONFLICT (name) DO UPDATE SET taken_at = excluded.taken_at
WHERE oncekey_turns.taken_at <= excluded.taken_at - %(interval)s
RETURNING name

-- name: retention
SELECT name, seconds FROM oncekey_retention

-- name: set_retention
INSERT INTO oncekey_retention (name, seconds) VALUES (%(name)s, %(seconds)s)
ON CONFLICT (name) DO UPDATE SET seconds = excluded.seconds

-- name: lock_schema
-- Several processes may start at once; one of them makes the tables.
SELECT pg_advisory_xact_lock(7710271918423811)

-- name: make_version_table
CREATE TABLE IF NOT EXISTS oncekey_schema (version INTEGER NOT NULL)

-- name: has_version_table
-- Read from the catalogue itself: a name resolved by the server may still be looked up in a cache
-- that has not heard of tables made a moment ago.
SELECT 1 FROM pg_catalog.pg_class
WHERE relname = 'oncekey_schema' AND relkind = 'r' AND pg_catalog.pg_table_is_visible(oid)

-- name: version
SELECT max(version) FROM oncekey_schema

-- name: set_version
INSERT INTO oncekey_schema (version) VALUES (%(version)s)

-- name: try_key_lock
-- A claim in somebody's open transaction cannot be seen; waiting for it would take as long as its
-- handler does. The lock on 64 bits of the digest tells at once.
SELECT pg_try_advisory_xact_lock(
    CAST(CAST('x' || encode(substring(CAST(%(digest)s AS BYTEA) FROM 1 FOR 8), 'hex') AS BIT(64))
        AS BIGINT)
)

-- name: session
-- Settings a writer relies on whatever the server's defaults are: an answer is given after the
-- commit is on disk, and plans that were made on small tables must not read whole large ones.
SELECT
    set_config('synchronous_commit',
        CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on'
        ELSE current_setting('synchronous_commit') END, false),
    set_config('default_transaction_isolation', 'read committed', false),
    set_config('statement_timeout', %(statement_timeout)s, false),
    set_config('lock_timeout', %(lock_timeout)s, false),
    set_config('idle_in_transaction_session_timeout', %(statement_timeout)s, false),
    set_config('enable_seqscan', 'off', false),
    set_config('enable_hashjoin', 'off', false),
    set_config('enable_mergejoin', 'off', false),
    set_config('jit', 'off', false)

-- name: hurry
-- Who carries several requests out in one transaction waits for nobody: milliseconds.
SELECT set_config('lock_timeout', '20', true)

-- name: backend
SELECT pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()

-- name: end_backend
-- A connection that was cut may still be at work on the server's side; what it does is certain only
-- once it has ended.
SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
WHERE pid = %(pid)s AND backend_start = %(backend_start)s
