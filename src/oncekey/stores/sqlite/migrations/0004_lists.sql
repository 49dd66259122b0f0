-- What operators look at. Nothing here is on the way of a claim, a settle or a run that goes well.

-- FAILED and PAUSED.
CREATE INDEX oncekey_executions_stuck ON oncekey_executions (status, id) WHERE status IN (4, 6);
CREATE INDEX oncekey_deliveries_operation ON oncekey_deliveries (operation, id)
WHERE operation IS NOT NULL;

-- As `oncekey_records`, without what was answered: lists never read it.
CREATE VIEW oncekey_key_rows AS
SELECT
    id, namespace, endpoint, key, fingerprint, owner, fence, request_id, retention, created_at,
    expires_at, workflow_id, task_id, promise_id, kind, status, x'' AS headers, x'' AS body,
    completed_at, kept_until, owner_name, owner_boot, owner_heartbeat
FROM oncekey_records;
