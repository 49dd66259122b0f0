-- What operators look at. Nothing here is on the way of a claim, a settle or a run that goes well.

-- FAILED and PAUSED.
CREATE INDEX oncekey_executions_stuck ON oncekey_executions (status, id) WHERE status IN (4, 6);
CREATE INDEX oncekey_deliveries_operation ON oncekey_deliveries (operation, id)
WHERE operation IS NOT NULL;

-- As `oncekey_records`, without what was answered: lists never read it. And by the time at which a
-- statement begins: a function that tells another time whenever it is called would be called, and
-- the rows sorted, for all that a list looks at.
CREATE VIEW oncekey_key_rows AS
SELECT
    c.id, c.namespace, c.endpoint, c.key, c.fingerprint, c.owner, c.fence, c.request_id,
    c.retention, c.created_at, c.expires_at, c.workflow_id, c.task_id, c.promise_id,
    o.kind, o.status, CAST('' AS BYTEA) AS headers, CAST('' AS BYTEA) AS body, o.completed_at,
    o.expires_at AS kept_until, w.name AS owner_name, w.host AS owner_host,
    CASE WHEN w.heartbeat_at > 0 THEN
        CAST(extract(EPOCH FROM statement_timestamp()) * 1000 AS BIGINT) - greatest(
            w.heartbeat_at, CAST(extract(EPOCH FROM pg_postmaster_start_time()) * 1000 AS BIGINT)
        )
    END AS owner_silence
FROM oncekey_claims AS c
LEFT JOIN oncekey_outcomes AS o ON o.id = c.id
LEFT JOIN oncekey_owners AS w ON w.id = c.owner;
