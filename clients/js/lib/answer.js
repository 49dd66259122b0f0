// What the server said, read whole, and how it came here.

// More than any problem document has, and little enough to be read for nothing.
const LONGEST_PROBLEM = 65_536;

export class Answer {
  #body;
  #problem;
  #dialect;

  // `from`: "sent", "recovered" or "remembered".
  constructor({ status, headers, body }, { key, dialect, from, attempts }) {
    this.status = status;
    this.headers = new Headers(headers);
    this.key = key;
    this.from = from;
    this.attempts = attempts;
    this.#body = body;
    this.#dialect = dialect;
  }

  get ok() {
    return this.status >= 200 && this.status < 300;
  }

  // The server marks what it has stored before.
  get replayed() {
    return this.headers.get(this.#dialect.replayed) === "true";
  }

  get operationId() {
    return this.headers.get(this.#dialect.operation);
  }

  // The problem document (RFC 9457), or the error object of Stripe's; else an empty object.
  get problem() {
    this.#problem ??= this.#readProblem();
    return this.#problem;
  }

  // The problem in a word: "request-in-progress".
  get code() {
    const kind = this.problem.code ?? this.problem.type;
    return typeof kind === "string" ? kind.replace(/\/+$/, "").replace(/^.*\//, "") : "";
  }

  // What the server says of it, in a sentence.
  get detail() {
    const told = this.problem.detail ?? this.problem.message;
    return typeof told === "string" ? told : "";
  }

  bytes() {
    return this.#body;
  }

  text() {
    return new TextDecoder().decode(this.#body);
  }

  json() {
    return JSON.parse(this.text());
  }

  // As it is kept with its intent.
  get parts() {
    return { status: this.status, headers: [...this.headers], body: this.#body };
  }

  #readProblem() {
    const isJson = /\bjson\b/i.test(this.headers.get("Content-Type") ?? "");
    if (!isJson || this.status < 400 || this.#body.length > LONGEST_PROBLEM) return {};
    try {
      const found = this.json();
      return Object(found?.error ?? found);
    } catch {
      return {};
    }
  }
}
