-- Durable work. An execution is a workflow or a task; everything it waits for is a promise; what it
-- has done is its journal. Numbers grow with time, as those of claims do: an execution, a promise or
-- an event with a key has the number of its claim.

CREATE TABLE oncekey_executions (
    id BIGINT PRIMARY KEY,
    tenant TEXT NOT NULL,
    sort SMALLINT NOT NULL,
    name TEXT NOT NULL,
    input BYTEA NOT NULL,
    status SMALLINT NOT NULL,
    owner BIGINT NOT NULL,
    fence BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    -- How often something it waited for was settled: who goes to sleep must have seen them all.
    wakes BIGINT NOT NULL,
    -- How long it is kept once it is over.
    keep BIGINT NOT NULL,
    keyed SMALLINT NOT NULL,
    frees_key SMALLINT NOT NULL,
    -- Whether another execution waits for its end.
    called SMALLINT NOT NULL,
    due_at BIGINT,
    completed_at BIGINT,
    expires_at BIGINT,
    result BYTEA,
    forked_from BIGINT,
    forked_at BIGINT,
    -- Of a fork: the execution whose time and randomness it shares.
    origin BIGINT
);
CREATE INDEX oncekey_executions_tenant ON oncekey_executions (tenant, id);
-- READY and RUNNING: what a process may have to pick up, oldest first.
CREATE INDEX oncekey_executions_live ON oncekey_executions (id) WHERE status < 2;
CREATE INDEX oncekey_executions_due ON oncekey_executions (due_at)
WHERE status < 3 AND due_at IS NOT NULL;
CREATE INDEX oncekey_executions_expiry ON oncekey_executions (expires_at)
WHERE expires_at IS NOT NULL;

-- The steps of an execution lie together.
CREATE TABLE oncekey_journal (
    execution BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    step SMALLINT NOT NULL,
    name TEXT NOT NULL,
    fingerprint BYTEA NOT NULL,
    failed SMALLINT NOT NULL,
    body BYTEA NOT NULL,
    attempts INTEGER NOT NULL,
    started_at BIGINT NOT NULL,
    at BIGINT NOT NULL,
    PRIMARY KEY (execution, seq)
);

CREATE TABLE oncekey_promises (
    id BIGINT PRIMARY KEY,
    tenant TEXT NOT NULL,
    kind SMALLINT NOT NULL,
    name TEXT NOT NULL,
    state SMALLINT NOT NULL,
    created_at BIGINT NOT NULL,
    -- Of the execution that waits; none for a promise made by the API.
    execution BIGINT,
    seq BIGINT,
    fingerprint BYTEA NOT NULL,
    keyed SMALLINT NOT NULL,
    due_at BIGINT,
    body BYTEA,
    settled_by TEXT,
    settled_at BIGINT,
    topic TEXT,
    condition TEXT,
    -- What went wrong when the condition was last evaluated.
    trouble TEXT,
    -- The execution whose end settles it.
    target BIGINT,
    attempts INTEGER NOT NULL,
    expires_at BIGINT
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
    digest BYTEA PRIMARY KEY,
    promise BIGINT NOT NULL
);
CREATE INDEX oncekey_tokens_promise ON oncekey_tokens (promise);

-- Resolutions that came before their promise, by the digest of its key.
CREATE TABLE oncekey_parked (
    digest BYTEA PRIMARY KEY,
    tenant TEXT NOT NULL,
    key TEXT NOT NULL,
    state SMALLINT NOT NULL,
    body BYTEA NOT NULL,
    settled_by TEXT,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    -- The claim of the request's own key, so that it can say which promise it was delivered to.
    request BIGINT
);
CREATE INDEX oncekey_parked_expiry ON oncekey_parked (expires_at);

CREATE TABLE oncekey_events (
    id BIGINT PRIMARY KEY,
    tenant TEXT NOT NULL,
    topic TEXT NOT NULL,
    data BYTEA NOT NULL,
    headers BYTEA NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    matched SMALLINT NOT NULL,
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
    execution BIGINT NOT NULL,
    parameters TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('in_progress', 'succeeded', 'failed')),
    answer TEXT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (tenant, request_key)
);
CREATE INDEX oncekey_controls_age ON oncekey_controls (updated_at);

