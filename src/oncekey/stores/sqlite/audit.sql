-- The audit feed on SQLite. Names are shared with PostgreSQL; `core/audit.py` says what each must do.

-- name: keep_audit
INSERT INTO oncekey_audit (id, at, actor, action, target, tenant, details)
VALUES (:id, :at, :actor, :action, :target, :tenant, :details)
ON CONFLICT DO NOTHING
RETURNING id

-- name: find_audit
SELECT id, at, actor, action, target, tenant, details FROM oncekey_audit WHERE id = :id
