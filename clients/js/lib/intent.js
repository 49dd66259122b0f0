// What somebody means to do, with its key. Its request is frozen and kept before the first attempt.

import { Answer } from "./answer.js";
import { IntentAbandoned, IntentChanged, IntentTooOld } from "./errors.js";
import { exchange } from "./exchange.js";
import { credentialsOf, freeze, isSame, recoveryUrlOf, urlAt } from "./request.js";
import { judge, judgeRecovery } from "./verdict.js";

// Of answers that are kept, in bytes.
const LARGEST = 1024 * 1024;

export class Intent {
  #settings;
  #record;

  // Made by the client, of a record that is kept.
  constructor(settings, record) {
    this.#settings = settings;
    this.#record = record;
  }

  get name() {
    return this.#record.name;
  }

  get key() {
    return this.#record.key;
  }

  get createdAt() {
    return new Date(this.#record.createdAt);
  }

  // Of the request that it stands for; null as long as there is none.
  get method() {
    return this.#record.request?.method ?? null;
  }

  get url() {
    return this.#record.request?.url ?? null;
  }

  post(path, options) {
    return this.request("POST", path, options);
  }

  put(path, options) {
    return this.request("PUT", path, options);
  }

  patch(path, options) {
    return this.request("PATCH", path, options);
  }

  delete(path, options) {
    return this.request("DELETE", path, options);
  }

  // `options`: json or body, headers, signal.
  async request(method, path, options = {}) {
    const request = await freeze(method, urlAt(this.#record.base, path), options, this.#settings.dialect);
    const sentAt = this.#settings.clock();
    const record = await this.#change((found) => (found.request ? undefined : { ...found, request, sentAt }));
    if (!isSame(record.request, request)) {
      const { method: first, url } = record.request;
      throw new IntentChanged(`${this.name} is ${first} ${url} with what it was first given.`, { key: this.key });
    }
    return this.#answered(record, options);
  }

  // Null for one that was never sent: nobody knows what it was to be.
  async resume({ force = false, headers, signal } = {}) {
    const record = await this.#change(() => undefined);
    return record.request ? this.#answered(record, { force, headers, signal }) : null;
  }

  // Asks for the answer only, so that nothing can happen. Null where the server knows of none.
  async recover({ headers, signal } = {}) {
    const record = await this.#change(() => undefined);
    if (!record.request) return null;
    if (this.#isRemembered(record)) return this.#remembered(record);
    const request = { method: "GET", url: recoveryUrlOf(record.request.url, this.key), headers: [] };
    return this.#asked({ request, judge: judgeRecovery, from: "recovered", headers, signal });
  }

  // Forget it. What was sent may happen all the same.
  async abandon() {
    await this.#settings.keep(this.#record.id, (found) => (found?.key === this.key ? null : undefined));
  }

  #answered(record, { force = false, headers, signal }) {
    if (this.#isRemembered(record)) return this.#remembered(record);
    const { clock, safeFor } = this.#settings;
    if (!force && clock() - record.sentAt >= safeFor) {
      const message = `${this.name} was first sent too long ago: its key may be forgotten, and it be done again.`;
      throw new IntentTooOld(message, { key: this.key });
    }
    return this.#asked({ request: record.request, judge, from: "sent", headers, signal });
  }

  async #asked({ headers, ...call }) {
    const { name, key } = this;
    const settings = this.#settings;
    const { answer, verdict } = await exchange(settings, { ...call, name, key, headers: credentialsOf(headers) });
    if (verdict.is === "answer" || verdict.final) await this.#settle(answer);
    settings.tell({ type: "answer", name, key, attempt: answer.attempts, status: answer.status, from: answer.from });
    return this.#concluded(answer, verdict);
  }

  #concluded(answer, verdict) {
    if (verdict.is === "answer") return answer;
    if (verdict.is === "nothing") return null;
    const said = answer.detail || "it says no more of it.";
    throw new verdict.as(`The server answered ${answer.status} to ${this.name}: ${said}`, { key: this.key, answer });
  }

  async #settle(answer) {
    const outcome = answer.bytes().length <= LARGEST ? answer.parts : null;
    const endedAt = this.#settings.clock();
    try {
      await this.#change((found) => ({ ...found, endedAt, outcome }));
    } catch (error) {
      // The answer is here, and the caller's. It is asked for again where it could not be kept.
      this.#settings.tell({ type: "not-kept", name: this.name, key: this.key, reason: (error.cause ?? error).message });
    }
  }

  #isRemembered({ outcome, endedAt }) {
    return Boolean(outcome) && this.#settings.clock() - endedAt < this.#settings.remember;
  }

  #remembered({ outcome }) {
    const { dialect } = this.#settings;
    const answer = new Answer(outcome, { key: this.key, from: "remembered", attempts: 0, dialect });
    return this.#concluded(answer, judge(answer, dialect));
  }

  // Only while it is this intent: another one may have got its name.
  async #change(decide) {
    let isHere = false;
    const record = await this.#settings.keep(this.#record.id, (found) => {
      isHere = found?.key === this.key;
      return isHere ? decide(found) : undefined;
    });
    if (!isHere) throw new IntentAbandoned(`${this.name} was given up, or is over.`, { key: this.key });
    this.#record = record;
    return record;
  }
}
