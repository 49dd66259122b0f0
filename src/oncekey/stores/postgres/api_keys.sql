-- API keys on PostgreSQL. `stores/api_keys.py` says what each must do.

-- name: keep_api_key
INSERT INTO oncekey_api_keys (
    id, digest, tenant, project, subject, label, created_at, expires_at, revoked_at, role
)
VALUES (
    %(id)s, %(digest)s, %(tenant)s, %(project)s, %(subject)s, %(label)s,
    %(created_at)s, %(expires_at)s, %(revoked_at)s, %(role)s
)
ON CONFLICT DO NOTHING
RETURNING id

-- name: find_api_key
SELECT id, tenant, project, subject, label, created_at, expires_at, revoked_at, role
FROM oncekey_api_keys
WHERE digest = %(digest)s

-- name: list_api_keys
SELECT id, tenant, project, subject, label, created_at, expires_at, revoked_at, role
FROM oncekey_api_keys
WHERE id < %(before)s AND (CAST(%(tenant)s AS TEXT) IS NULL OR tenant = %(tenant)s)
ORDER BY id DESC
LIMIT %(limit)s

-- name: revoke_api_key
-- The first revocation is the one that counts.
UPDATE oncekey_api_keys SET revoked_at = coalesce(revoked_at, %(now)s)
WHERE id = %(id)s
RETURNING id, tenant, project, subject, label, created_at, expires_at, revoked_at, role
