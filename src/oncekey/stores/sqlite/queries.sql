-- SQL of the SQLite store. Names are shared with PostgreSQL; `requests.py` says what each must do.

-- name: group_view
-- A view to insert a group into, and a trigger that spreads it over the tables: a whole group is one
-- statement, one transaction and one sync, and the interpreter is let go of once.
CREATE TEMP VIEW IF NOT EXISTS oncekey_group AS
SELECT NULL AS owner, NULL AS claims, NULL AS digests, NULL AS settles, NULL AS pieces

-- name: group_trigger
CREATE TEMP TRIGGER IF NOT EXISTS oncekey_spread INSTEAD OF INSERT ON oncekey_group
BEGIN
    INSERT INTO oncekey_claims (
        id, digest, namespace, endpoint, key, fingerprint, owner, fence,
        request_id, retention, created_at, expires_at
    )
    SELECT
        e.value ->> 0, substr(NEW.digests, 1 + 32 * e.key, 16), e.value ->> 1, e.value ->> 2,
        e.value ->> 3, substr(NEW.digests, 17 + 32 * e.key, 16), NEW.owner, 1,
        e.value ->> 4, e.value ->> 5, e.value ->> 6, e.value ->> 7
    FROM json_each(NEW.claims) AS e
    WHERE true
    ON CONFLICT DO NOTHING;

    -- The fence decides: an outcome of a claim that was taken over finds no claim to belong to.
    INSERT INTO oncekey_outcomes (
        id, fence, kind, status, headers, body, completed_at, expires_at
    )
    SELECT
        c.id, c.fence, e.value ->> 2, e.value ->> 3,
        substr(NEW.pieces, e.value ->> 4, e.value ->> 5),
        substr(NEW.pieces, e.value ->> 6, e.value ->> 7),
        e.value ->> 8, e.value ->> 9
    FROM json_each(NEW.settles) AS e
    JOIN oncekey_claims AS c ON c.id = e.value ->> 0 AND c.fence = e.value ->> 1
    WHERE true
    ON CONFLICT DO NOTHING;
END

-- name: group
INSERT INTO oncekey_group VALUES (?, ?, ?, ?, ?)

-- name: find
SELECT * FROM oncekey_records WHERE digest = :digest

-- name: find_by_id
SELECT * FROM oncekey_records WHERE id = :id

-- name: insert
INSERT INTO oncekey_claims (
    id, digest, namespace, endpoint, key, fingerprint, owner, fence,
    request_id, retention, created_at, expires_at
)
VALUES (
    :id, :digest, :namespace, :endpoint, :key, :fingerprint, :owner, 1,
    :request_id, :retention, :created_at, :expires_at
)
ON CONFLICT DO NOTHING
RETURNING id

-- name: lock_claim
-- SQLite has one writer at a time: the transaction is lock enough.
SELECT 1

-- name: try_lock_claim
SELECT 1

-- name: take
UPDATE oncekey_claims SET owner = :owner, fence = fence + 1
WHERE id = :id AND fence = :fence
    AND NOT EXISTS (SELECT 1 FROM oncekey_outcomes AS o WHERE o.id = :id)
RETURNING id

-- name: settle
INSERT INTO oncekey_outcomes (id, fence, kind, status, headers, body, completed_at, expires_at)
SELECT c.id, c.fence, :kind, :status, :headers, :body, :completed_at, :expires_at
FROM oncekey_claims AS c
WHERE c.id = :id AND c.fence = :fence
ON CONFLICT DO NOTHING
RETURNING id

-- name: outcome_fence
SELECT fence FROM oncekey_outcomes WHERE id = :id

-- name: release
DELETE FROM oncekey_claims
WHERE id = :id AND fence = :fence
    AND NOT EXISTS (SELECT 1 FROM oncekey_outcomes AS o WHERE o.id = :id)
RETURNING id

-- name: abandon
-- Owner 0 is nobody: the claim counts as lapsed from now on. The fence alone does not say whose it
-- is: a process that is unsure of its own takeover knows only which fence that would have had.
UPDATE oncekey_claims SET owner = 0
WHERE id = :id AND fence = :fence AND owner IN (:owner, 0)
    AND NOT EXISTS (SELECT 1 FROM oncekey_outcomes AS o WHERE o.id = :id)
