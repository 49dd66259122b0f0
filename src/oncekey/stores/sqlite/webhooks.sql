-- Webhooks on SQLite. Names are shared with PostgreSQL; `core/webhooks.py` says what each must do.

-- name: keep_webhook
INSERT INTO oncekey_webhooks (
    id, tenant, project, provider, follows, label, repeats, secrets, version, created_at,
    updated_at
)
VALUES (
    :id, :tenant, :project, :provider, :follows, :label, :repeats, :secrets, :version,
    :created_at, :updated_at
)
ON CONFLICT DO NOTHING
RETURNING id

-- name: find_webhook
SELECT
    id, tenant, project, provider, follows, label, repeats, secrets, version, created_at,
    updated_at
FROM oncekey_webhooks
WHERE id = :id

-- name: list_webhooks
SELECT
    id, tenant, project, provider, follows, label, repeats, secrets, version, created_at,
    updated_at
FROM oncekey_webhooks
WHERE (created_at, id) < (:at, :id) AND (:tenant IS NULL OR tenant = :tenant)
ORDER BY created_at DESC, id DESC
LIMIT :limit

-- name: change_webhook
-- Whoever comes second sees another version, and changes nothing.
UPDATE oncekey_webhooks SET
    follows = :follows,
    label = :label,
    repeats = :repeats,
    secrets = :secrets,
    version = :version,
    updated_at = :updated_at
WHERE id = :id AND version = :seen
RETURNING id

-- name: drop_webhook
DELETE FROM oncekey_webhooks WHERE id = :id RETURNING id
