-- Claims and outcomes are narrow, append-mostly rows in two tables. Numbers grow with time, so new
-- rows go to the end; the only random access is one index of 16-byte digests.

CREATE TABLE oncekey_claims (
    id BIGINT PRIMARY KEY,
    digest BYTEA NOT NULL,
    namespace TEXT NOT NULL,
    endpoint TEXT NOT NULL,
    key TEXT NOT NULL,
    fingerprint BYTEA NOT NULL,
    owner BIGINT NOT NULL,
    fence BIGINT NOT NULL,
    request_id TEXT NOT NULL,
    retention TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    -- What the key stands for: exactly one of these, or none for a plain request.
    workflow_id TEXT,
    task_id TEXT,
    promise_id TEXT,
    CHECK (num_nonnulls(workflow_id, task_id, promise_id) <= 1)
);
CREATE UNIQUE INDEX oncekey_claims_digest ON oncekey_claims (digest);
-- Claims without an owner are rare and belong to nobody's floor; this finds them.
CREATE INDEX oncekey_claims_abandoned ON oncekey_claims (id) WHERE owner = 0;

CREATE TABLE oncekey_outcomes (
    id BIGINT PRIMARY KEY,
    fence BIGINT NOT NULL,
    kind SMALLINT NOT NULL,
    status INTEGER NOT NULL,
    headers BYTEA NOT NULL,
    body BYTEA NOT NULL,
    completed_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);
CREATE INDEX oncekey_outcomes_expiry ON oncekey_outcomes (expires_at);

-- One row per process. An identity: a number is never given to a second process.
-- `floor` is the lowest number the process may still hold: what is in flight lies above it.
-- `heartbeat_at` is by the database's clock, the only one all machines share; 0 once it has left.
CREATE TABLE oncekey_owners (
    id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    host TEXT NOT NULL,
    heartbeat_at BIGINT NOT NULL,
    started_at BIGINT NOT NULL,
    floor BIGINT NOT NULL
);

CREATE TABLE oncekey_retention (
    name TEXT PRIMARY KEY,
    seconds DOUBLE PRECISION NOT NULL
);

CREATE TABLE oncekey_turns (
    name TEXT PRIMARY KEY,
    taken_at BIGINT NOT NULL
);

-- Milliseconds since 1970 that go on within a transaction.
CREATE FUNCTION oncekey_now() RETURNS BIGINT LANGUAGE sql VOLATILE AS $$
    SELECT (extract(EPOCH FROM clock_timestamp()) * 1000)::BIGINT
$$;

-- How long a process has been silent; nothing when it has left. Nobody can be heard while the
-- server is down, so silence counts from its start: a restart does not end everyone's lease.
CREATE FUNCTION oncekey_silence(heartbeat_at BIGINT) RETURNS BIGINT LANGUAGE sql VOLATILE AS $$
    SELECT CASE WHEN heartbeat_at > 0 THEN oncekey_now() - greatest(
        heartbeat_at, (extract(EPOCH FROM pg_postmaster_start_time()) * 1000)::BIGINT
    ) END
$$;

-- A claim with its outcome and its holder: all a decision needs.
CREATE VIEW oncekey_records AS
SELECT
    c.id, c.namespace, c.endpoint, c.key, c.fingerprint, c.owner, c.fence, c.request_id,
    c.retention, c.created_at, c.expires_at, c.workflow_id, c.task_id, c.promise_id,
    o.kind, o.status, o.headers, o.body, o.completed_at, o.expires_at AS kept_until,
    w.name AS owner_name, w.host AS owner_host, oncekey_silence(w.heartbeat_at) AS owner_silence,
    c.digest
FROM oncekey_claims AS c
LEFT JOIN oncekey_outcomes AS o ON o.id = c.id
LEFT JOIN oncekey_owners AS w ON w.id = c.owner;

-- A process that stood still claims nothing under a stale heartbeat: it beats in the same
-- transaction first. False when its row is gone: then it must register again.
CREATE FUNCTION oncekey_keep_alive(p_owner BIGINT, p_stale BIGINT) RETURNS BOOLEAN
LANGUAGE plpgsql AS $$
DECLARE
    v_silence BIGINT;