RETURNING id

-- name: purge
DELETE FROM oncekey_claims WHERE digest = :digest RETURNING id

-- name: forget_expired
-- Only while it is still expired: a holder that came back may have settled it meanwhile.
DELETE FROM oncekey_claims
WHERE id = :id AND fence = :fence
    AND coalesce(
        (SELECT o.expires_at FROM oncekey_outcomes AS o WHERE o.id = :id), expires_at
    ) <= :now
RETURNING id

-- name: forget_outcome
DELETE FROM oncekey_outcomes WHERE id = :id

-- name: register
INSERT INTO oncekey_owners (name, boot, heartbeat_at, started_at, floor)
VALUES (:name, :boot, :steady, :now, :floor)
RETURNING id

-- name: beat
UPDATE oncekey_owners SET heartbeat_at = :steady, floor = :floor WHERE id = :owner RETURNING id

-- name: retire
-- A process that leaves in good order: what it holds lapses at once.
UPDATE oncekey_owners SET boot = '' WHERE id = :owner

-- name: owners
SELECT id, name, boot, heartbeat_at, floor, heartbeat_at FROM oncekey_owners ORDER BY id

-- name: first_held
-- When the first claims of owners that are not settled are past their time.
SELECT c.owner, c.expires_at
FROM oncekey_claims AS c
LEFT JOIN oncekey_outcomes AS o ON o.id = c.id
WHERE c.id >= :since AND c.id < :to AND o.id IS NULL
    AND c.owner IN (SELECT value FROM json_each(:owners))
ORDER BY c.id

-- name: forget_owner
-- Not when it has beaten meanwhile: it is back.
DELETE FROM oncekey_owners WHERE id = :owner AND heartbeat_at = :heartbeat RETURNING id

-- name: sweep
-- The outcomes of one batch; their claims follow in the same transaction.
DELETE FROM oncekey_outcomes
WHERE id IN (
    SELECT id FROM oncekey_outcomes WHERE expires_at <= :now ORDER BY expires_at LIMIT :limit
)
RETURNING id

-- name: count_expired
SELECT count(*) FROM oncekey_outcomes WHERE expires_at <= :now

-- name: forget_claims
DELETE FROM oncekey_claims WHERE id IN (SELECT value FROM json_each(:ids))

-- name: claims_ahead
-- Where a window ends that begins here.
SELECT id FROM oncekey_claims WHERE id >= :since ORDER BY id LIMIT 1 OFFSET :skip

-- name: expired_claims
-- Past their time and never settled; whether the holder is gone is for the caller to find out.
SELECT * FROM oncekey_records
WHERE id >= :since AND id < :to AND kind IS NULL AND expires_at <= :now
ORDER BY id

-- name: expired_abandoned
-- The same, of those that nobody holds.
SELECT * FROM oncekey_records
WHERE id IN (SELECT c.id FROM oncekey_claims AS c WHERE c.owner = 0)
    AND kind IS NULL AND expires_at <= :now
ORDER BY id

-- name: turn
-- Whoever moves the time forward has the turn.
INSERT INTO oncekey_turns (name, taken_at) VALUES (:name, :now)
ON CONFLICT (name) DO UPDATE SET taken_at = excluded.taken_at
WHERE oncekey_turns.taken_at <= :now - :interval
RETURNING name

-- name: retention
SELECT name, seconds FROM oncekey_retention

-- name: set_retention
INSERT INTO oncekey_retention (name, seconds) VALUES (:name, :seconds)
ON CONFLICT (name) DO UPDATE SET seconds = excluded.seconds

-- name: make_version_table
CREATE TABLE IF NOT EXISTS oncekey_schema (version INTEGER NOT NULL)

-- name: has_version_table
SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'oncekey_schema'

-- name: version
SELECT max(version) FROM oncekey_schema

-- name: set_version
INSERT INTO oncekey_schema (version) VALUES (:version)

-- name: try_key_lock
-- A SQLite transaction that writes is alone already.
SELECT 1
