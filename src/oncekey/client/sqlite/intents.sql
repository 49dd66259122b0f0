-- name: schema
CREATE TABLE IF NOT EXISTS intents (
    origin TEXT NOT NULL,
    name TEXT NOT NULL,
    key TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    sent_at INTEGER,
    method TEXT,
    url TEXT,
    headers TEXT,
    body BLOB,
    fingerprint BLOB,
    done_at INTEGER,
    status INTEGER,
    answer_headers TEXT,
    answer BLOB,
    PRIMARY KEY (origin, name)
) STRICT

-- name: index_done
-- What is done is forgotten oldest first.
CREATE INDEX IF NOT EXISTS intents_done ON intents (done_at) WHERE done_at IS NOT NULL

-- name: sweep
-- A few at a time: nobody waits for a large file to be tidied up.
DELETE FROM intents WHERE rowid IN (
    SELECT rowid FROM intents WHERE done_at IS NOT NULL AND done_at < :before ORDER BY done_at LIMIT 100
)

-- name: expire
-- The one that is asked for must be gone, however many are in front of it.
DELETE FROM intents WHERE origin = :origin AND name = :name AND done_at < :before

-- name: capture
INSERT INTO intents (origin, name, key, created_at) VALUES (:origin, :name, :key, :now)
ON CONFLICT DO NOTHING

-- name: one
SELECT origin, name, key, created_at, sent_at, method, url, headers, body, fingerprint,
    done_at, status, answer_headers, answer
FROM intents WHERE origin = :origin AND name = :name

-- name: freeze
-- Whoever is first says what is sent.
UPDATE intents SET sent_at = :sent_at, method = :method, url = :url, headers = :headers, body = :body,
    fingerprint = :fingerprint
WHERE origin = :origin AND name = :name AND key = :key AND method IS NULL

-- name: settle
-- What was asked is of no more use once its answer is there; an answer that is not kept is asked for again.
UPDATE intents SET done_at = :now, status = :status, answer_headers = :headers, answer = :body,
    body = CASE WHEN :status IS NULL THEN body ELSE x'' END
WHERE origin = :origin AND name = :name AND key = :key AND done_at IS NULL

-- name: forget
DELETE FROM intents WHERE origin = :origin AND name = :name AND key = :key

-- name: pending
SELECT origin, name, key, created_at, sent_at, method, url, headers, body, fingerprint,
    done_at, status, answer_headers, answer
FROM intents WHERE origin = :origin AND done_at IS NULL ORDER BY created_at, rowid
