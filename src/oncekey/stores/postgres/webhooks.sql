-- Webhooks on PostgreSQL. Names are shared with SQLite; `core/webhooks.py` says what each must do.

-- name: keep_webhook
INSERT INTO oncekey_webhooks (
    id, tenant, project, provider, follows, label, repeats, secrets, version, created_at,
    updated_at
)
VALUES (
    %(id)s, %(tenant)s, %(project)s, %(provider)s, %(follows)s, %(label)s, %(repeats)s,
    %(secrets)s, %(version)s, %(created_at)s, %(updated_at)s
)
ON CONFLICT DO NOTHING
RETURNING id

-- name: find_webhook
SELECT
    id, tenant, project, provider, follows, label, repeats, secrets, version, created_at,
    updated_at
FROM oncekey_webhooks
WHERE id = %(id)s

-- name: list_webhooks
SELECT
    id, tenant, project, provider, follows, label, repeats, secrets, version, created_at,
    updated_at
FROM oncekey_webhooks
WHERE (created_at, id COLLATE "C") < (CAST(%(at)s AS BIGINT), CAST(%(id)s AS TEXT))
    AND (CAST(%(tenant)s AS TEXT) IS NULL OR tenant = %(tenant)s)
ORDER BY created_at DESC, id COLLATE "C" DESC
LIMIT %(limit)s

-- name: change_webhook
-- Whoever comes second sees another version, and changes nothing.
UPDATE oncekey_webhooks SET
    follows = %(follows)s,
    label = %(label)s,
    repeats = %(repeats)s,
    secrets = %(secrets)s,
    version = %(version)s,
    updated_at = %(updated_at)s
WHERE id = %(id)s AND version = %(seen)s
RETURNING id

-- name: drop_webhook
DELETE FROM oncekey_webhooks WHERE id = %(id)s RETURNING id
