"""Every metric there is: its name, its labels, what it says, and the events it is made of."""

from __future__ import annotations

from typing import NamedTuple

OTHER = "other"
"""The label of whatever is beyond a bound."""

WHOSE = ("tenant", "project", "endpoint")


class Metric(NamedTuple):
    name: str
    labels: tuple[str, ...]
    help: str


PRESENT = "idempotency_key_present"
MISSING = "idempotency_key_missing"
INVALID = "idempotency_key_invalid"
UNTRANSLATED = "transport_translation_failed"
CACHE_HIT = "idempotency_cache_hit"
DEDUP_HIT = "handler_internal_dedup_hit"
COLLISION = "idempotency_key_collision"
CONFLICTS = "oncekey_conflicts"
UNCERTAIN = "oncekey_uncertain"
UNPROTECTED = "oncekey_unprotected"
DELIVERIES = "oncekey_deliveries"
TAKEOVERS = "oncekey_takeovers"
SWEPT = "oncekey_sweep_deleted"

REQUEST_SECONDS = "oncekey_request_seconds"
BATCH_SIZE = "oncekey_store_batch_size"
COMMIT_SECONDS = "oncekey_store_commit_seconds"
SWEEP_SECONDS = "oncekey_sweep_seconds"

COUNTERS = (
    Metric(
        PRESENT, (*WHOSE, "case"), "Requests with a key: A in a header, B a provider's, C derived."
    ),
    Metric(MISSING, (*WHOSE, "class"), "Requests without a key where one is required or accepted."),
    Metric(INVALID, (*WHOSE, "reason"), "Keys that were refused, by the rule they break."),
    Metric(
        UNTRANSLATED, (*WHOSE, "provider"), "Deliveries without an identifier to make a key of."
    ),
    Metric(CACHE_HIT, (*WHOSE, "status"), "Answers that were replayed, by their status."),
    Metric(DEDUP_HIT, WHOSE, "Work of a handler that an earlier delivery had done."),
    Metric(COLLISION, WHOSE, "Keys that came again with another request (422)."),
    Metric(CONFLICTS, WHOSE, "Requests whose key was in flight (409)."),
    Metric(UNCERTAIN, WHOSE, "Requests of which nobody knows whether they took effect."),
    Metric(UNPROTECTED, WHOSE, "Requests that ran without the ledger, which was away (fail_open)."),
    Metric(DELIVERIES, ("tenant", "project", "provider", "verdict"), "What became of webhooks."),
    Metric(TAKEOVERS, ("endpoint",), "Claims that were taken over from a process that had gone."),
    Metric(SWEPT, (), "Expired records that were deleted."),
)
HISTOGRAMS = (
    Metric(REQUEST_SECONDS, ("endpoint", "way"), "From a whole request to its answer."),
    Metric(BATCH_SIZE, ("store",), "Writes that shared one commit."),
    Metric(COMMIT_SECONDS, ("store",), "How long a commit took."),
    Metric(SWEEP_SECONDS, (), "How long a sweep took, with its rests."),
)
GAUGES = (
    Metric("oncekey_requests_in_flight", (), "Requests that are being answered now."),
    Metric("oncekey_claims_in_progress", (), "Claims that are held, or were left behind."),
    Metric("oncekey_oldest_claim_seconds", (), "Age of the oldest claim in progress."),
    Metric("oncekey_promises", ("state",), "Promises, by state."),
    Metric("oncekey_workflows", ("state",), "Workflows, by state."),
    Metric("oncekey_oldest_waiting_seconds", (), "Age of the oldest workflow that waits."),
    Metric("oncekey_build_info", ("version", "store"), "Always 1."),
)

BY_EVENT = {
    "key-present": PRESENT,
    "key-missing": MISSING,
    "key-invalid": INVALID,
    "translation-failed": UNTRANSLATED,
    "replay": CACHE_HIT,
    "handler-dedup-hit": DEDUP_HIT,
    "mismatch": COLLISION,
    "busy": CONFLICTS,
    "uncertain": UNCERTAIN,
    "unknown": UNCERTAIN,
    "unprotected": UNPROTECTED,
    "takeover": TAKEOVERS,
}
"""Counters of an event; `webhook-…` with its verdict is one more, and what is not here is not
counted."""
DELIVERY = "webhook-"

# Seconds. The first are those of a replay, the last of a service behind that is slow.
TIMES = (
    *(0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5),
    *(1.0, 2.5, 5.0, 10.0, 30.0),
)
SIZES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0)
BOUNDS = {
    REQUEST_SECONDS: TIMES,
    COMMIT_SECONDS: TIMES,
    BATCH_SIZE: SIZES,
    SWEEP_SECONDS: (0.01, 0.1, 1.0, 10.0, 60.0, 600.0),
}
