// Calls one API on behalf of one user. Whatever it means to do is an intent with a key that outlives it.

import { ONCEKEY } from "./dialect.js";
import { IntentNotKept, InvalidInput } from "./errors.js";
import { indexedDBIntents } from "./indexeddb.js";
import { Intent } from "./intent.js";
import { newKey } from "./key.js";
import { memoryIntents } from "./memory.js";
import { sleep } from "./pause.js";

const DAY = 24 * 60 * 60 * 1000;

// All times are milliseconds.
const DEFAULTS = {
  headers: {},
  credentials: "same-origin",
  attempts: 8,
  timeout: 30_000,
  deadline: 60_000,
  remember: DAY,
  safeFor: DAY,
  onEvent: null,
  clock: () => Date.now(),
  random: () => Math.random(),
  fetch: (...words) => globalThis.fetch(...words),
  sleep,
  draw: () => newKey(),
};

export class Client {
  #base;
  #intents;
  #settings;

  constructor(base = globalThis.location?.origin, { intents, dialect, ...options } = {}) {
    const unknown = Object.keys(options).filter((name) => !Object.hasOwn(DEFAULTS, name));
    if (unknown.length) throw new InvalidInput(`There is no option ${unknown[0]}.`);
    this.#base = baseOf(base);
    this.#intents = intents ?? null;
    this.#settings = {
      ...DEFAULTS,
      ...options,
      dialect: { ...ONCEKEY, ...dialect },
      keep: (id, decide) => this.#keep((store) => store.change(id, decide)),
      tell: (event) => tell(options.onEvent, event),
    };
  }

  // The same name again: the same intent, with the same key, until `remember` after its answer.
  async intent(name) {
    if (typeof name !== "string" || name === "") throw new InvalidInput("An intent needs a name.");
    const { clock, keep } = this.#settings;
    const base = this.#base;
    const id = `${base} ${name}`;
    const made = { id, base, name, key: this.#settings.draw(), createdAt: clock() };
    const record = await keep(id, (found) => (found && !this.#isOver(found) ? undefined : made));
    if (record.key === made.key) this.#settings.tell({ type: "captured", name, key: made.key });
    return new Intent(this.#settings, record);
  }

  // Those whose answer is not known, the oldest first.
  async pending() {
    const all = await this.#keep((store) => store.all());
    const mine = all.filter((each) => each.base === this.#base);
    await Promise.all(mine.filter((each) => this.#isOver(each)).map((each) => this.#forget(each)));
    const open = mine.filter((each) => each.endedAt === undefined);
    open.sort((one, other) => one.createdAt - other.createdAt);
    return open.map((each) => new Intent(this.#settings, each));
  }

  #isOver({ endedAt }) {
    return endedAt !== undefined && this.#settings.clock() - endedAt >= this.#settings.remember;
  }

  #forget({ id, key }) {
    return this.#settings.keep(id, (found) => (found?.key === key ? null : undefined));
  }

  async #keep(work) {
    try {
      this.#intents ??= this.#defaultIntents();
      return await work(await this.#intents);
    } catch (error) {
      throw new IntentNotKept("There is no place to keep what is meant to be done.", { cause: error });
    }
  }

  async #defaultIntents() {
    if (!globalThis.indexedDB) return memoryIntents();
    try {
      return await indexedDBIntents();
    } catch (error) {
      // Some pages may not keep anything: in sandboxes, or where the user says so.
      this.#settings.tell({ type: "not-kept", name: null, key: null, reason: error.message });
      return memoryIntents();
    }
  }
}

function baseOf(base) {
  try {
    const url = new URL(base, globalThis.location?.href);
    return `${url.origin}${url.pathname}`.replace(/\/$/, "");
  } catch (error) {
    throw new InvalidInput("The first argument is the URL of an API.", { cause: error });
  }
}

// A hook that fails is no reason for a request to fail.
function tell(hook, event) {
  try {
    Promise.resolve(hook?.(event)).catch(() => {});
  } catch {
    return;
  }
}
