// What follows from an answer: a pure table. A verdict is an answer, a retry, a refusal, or nothing at all.

import {
  CredentialsRefused,
  InFlight,
  KeyRefused,
  KeyReused,
  NotRecovered,
  OutcomeNotKept,
  OutcomeUnknown,
} from "./errors.js";

const ANSWER = { is: "answer" };
const NOTHING = { is: "nothing" };
// `running`: another attempt of it is under way there.
const retry = (reason, running = false) => ({ is: "retry", reason, running });
// `final`: nothing better can come of the key.
const refused = (as, final = false) => ({ is: "refused", as, final });

const RUNNING = new Set(["request-in-progress", "claim-lost", "idempotency_key_in_use"]);
const REFUSALS = new Map([
  ["idempotency-key-missing", refused(KeyRefused)],
  ["idempotency-key-invalid", refused(KeyRefused)],
  ["idempotency-key-prohibited", refused(KeyRefused)],
  ["idempotency-key-reused", refused(KeyReused, true)],
  ["idempotency_error", refused(KeyReused, true)],
  ["outcome-unknown", refused(OutcomeUnknown)],
  ["outcome-not-kept", refused(OutcomeNotKept, true)],
]);
const LATER = new Set([408, 425, 429]);

export function judge(answer, dialect) {
  const { status, code } = answer;
  // Marked or not: the edge stores that it does not know how a service behind it ended.
  if (status < 500 && REFUSALS.has(code)) return REFUSALS.get(code);
  if (isStored(answer)) return ANSWER;
  if (status === 401 || status === 403) return refused(CredentialsRefused);
  const told = dialect.shouldRetry ? answer.headers.get(dialect.shouldRetry) : null;
  if (status < 400 || status === 422 || told === "false") return ANSWER;
  if (status === 409 && isRunning(answer, dialect, told)) return retry("in progress", true);
  return LATER.has(status) || status >= 500 || told === "true" ? retry(`status ${status}`) : ANSWER;
}

// To the question what became of a request. Only what is marked as stored is its answer: some servers have a page for
// every address. And only a server that has the routes may say that there is none.
export function judgeRecovery(answer, dialect) {
  const stored = isStored(answer);
  if (!stored && answer.status === 404 && answer.code === "not-found") return NOTHING;
  if (!stored && answer.status === 202) return refused(InFlight);
  const verdict = judge(answer, dialect);
  return verdict.is === "answer" && !stored ? refused(NotRecovered) : verdict;
}

// It is the same next time, whatever it looks like.
function isStored(answer) {
  return answer.replayed || answer.code === "terminal-error";
}

function isRunning(answer, dialect, told) {
  if (RUNNING.has(answer.code) || answer.headers.has("Retry-After")) return true;
  return dialect.conflicts === "retry" || told === "true";
}
