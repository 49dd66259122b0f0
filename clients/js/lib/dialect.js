// How a server speaks of keys: which headers it reads and writes, and what its conflicts mean.

export const ONCEKEY = {
  key: "Idempotency-Key",
  replayed: "Idempotent-Replayed",
  operation: "X-Operation-Id",
  // A 409 that says nothing of itself: "answer", it is the application's; "retry", it still runs.
  conflicts: "answer",
  // A header whose "true" or "false" counts more than the status.
  shouldRetry: "",
};

export const STRIPE = {
  ...ONCEKEY,
  operation: "Request-Id",
  conflicts: "retry",
  shouldRetry: "Stripe-Should-Retry",
};
