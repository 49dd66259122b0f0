-- API keys on SQLite. `stores/api_keys.py` says what each must do.

-- name: keep_api_key
INSERT INTO oncekey_api_keys (
    id, digest, tenant, project, subject, label, created_at, expires_at, revoked_at, role
)
VALUES (
    :id, :digest, :tenant, :project, :subject, :label, :created_at, :expires_at, :revoked_at,
    :role
)
ON CONFLICT DO NOTHING
RETURNING id

-- name: find_api_key
SELECT id, tenant, project, subject, label, created_at, expires_at, revoked_at, role
FROM oncekey_api_keys
WHERE digest = :digest

-- name: list_api_keys
SELECT id, tenant, project, subject, label, created_at, expires_at, revoked_at, role
FROM oncekey_api_keys
WHERE id < :before AND (:tenant IS NULL OR tenant = :tenant)
ORDER BY id DESC
LIMIT :limit

-- name: revoke_api_key
-- The first revocation is the one that counts.
UPDATE oncekey_api_keys SET revoked_at = coalesce(revoked_at, :now)
WHERE id = :id
RETURNING id, tenant, project, subject, label, created_at, expires_at, revoked_at, role
