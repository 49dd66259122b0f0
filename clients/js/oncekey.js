// The names that callers use. Each lives in a file of its own in lib/.

export { Answer } from "./lib/answer.js";
export { Client } from "./lib/client.js";
export { ONCEKEY, STRIPE } from "./lib/dialect.js";
export {
  CredentialsRefused,
  GaveUp,
  InFlight,
  IntentAbandoned,
  IntentChanged,
  IntentNotKept,
  IntentTooOld,
  InvalidInput,
  KeyRefused,
  KeyReused,
  NotRecovered,
  OnceKeyError,
  OutcomeNotKept,
  OutcomeUnknown,
} from "./lib/errors.js";
export { indexedDBIntents } from "./lib/indexeddb.js";
export { Intent } from "./lib/intent.js";
export { memoryIntents } from "./lib/memory.js";