BEGIN
    SELECT oncekey_now() - heartbeat_at INTO v_silence FROM oncekey_owners WHERE id = p_owner;
    IF v_silence > p_stale THEN
        UPDATE oncekey_owners SET heartbeat_at = oncekey_now() WHERE id = p_owner;
        RETURN FOUND;
    END IF;
    RETURN v_silence IS NOT NULL;
END $$;

-- A group of claims and outcomes in one statement and one round trip. Texts and numbers come as
-- JSON rows, bytes as one value that the rows cut their pieces from. Answers the places of the rows
-- that did not go in: claims as 1, 2, …, outcomes as -1, -2, …; NULL when the owner is unknown.
CREATE FUNCTION oncekey_group(
    p_owner BIGINT, p_stale BIGINT,
    p_claims JSONB, p_digests BYTEA, p_settles JSONB, p_pieces BYTEA
) RETURNS INTEGER[] LANGUAGE plpgsql AS $$
DECLARE
    v_count INTEGER;
    v_left_out INTEGER[] := '{}';
BEGIN
    IF NOT oncekey_keep_alive(p_owner, p_stale) THEN
        RETURN NULL;
    END IF;

    -- In the order of the digests: two groups that share keys wait for each other, never in a circle.
    INSERT INTO oncekey_claims (
        id, digest, namespace, endpoint, key, fingerprint, owner, fence,
        request_id, retention, created_at, expires_at
    )
    SELECT
        (r ->> 0)::BIGINT, substring(p_digests FROM 32 * n::INTEGER - 31 FOR 16), r ->> 1, r ->> 2,
        r ->> 3, substring(p_digests FROM 32 * n::INTEGER - 15 FOR 16), p_owner, 1,
        r ->> 4, r ->> 5, (r ->> 6)::BIGINT, (r ->> 7)::BIGINT
    FROM jsonb_array_elements(p_claims) WITH ORDINALITY AS e (r, n)
    ORDER BY 2, n
    ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS v_count = ROW_COUNT;
    IF v_count < jsonb_array_length(p_claims) THEN
        v_left_out := ARRAY(
            SELECT n::INTEGER
            FROM jsonb_array_elements(p_claims) WITH ORDINALITY AS e (r, n)
            WHERE NOT EXISTS (
                SELECT 1 FROM oncekey_claims AS c
                WHERE c.id = (r ->> 0)::BIGINT AND c.owner = p_owner AND c.fence = 1
                    AND c.digest = substring(p_digests FROM 32 * n::INTEGER - 31 FOR 16)
                    AND NOT EXISTS (SELECT 1 FROM oncekey_outcomes AS o WHERE o.id = c.id)
            )
        );
    END IF;

    -- The fence decides: an outcome of a claim that was taken over finds no claim to belong to. The
    -- lock keeps takeovers out until the commit; a row that is locked itself is left out, so that
    -- nobody's open transaction stops a whole group.
    INSERT INTO oncekey_outcomes (
        id, fence, kind, status, headers, body, completed_at, expires_at
    )
    SELECT
        c.id, c.fence, (r ->> 2)::SMALLINT, (r ->> 3)::INTEGER,
        substring(p_pieces FROM (r ->> 4)::INTEGER FOR (r ->> 5)::INTEGER),
        substring(p_pieces FROM (r ->> 6)::INTEGER FOR (r ->> 7)::INTEGER),
        (r ->> 8)::BIGINT, (r ->> 9)::BIGINT
    FROM jsonb_array_elements(p_settles) AS e (r)
    JOIN oncekey_claims AS c ON c.id = (r ->> 0)::BIGINT AND c.fence = (r ->> 1)::BIGINT
    ORDER BY c.id
    FOR NO KEY UPDATE OF c SKIP LOCKED
    ON CONFLICT DO NOTHING;
    GET DIAGNOSTICS v_count = ROW_COUNT;
    IF v_count < jsonb_array_length(p_settles) THEN
        v_left_out := v_left_out || ARRAY(
            SELECT -n::INTEGER
            FROM jsonb_array_elements(p_settles) WITH ORDINALITY AS e (r, n)
            WHERE NOT EXISTS (
                SELECT 1 FROM oncekey_outcomes AS o
                WHERE o.id = (r ->> 0)::BIGINT AND o.fence = (r ->> 1)::BIGINT
            )
        );
    END IF;

    RETURN v_left_out;
END $$;