-- What can be started: the names of every process that runs durable work.
CREATE TABLE oncekey_names (
    sort SMALLINT NOT NULL,
    name TEXT NOT NULL,
    seen_at BIGINT NOT NULL,
    PRIMARY KEY (sort, name)
);

CREATE TABLE oncekey_api_keys (
    id TEXT PRIMARY KEY,
    digest BYTEA NOT NULL UNIQUE,
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    subject TEXT NOT NULL,
    label TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    revoked_at BIGINT
);

CREATE TABLE oncekey_schedules (
    id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    spec TEXT NOT NULL,
    paused SMALLINT NOT NULL,
    next_at BIGINT NOT NULL,
    last_at BIGINT,
    updated_at BIGINT NOT NULL
);
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

-- Arrays come as JSON, as they do on SQLite; an index takes them as arrays.
CREATE FUNCTION oncekey_numbers(p_json TEXT) RETURNS BIGINT[] LANGUAGE sql IMMUTABLE AS $$
    SELECT ARRAY(SELECT jsonb_array_elements_text(p_json::JSONB)::BIGINT)
$$;
CREATE FUNCTION oncekey_texts(p_json TEXT) RETURNS TEXT[] LANGUAGE sql IMMUTABLE AS $$
    SELECT ARRAY(SELECT jsonb_array_elements_text(p_json::JSONB))
$$;

-- These two are planned anew each time they run: a plan that was made while the tables were empty
-- goes through all there is later.

-- What runs wait for, as far as they are held. Answers the numbers of the executions whose promise,
-- key or rest did not go in.
CREATE FUNCTION oncekey_work_waits(
    p_all BOOLEAN, p_held BIGINT[], p_keys JSONB, p_waits JSONB, p_pieces BYTEA
) RETURNS BIGINT[] LANGUAGE plpgsql SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    v_promised BIGINT[];
    v_lying BIGINT[];
    v_all BOOLEAN;
BEGIN
    -- A key that a resolution is parked under goes its own way, as does one that was made before.
    INSERT INTO oncekey_claims (
        id, digest, namespace, endpoint, key, fingerprint, owner, fence,
        request_id, retention, created_at, expires_at, promise_id
    )
    SELECT
        (r ->> 0)::BIGINT, substring(p_pieces FROM (r ->> 1)::INTEGER FOR 16), r ->> 2,
        r ->> 3, r ->> 4, substring(p_pieces FROM (r ->> 5)::INTEGER FOR 16),
        (r ->> 6)::BIGINT, 1, r ->> 7, r ->> 8, (r ->> 9)::BIGINT, (r ->> 10)::BIGINT, r ->> 11
    FROM jsonb_array_elements(p_keys) WITH ORDINALITY AS e (r, n)
    JOIN oncekey_executions AS x ON x.id = (r ->> 12)::BIGINT AND x.fence = (r ->> 13)::BIGINT
    WHERE (p_all OR x.id = ANY (p_held))
        AND NOT EXISTS (
            SELECT 1 FROM oncekey_parked AS p
            WHERE p.digest = substring(p_pieces FROM (r ->> 1)::INTEGER FOR 16)
        )
        AND NOT EXISTS (
            SELECT 1 FROM oncekey_promises AS p
            WHERE p.execution = x.id AND p.seq = (r ->> 14)::BIGINT
        )
    ORDER BY 2, n
    ON CONFLICT DO NOTHING;

    WITH made AS (
        INSERT INTO oncekey_promises (
            id, tenant, kind, name, state, created_at, execution, seq, fingerprint, keyed, due_at,
            topic, condition, attempts
        )
        SELECT
            (r ->> 2)::BIGINT, r ->> 3, (r ->> 4)::SMALLINT, r ->> 5, 0, (r ->> 6)::BIGINT,
            x.id, (r ->> 7)::BIGINT,
            substring(p_pieces FROM (r ->> 8)::INTEGER FOR (r ->> 9)::INTEGER),
            ((r ->> 10)::INTEGER > 0)::INTEGER, (r ->> 11)::BIGINT, r ->> 12, r ->> 13, 0
        FROM jsonb_array_elements(p_waits) AS e (r)
        JOIN oncekey_executions AS x ON x.id = (r ->> 0)::BIGINT AND x.fence = (r ->> 1)::BIGINT
        WHERE (p_all OR x.id = ANY (p_held))
            AND ((r ->> 10)::INTEGER = 0 OR EXISTS (
                SELECT 1 FROM oncekey_claims AS c
                WHERE c.id = (r ->> 2)::BIGINT
                    AND c.digest = substring(p_pieces FROM (r ->> 10)::INTEGER FOR 16)
            ))
        ORDER BY 1
        ON CONFLICT DO NOTHING
        RETURNING id
    )
    SELECT coalesce(array_agg(id), '{}') INTO v_promised FROM made;
    v_all := cardinality(v_promised) = jsonb_array_length(p_waits);

    -- Nothing is left to do but wait, unless something was settled that the run has not seen.
    WITH lying AS (
        UPDATE oncekey_executions AS x SET status = 2, owner = 0
        FROM jsonb_array_elements(p_waits) AS e (r)
        WHERE x.id = (r ->> 0)::BIGINT AND x.fence = (r ->> 1)::BIGINT
            AND x.wakes = (r ->> 14)::BIGINT
            AND (v_all OR (r ->> 2)::BIGINT = ANY (v_promised))
        RETURNING x.id
    )
    SELECT coalesce(array_agg(id), '{}') INTO v_lying FROM lying;
    IF v_all AND cardinality(v_lying) = (
        SELECT count(r ->> 14) FROM jsonb_array_elements(p_waits) AS e (r)
    ) THEN
        RETURN '{}';
    END IF;
    RETURN ARRAY(
        SELECT (r ->> 0)::BIGINT FROM jsonb_array_elements(p_waits) AS e (r)
        WHERE (r ->> 2)::BIGINT <> ALL (v_promised)
            OR ((r ->> 14) IS NOT NULL AND (r ->> 0)::BIGINT <> ALL (v_lying))
    );
