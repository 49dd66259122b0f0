// What can go wrong, as a tree with one base. `code` never changes; `retryable`: the same call may succeed later.
//
// OnceKeyError
// ├── InvalidInput         an argument breaks a rule; nothing was sent
// ├── IntentChanged        the intent's name stands for another request; nothing was sent
// ├── IntentTooOld         its key may have expired at the server, and would run again; nothing was sent
// ├── IntentAbandoned      it was given up, here or in another tab; nothing was sent
// ├── IntentNotKept        there is no room to keep it in; nothing was sent
// ├── CredentialsRefused   401 or 403; it stays pending, for better credentials
// ├── KeyRefused           400, the route takes no such key; it stays pending
// ├── KeyReused            422, the key was first used with another request; final
// ├── InFlight             asked for the answer while the request runs; it stays pending
// ├── OutcomeUnknown       409, whether it took effect is not known; it stays pending
// ├── OutcomeNotKept       409, it took effect, its answer was not kept; final
// ├── NotRecovered         asked for the answer, and heard something else; it stays pending
// └── GaveUp               attempts or time are used up; it stays pending

export class OnceKeyError extends Error {
  static code = "error";
  static retryable = false;

  constructor(message, { key = null, answer = null, cause } = {}) {
    super(message);
    this.name = this.constructor.name;
    this.code = this.constructor.code;
    this.retryable = this.constructor.retryable;
    this.key = key;
    this.answer = answer;
    if (cause !== undefined) this.cause = cause;
  }
}

export class InvalidInput extends OnceKeyError {
  static code = "invalid-input";
}

export class IntentChanged extends OnceKeyError {
  static code = "intent-changed";
}

export class IntentTooOld extends OnceKeyError {
  static code = "intent-too-old";
}

export class IntentAbandoned extends OnceKeyError {
  static code = "intent-abandoned";
}

export class IntentNotKept extends OnceKeyError {
  static code = "intent-not-kept";
  static retryable = true;
}

export class CredentialsRefused extends OnceKeyError {
  static code = "credentials-refused";
}

export class KeyRefused extends OnceKeyError {
  static code = "key-refused";
}

export class KeyReused extends OnceKeyError {
  static code = "idempotency-key-reused";
}

export class InFlight extends OnceKeyError {
  static code = "in-flight";
  static retryable = true;
}

export class OutcomeUnknown extends OnceKeyError {
  static code = "outcome-unknown";
}

export class OutcomeNotKept extends OnceKeyError {
  static code = "outcome-not-kept";
}

export class NotRecovered extends OnceKeyError {
  static code = "not-recovered";
}

export class GaveUp extends OnceKeyError {
  static code = "gave-up";
  static retryable = true;
}
