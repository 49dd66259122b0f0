-- Durable work. An execution is a workflow or a task; everything it waits for is a promise; what it
-- has done is its journal. Numbers grow with time, as those of claims do: an execution, a promise or
-- an event with a key has the number of its claim.

CREATE TABLE oncekey_executions (
    id INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    sort INTEGER NOT NULL,
    name TEXT NOT NULL,
    input BLOB NOT NULL,
    status INTEGER NOT NULL,
    owner INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    -- How often something it waited for was settled: who goes to sleep must have seen them all.
    wakes INTEGER NOT NULL,
    -- How long it is kept once it is over.
    keep INTEGER NOT NULL,
    keyed INTEGER NOT NULL,
    frees_key INTEGER NOT NULL,
    -- Whether another execution waits for its end.
    called INTEGER NOT NULL,
    due_at INTEGER,
    completed_at INTEGER,
    expires_at INTEGER,
    result BLOB,
    forked_from INTEGER,
    forked_at INTEGER,
    -- Of a fork: the execution whose time and randomness it shares.
    origin INTEGER
);
CREATE INDEX oncekey_executions_tenant ON oncekey_executions (tenant, id);
-- READY and RUNNING: what a process may have to pick up.
CREATE INDEX oncekey_executions_live ON oncekey_executions (owner, id) WHERE status < 2;
CREATE INDEX oncekey_executions_due ON oncekey_executions (due_at)
WHERE status < 3 AND due_at IS NOT NULL;
CREATE INDEX oncekey_executions_expiry ON oncekey_executions (expires_at)
WHERE expires_at IS NOT NULL;

-- The steps of an execution lie together.
CREATE TABLE oncekey_journal (
    execution INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    step INTEGER NOT NULL,
    name TEXT NOT NULL,
    fingerprint BLOB NOT NULL,
    failed INTEGER NOT NULL,
    body BLOB NOT NULL,
    attempts INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    at INTEGER NOT NULL,
    PRIMARY KEY (execution, seq)
) WITHOUT ROWID;

CREATE TABLE oncekey_promises (
    id INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    kind INTEGER NOT NULL,
    name TEXT NOT NULL,
    state INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    -- Of the execution that waits; none for a promise made by the API.
    execution INTEGER,
    seq INTEGER,
    fingerprint BLOB NOT NULL,
    keyed INTEGER NOT NULL,
    due_at INTEGER,
    body BLOB,
    settled_by TEXT,
    settled_at INTEGER,
    topic TEXT,
    condition TEXT,
    -- What went wrong when the condition was last evaluated.
    trouble TEXT,
    -- The execution whose end settles it.
    target INTEGER,
    attempts INTEGER NOT NULL,
    expires_at INTEGER
);
CREATE UNIQUE INDEX oncekey_promises_seq ON oncekey_promises (execution, seq)
WHERE execution IS NOT NULL;
CREATE UNIQUE INDEX oncekey_promises_name ON oncekey_promises (execution, name)
WHERE execution IS NOT NULL AND kind = 0;
CREATE INDEX oncekey_promises_due ON oncekey_promises (due_at)
WHERE state = 0 AND due_at IS NOT NULL;
CREATE INDEX oncekey_promises_target ON oncekey_promises (target)
WHERE state = 0 AND target IS NOT NULL;
CREATE INDEX oncekey_promises_topic ON oncekey_promises (tenant, topic, id)
WHERE state = 0 AND topic IS NOT NULL;
CREATE INDEX oncekey_promises_tenant ON oncekey_promises (tenant, id) WHERE kind = 0;
CREATE INDEX oncekey_promises_expiry ON oncekey_promises (expires_at)
WHERE expires_at IS NOT NULL;

