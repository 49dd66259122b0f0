-- Webhooks with their sealed secrets, what came in through them, what operators did, and who may
-- be one of them.

CREATE TABLE oncekey_webhooks (
    id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    project TEXT NOT NULL,
    provider TEXT NOT NULL,
    -- What follows a delivery.
    follows TEXT NOT NULL,
    label TEXT NOT NULL,
    -- What becomes of a body that comes again under another identifier.
    repeats TEXT NOT NULL CHECK (repeats IN ('refuse', 'allow')),
    -- JSON, each secret sealed; empty when they live elsewhere.
    secrets TEXT NOT NULL,
    -- Whoever changes a webhook must have seen it as it is.
    version INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX oncekey_webhooks_age ON oncekey_webhooks (created_at, id);

-- Verdicts only: neither bodies nor headers. Numbers grow with time.
CREATE TABLE oncekey_deliveries (
    id INTEGER PRIMARY KEY,
    webhook TEXT NOT NULL,
    at INTEGER NOT NULL,
    verdict TEXT NOT NULL,
    identifier TEXT NOT NULL,
    reason TEXT NOT NULL,
    -- The operation it was, or was a duplicate of.
    operation INTEGER,
    size INTEGER NOT NULL,
    -- How many it stands for: a flood is one row.
    times INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
);
CREATE INDEX oncekey_deliveries_webhook ON oncekey_deliveries (webhook, id);
CREATE INDEX oncekey_deliveries_expiry ON oncekey_deliveries (expires_at);

CREATE TABLE oncekey_audit (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    target TEXT NOT NULL,
    tenant TEXT,
    details TEXT NOT NULL
);
CREATE INDEX oncekey_audit_tenant ON oncekey_audit (tenant, id) WHERE tenant IS NOT NULL;

ALTER TABLE oncekey_api_keys
ADD COLUMN role TEXT NOT NULL DEFAULT 'caller' CHECK (role IN ('caller', 'admin'));
