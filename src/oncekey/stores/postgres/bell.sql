-- The bell on PostgreSQL. Notifications go to a whole database, in which several ledgers may be:
-- each is told apart by the number of one of its tables.

-- name: listen
LISTEN oncekey

-- name: ring
SELECT pg_notify('oncekey', CAST(CAST(CAST('oncekey_executions' AS REGCLASS) AS OID) AS TEXT))

-- name: bell
-- A ring needs no disk.
SELECT
    CAST(CAST(CAST('oncekey_executions' AS REGCLASS) AS OID) AS TEXT),
    set_config('synchronous_commit', 'off', false)
