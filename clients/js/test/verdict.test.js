// The table of verdicts, row by row.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Answer } from "../lib/answer.js";
import { ONCEKEY, STRIPE } from "../lib/dialect.js";
import { judge, judgeRecovery } from "../lib/verdict.js";

const PROBLEM = { "Content-Type": "application/problem+json" };

function answer(status, { problem, headers = {}, body = "" } = {}) {
  const text = problem ? JSON.stringify({ type: `https://oncekey.dev/problems/${problem}` }) : body;
  const parts = { status, headers: { ...(problem ? PROBLEM : {}), ...headers }, body: new TextEncoder().encode(text) };
  return new Answer(parts, { key: "k", from: "sent", attempts: 1, dialect: ONCEKEY });
}

function told(verdict) {
  return [verdict.is, verdict.as?.name, verdict.final].filter((each) => each !== undefined).join(" ");
}

const REPLAYED = { "Idempotent-Replayed": "true" };
const ROWS = [
  [answer(200), "answer"],
  [answer(201), "answer"],
  [answer(204), "answer"],
  [answer(304), "answer"],
  [answer(404), "answer"],
  [answer(409), "answer"],
  [answer(422), "answer"],
  [answer(400), "answer"],
  [answer(400, { problem: "invalid-input" }), "answer"],
  [answer(408), "retry"],
  [answer(425), "retry"],
  [answer(429), "retry"],
  [answer(500), "retry"],
  [answer(503, { problem: "ledger-unavailable" }), "retry"],
  [answer(502, { problem: "upstream-uncertain" }), "retry"],
  [answer(599), "retry"],
  [answer(500, { headers: REPLAYED }), "answer"],
  [answer(500, { problem: "terminal-error" }), "answer"],
  [answer(401, { headers: REPLAYED }), "answer"],
  [answer(409, { headers: { "Retry-After": "1" } }), "retry"],
  [answer(409, { headers: { "Retry-After": "1", ...REPLAYED } }), "answer"],
  [answer(409, { problem: "request-in-progress" }), "retry"],
  [answer(409, { problem: "claim-lost" }), "retry"],
  [answer(409, { problem: "out-of-stock" }), "answer"],
  [answer(409, { problem: "outcome-unknown" }), "refused OutcomeUnknown false"],
  [answer(409, { problem: "outcome-unknown", headers: REPLAYED }), "refused OutcomeUnknown false"],
  [answer(409, { problem: "outcome-not-kept" }), "refused OutcomeNotKept true"],
  [answer(422, { problem: "idempotency-key-reused" }), "refused KeyReused true"],
  [answer(422, { problem: "idempotency-key-reused", headers: { "Retry-After": "1" } }), "refused KeyReused true"],
  [answer(400, { problem: "idempotency-key-missing" }), "refused KeyRefused false"],
  [answer(400, { problem: "idempotency-key-invalid" }), "refused KeyRefused false"],
  [answer(400, { problem: "idempotency-key-prohibited" }), "refused KeyRefused false"],
  [answer(401), "refused CredentialsRefused false"],
  [answer(403), "refused CredentialsRefused false"],
  // No problem, or none of these.
  [answer(200, { problem: "outcome-unknown" }), "answer"],
  [answer(503, { problem: "outcome-unknown" }), "retry"],
  [answer(409, { body: "outcome-unknown" }), "answer"],
  [answer(409, { headers: PROBLEM, body: '{"type": 7}' }), "answer"],
  [answer(409, { headers: PROBLEM, body: `{"type": "/outcome-unknown", "x": "${"x".repeat(70_000)}"}` }), "answer"],
  [answer(409, { headers: PROBLEM, body: '{"type": "/outcome-unknown/"}' }), "refused OutcomeUnknown false"],
  [answer(409, { headers: PROBLEM, body: "no JSON" }), "answer"],
  [answer(409, { headers: PROBLEM, body: "null" }), "answer"],
];

for (const [given, expected] of ROWS) {
  test(`${given.status} ${given.code} is ${expected}`, () => {
    assert.equal(told(judge(given, ONCEKEY)), expected);
  });
}

test("a dialect may take every conflict for a key in use", () => {
  const dialect = { ...ONCEKEY, conflicts: "retry" };
  assert.equal(told(judge(answer(409), dialect)), "retry");
  assert.equal(told(judge(answer(409, { problem: "outcome-unknown" }), dialect)), "refused OutcomeUnknown false");
  assert.equal(told(judge(answer(409, { headers: REPLAYED }), dialect)), "answer");
});

for (const [given, expected] of [
  [answer(409), "retry"],
  [answer(409, { headers: { "Stripe-Should-Retry": "false" } }), "answer"],
  [answer(500, { headers: { "Stripe-Should-Retry": "false" } }), "answer"],
  [answer(402, { headers: { "Stripe-Should-Retry": "true" } }), "retry"],
  [answer(422, { headers: { "Stripe-Should-Retry": "true" } }), "answer"],
  [answer(400, { headers: PROBLEM, body: '{"error": {"type": "idempotency_error"}}' }), "refused KeyReused true"],
  [answer(402, { headers: PROBLEM, body: '{"error": {"type": "card_error"}}' }), "answer"],
]) {
  test(`to Stripe, ${given.status} ${given.code} is ${expected}`, () => {
    assert.equal(told(judge(given, STRIPE)), expected);
  });
}

const RECOVERED = [
  [answer(404, { problem: "not-found" }), "nothing"],
  [answer(404), "refused NotRecovered false"],
  [answer(202), "refused InFlight false"],
  [answer(404, { headers: REPLAYED }), "answer"],
  [answer(202, { headers: REPLAYED }), "answer"],
  [answer(500, { headers: REPLAYED }), "answer"],
  [answer(500, { problem: "terminal-error" }), "answer"],
  [answer(409, { problem: "outcome-unknown" }), "refused OutcomeUnknown false"],
  [answer(409, { problem: "outcome-unknown", headers: REPLAYED }), "refused OutcomeUnknown false"],
  [answer(409, { problem: "outcome-not-kept" }), "refused OutcomeNotKept true"],
  [answer(401), "refused CredentialsRefused false"],
  [answer(503), "retry"],
  [answer(200, { body: "<html>" }), "refused NotRecovered false"],
  [answer(405), "refused NotRecovered false"],
];

for (const [given, expected] of RECOVERED) {
  test(`asked for the answer, ${given.status} ${given.code} is ${expected}`, () => {
    assert.equal(told(judgeRecovery(given, ONCEKEY)), expected);
  });
}
