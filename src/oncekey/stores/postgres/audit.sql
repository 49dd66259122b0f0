-- The audit feed on PostgreSQL. Names are shared with SQLite; `core/audit.py` says what each must do.

-- name: keep_audit
INSERT INTO oncekey_audit (id, at, actor, action, target, tenant, details)
VALUES (%(id)s, %(at)s, %(actor)s, %(action)s, %(target)s, %(tenant)s, %(details)s)
ON CONFLICT DO NOTHING
RETURNING id

-- name: find_audit
SELECT id, at, actor, action, target, tenant, details FROM oncekey_audit WHERE id = %(id)s
