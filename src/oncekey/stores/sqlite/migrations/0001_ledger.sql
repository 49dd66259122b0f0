-- Claims and outcomes are narrow, append-mostly rows in two tables. Numbers grow with time, so new
-- rows go to the end; the only random access is one index of 16-byte digests.

CREATE TABLE oncekey_claims (
    id INTEGER PRIMARY KEY,
    digest BLOB NOT NULL,
    namespace TEXT NOT NULL,
    endpoint TEXT NOT NULL,
    key TEXT NOT NULL,
    fingerprint BLOB NOT NULL,
    owner INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    request_id TEXT NOT NULL,
    retention TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    -- What the key stands for: exactly one of these, or none for a plain request.
    workflow_id TEXT,
    task_id TEXT,
    promise_id TEXT,
    CHECK ((workflow_id IS NOT NULL) + (task_id IS NOT NULL) + (promise_id IS NOT NULL) <= 1)
);
CREATE UNIQUE INDEX oncekey_claims_digest ON oncekey_claims (digest);
-- Claims without an owner are rare and belong to nobody's floor; this finds them.
CREATE INDEX oncekey_claims_abandoned ON oncekey_claims (id) WHERE owner = 0;

CREATE TABLE oncekey_outcomes (
    id INTEGER PRIMARY KEY,
    fence INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    status INTEGER NOT NULL,
    headers BLOB NOT NULL,
    body BLOB NOT NULL,
    completed_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
);
CREATE INDEX oncekey_outcomes_expiry ON oncekey_outcomes (expires_at);

-- One row per process and boot. AUTOINCREMENT: a number is never given to a second process.
-- `floor` is the lowest number the process may still hold: what is in flight lies above it.
CREATE TABLE oncekey_owners (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    boot TEXT NOT NULL,
    heartbeat_at INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    floor INTEGER NOT NULL
);

CREATE TABLE oncekey_retention (
    name TEXT PRIMARY KEY,
    seconds REAL NOT NULL
);

CREATE TABLE oncekey_turns (
    name TEXT PRIMARY KEY,
    taken_at INTEGER NOT NULL
);

-- A claim with its outcome and its holder: all a decision needs.
CREATE VIEW oncekey_records AS
SELECT
    c.id, c.namespace, c.endpoint, c.key, c.fingerprint, c.owner, c.fence, c.request_id,
    c.retention, c.created_at, c.expires_at, c.workflow_id, c.task_id, c.promise_id,
    o.kind, o.status, o.headers, o.body, o.completed_at, o.expires_at AS kept_until,
    w.name AS owner_name, w.boot AS owner_boot, w.heartbeat_at AS owner_heartbeat,
    c.digest
FROM oncekey_claims AS c
LEFT JOIN oncekey_outcomes AS o ON o.id = c.id
LEFT JOIN oncekey_owners AS w ON w.id = c.owner;