END $$;

-- Starts, what runs have done and what they wait for, in one statement and one round trip. Texts and
-- numbers come as JSON rows, bytes as one value that the rows cut their pieces from. Answers the
-- numbers of the executions of which not everything went in, to be carried out one by one: what did
-- go in does no harm there. NULL when the owner is unknown.
CREATE FUNCTION oncekey_work(
    p_owner BIGINT, p_stale BIGINT,
    p_claims JSONB, p_starts JSONB, p_entries JSONB, p_keys JSONB, p_waits JSONB,
    p_steps JSONB, p_endings JSONB, p_pieces BYTEA
) RETURNS BIGINT[] LANGUAGE plpgsql SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    v_made BIGINT[];
    v_runs INTEGER;
    v_busy BIGINT[] := '{}';
    v_held BIGINT[];
    v_keyed BIGINT[];
    v_claims BIGINT[];
    v_ended BIGINT[];
    -- Whether nothing was left out: then nothing has to be looked up in long arrays.
    v_all BOOLEAN;
    v_left_out BIGINT[] := '{}';
BEGIN
    IF NOT oncekey_keep_alive(p_owner, p_stale) THEN
        RETURN NULL;
    END IF;

    IF jsonb_array_length(p_starts) > 0 THEN
        -- In the order of the digests, as all groups do, so that none wait in a circle.
        INSERT INTO oncekey_claims (
            id, digest, namespace, endpoint, key, fingerprint, owner, fence,
            request_id, retention, created_at, expires_at, workflow_id, task_id
        )
        SELECT
            (r ->> 0)::BIGINT, substring(p_pieces FROM (r ->> 1)::INTEGER FOR 16), r ->> 2,
            r ->> 3, r ->> 4, substring(p_pieces FROM (r ->> 5)::INTEGER FOR 16),
            (r ->> 6)::BIGINT, 1, r ->> 7, r ->> 8, (r ->> 9)::BIGINT, (r ->> 10)::BIGINT,
            r ->> 11, r ->> 12
        FROM jsonb_array_elements(p_claims) WITH ORDINALITY AS e (r, n)
        ORDER BY 2, n
        ON CONFLICT DO NOTHING;

        -- With a key only if the claim above is its own.
        WITH made AS (
            INSERT INTO oncekey_executions (
                id, tenant, sort, name, input, status, owner, fence, created_at, wakes, keep,
                keyed, frees_key, called, due_at
            )
            SELECT
                (r ->> 0)::BIGINT, r ->> 1, (r ->> 2)::SMALLINT, r ->> 3,
                substring(p_pieces FROM (r ->> 4)::INTEGER FOR (r ->> 5)::INTEGER),
                (r ->> 6)::SMALLINT, (r ->> 7)::BIGINT, (r ->> 8)::BIGINT, (r ->> 9)::BIGINT, 0,
                (r ->> 10)::BIGINT, ((r ->> 11)::INTEGER > 0)::INTEGER, (r ->> 12)::SMALLINT, 0,
                (r ->> 13)::BIGINT
            FROM jsonb_array_elements(p_starts) AS e (r)
            WHERE (r ->> 11)::INTEGER = 0 OR EXISTS (
                SELECT 1 FROM oncekey_claims AS c
                WHERE c.id = (r ->> 0)::BIGINT
                    AND c.digest = substring(p_pieces FROM (r ->> 11)::INTEGER FOR 16)
            )
            ORDER BY 1
            ON CONFLICT DO NOTHING
            RETURNING id
        )
        SELECT array_agg(id) INTO v_made FROM made;
        IF cardinality(v_made) IS DISTINCT FROM jsonb_array_length(p_starts) THEN
            v_left_out := ARRAY(
                SELECT (r ->> 0)::BIGINT FROM jsonb_array_elements(p_starts) AS e (r)
                WHERE (r ->> 0)::BIGINT <> ALL (coalesce(v_made, '{}'))
            );
        END IF;
    END IF;

    IF jsonb_array_length(p_entries) + jsonb_array_length(p_waits)
        + jsonb_array_length(p_endings) = 0
    THEN
        RETURN v_left_out;
    END IF;

    -- Whoever makes a promise under a key, and whoever finds none there, take turns; where somebody
    -- has the turn, the whole group does not wait.
    IF jsonb_array_length(p_keys) > 0 THEN
        v_busy := ARRAY(
            SELECT (r ->> 12)::BIGINT FROM jsonb_array_elements(p_keys) AS e (r)
            WHERE NOT pg_try_advisory_xact_lock(('x' || encode(
                substring(p_pieces FROM (r ->> 1)::INTEGER FOR 8), 'hex'
            ))::BIT(64)::BIGINT)
        );
    END IF;

    -- The fence decides: what a run has done that was taken over finds nothing to belong to. The
    -- locks keep everybody else out until the commit; what is locked itself is left out, so that
    -- nobody's open transaction stops a whole group. An ending with a key is an outcome, too: there
    -- the claim is locked as well.
    WITH run AS MATERIALIZED (
        SELECT DISTINCT (r ->> 0)::BIGINT AS id, (r ->> 1)::BIGINT AS fence
        FROM jsonb_array_elements(p_entries || p_waits || p_endings) AS e (r)
    ), locked AS MATERIALIZED (
        -- By number alone: no index but that of the numbers is of use here.
        SELECT x.id, x.status, x.fence, run.fence AS wanted FROM run
        JOIN oncekey_executions AS x ON x.id = run.id
        ORDER BY x.id
        FOR NO KEY UPDATE OF x SKIP LOCKED
    )
    SELECT
        (SELECT count(*) FROM run),
        ARRAY(SELECT id FROM locked WHERE status = 1 AND fence = wanted AND id <> ALL (v_busy))
    INTO v_runs, v_held;
    v_keyed := ARRAY(
        SELECT (r ->> 0)::BIGINT FROM jsonb_array_elements(p_endings) AS e (r)
        WHERE (r ->> 7)::INTEGER = 1
    );
    v_claims := ARRAY(
        SELECT id FROM oncekey_claims WHERE id = ANY (v_keyed)
        ORDER BY id
        FOR NO KEY UPDATE SKIP LOCKED
    );
    IF cardinality(v_claims) < cardinality(v_keyed) THEN
        v_held := ARRAY(
            SELECT h FROM unnest(v_held) AS h
            WHERE h <> ALL (v_keyed) OR h = ANY (v_claims)
                OR NOT EXISTS (SELECT 1 FROM oncekey_claims AS c WHERE c.id = h)
        );
    END IF;
    v_all := cardinality(v_held) = v_runs;

    INSERT INTO oncekey_journal (
        execution, seq, step, name, fingerprint, failed, body, attempts, started_at, at
    )
    SELECT
        x.id, (r ->> 2)::BIGINT, (r ->> 3)::SMALLINT, r ->> 4,
        substring(p_pieces FROM (r ->> 5)::INTEGER FOR (r ->> 6)::INTEGER), (r ->> 7)::SMALLINT,
        substring(p_pieces FROM (r ->> 8)::INTEGER FOR (r ->> 9)::INTEGER),
        (r ->> 10)::INTEGER, (r ->> 11)::BIGINT, (r ->> 12)::BIGINT
    FROM jsonb_array_elements(p_entries || p_steps) AS e (r)
    JOIN oncekey_executions AS x ON x.id = (r ->> 0)::BIGINT AND x.fence = (r ->> 1)::BIGINT
    WHERE v_all OR x.id = ANY (v_held)
    ON CONFLICT DO NOTHING;
    IF NOT v_all THEN
        v_left_out := v_left_out || ARRAY(
            SELECT (r ->> 0)::BIGINT
            FROM jsonb_array_elements(p_entries || p_waits || p_endings) AS e (r)
            WHERE NOT EXISTS (
                SELECT 1 FROM oncekey_executions AS x
                WHERE x.id = (r ->> 0)::BIGINT AND x.fence = (r ->> 1)::BIGINT
                    AND x.id = ANY (v_held)
            )
        );
    END IF;

    IF jsonb_array_length(p_waits) > 0 THEN
        v_left_out := v_left_out || oncekey_work_waits(
            v_all, v_held, p_keys, p_waits, p_pieces
        );
    END IF;

    IF jsonb_array_length(p_endings) = 0 THEN
        RETURN v_left_out;
    END IF;

    -- One that others wait for is ended by itself, so that they are told.
    WITH ended AS (
        UPDATE oncekey_executions AS x
        SET status = (r ->> 2)::SMALLINT,
            result = substring(p_pieces FROM (r ->> 3)::INTEGER FOR (r ->> 4)::INTEGER),
            completed_at = (r ->> 5)::BIGINT, expires_at = (r ->> 6)::BIGINT, owner = 0
        FROM jsonb_array_elements(p_endings) AS e (r)
        WHERE x.id = (r ->> 0)::BIGINT AND x.fence = (r ->> 1)::BIGINT AND x.called = 0
            AND (v_all OR x.id = ANY (v_held))
        RETURNING x.id
    )
    SELECT coalesce(array_agg(id), '{}') INTO v_ended FROM ended;
    v_all := cardinality(v_ended) = jsonb_array_length(p_endings);
    IF cardinality(v_claims) > 0 THEN
        INSERT INTO oncekey_outcomes (
            id, fence, kind, status, headers, body, completed_at, expires_at
        )
        SELECT
            c.id, c.fence, (r ->> 8)::SMALLINT, (r ->> 9)::INTEGER, '',
            substring(p_pieces FROM (r ->> 3)::INTEGER FOR (r ->> 4)::INTEGER),
            (r ->> 5)::BIGINT, (r ->> 6)::BIGINT
        FROM jsonb_array_elements(p_endings) AS e (r)
        JOIN oncekey_claims AS c ON c.id = (r ->> 0)::BIGINT
        WHERE (r ->> 7)::INTEGER = 1 AND (v_all OR c.id = ANY (v_ended))
        ON CONFLICT DO NOTHING;
    END IF;
    IF NOT v_all THEN
        v_left_out := v_left_out || ARRAY(
            SELECT (r ->> 0)::BIGINT FROM jsonb_array_elements(p_endings) AS e (r)
            WHERE (r ->> 0)::BIGINT <> ALL (v_ended)
        );
    END IF;
    RETURN v_left_out;
END $$;