-- Digests of tokens; the tokens themselves are nowhere. A promise has one more each time its code is
-- replayed: those handed out before stay good.
CREATE TABLE oncekey_tokens (
    digest BLOB PRIMARY KEY,
    promise INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX oncekey_tokens_promise ON oncekey_tokens (promise);

-- Resolutions that came before their promise, by the digest of its key.
CREATE TABLE oncekey_parked (
    digest BLOB PRIMARY KEY,
    tenant TEXT NOT NULL,
    key TEXT NOT NULL,
    state INTEGER NOT NULL,
    body BLOB NOT NULL,
    settled_by TEXT,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    -- The claim of the request's own key, so that it can say which promise it was delivered to.
    request INTEGER
) WITHOUT ROWID;
CREATE INDEX oncekey_parked_expiry ON oncekey_parked (expires_at);

CREATE TABLE oncekey_events (
    id INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    topic TEXT NOT NULL,
    data BLOB NOT NULL,
    headers BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    matched INTEGER NOT NULL,
    settled INTEGER NOT NULL
);
CREATE INDEX oncekey_events_topic ON oncekey_events (tenant, topic, id);
CREATE INDEX oncekey_events_tenant ON oncekey_events (tenant, id);
CREATE INDEX oncekey_events_expiry ON oncekey_events (expires_at);
CREATE INDEX oncekey_events_unmatched ON oncekey_events (id) WHERE matched = 0;

CREATE TABLE oncekey_controls (
    tenant TEXT NOT NULL,
    request_key TEXT NOT NULL,
    action TEXT NOT NULL,
    execution INTEGER NOT NULL,
    parameters TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('in_progress', 'succeeded', 'failed')),
    answer TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, request_key)
) WITHOUT ROWID;
CREATE INDEX oncekey_controls_age ON oncekey_controls (updated_at);

-- What can be started: the names of every process that runs durable work.
CREATE TABLE oncekey_names (
    sort INTEGER NOT NULL,
    name TEXT NOT NULL,
    seen_at INTEGER NOT NULL,
    PRIMARY KEY (sort, name)
) WITHOUT ROWID;

CREATE TABLE oncekey_api_keys (
    id TEXT PRIMARY KEY,
    digest BLOB NOT NULL UNIQUE,
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    subject TEXT NOT NULL,
    label TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER
) WITHOUT ROWID;

CREATE TABLE oncekey_schedules (
    id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    spec TEXT NOT NULL,
    paused INTEGER NOT NULL,
    next_at INTEGER NOT NULL,
    last_at INTEGER,
    updated_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX oncekey_schedules_next ON oncekey_schedules (next_at) WHERE paused = 0;

-- Claims that durable work holds belong to nobody's floor; this finds them.
CREATE INDEX oncekey_claims_engine ON oncekey_claims (id) WHERE owner = -2;
-- Keys of promises end with their time, whatever became of the promise.
CREATE INDEX oncekey_claims_promise ON oncekey_claims (expires_at) WHERE promise_id IS NOT NULL;

CREATE VIEW oncekey_execution_rows AS
SELECT
    e.id, e.tenant, e.sort, e.name, e.input, e.status, e.owner, e.fence, e.created_at, e.wakes,
    e.keep, c.key, e.frees_key, e.due_at, e.completed_at, e.expires_at, e.result, e.forked_from,
    e.forked_at, e.origin
FROM oncekey_executions AS e
LEFT JOIN oncekey_claims AS c ON c.id = e.id AND e.keyed = 1;

CREATE VIEW oncekey_promise_rows AS
SELECT
    p.id, p.tenant, p.kind, p.name, p.state, p.created_at, p.execution, p.seq, e.sort,
    p.fingerprint, c.key, c.expires_at AS key_expires_at, p.due_at, p.body, p.settled_by,
    p.settled_at, p.topic, p.condition, p.trouble, p.target, p.attempts, c.digest
FROM oncekey_promises AS p
LEFT JOIN oncekey_claims AS c ON c.id = p.id AND p.keyed = 1
LEFT JOIN oncekey_executions AS e ON e.id = p.execution;
