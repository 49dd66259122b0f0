// Clients and intents with a network, a clock and a place to keep things that do as they are told.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, memoryIntents } from "../oncekey.js";

const HOUR = 3_600_000;
const body = { json: { item: "tea" } };
const REPLAYED = { "Idempotent-Replayed": "true" };
const BIG = 1024 * 1024;

function problem(status, code) {
  const headers = { "Content-Type": "application/problem+json" };
  return { status, headers, body: JSON.stringify({ type: `https://oncekey.dev/problems/${code}` }) };
}

// Answers come in the order of `script`; an Error is a network that fails. The last one comes for ever.
class World {
  constructor(...script) {
    this.script = script;
    this.sent = [];
    this.slept = [];
    this.events = [];
    this.now = 1_700_000_000_000;
    this.intents = memoryIntents();
  }

  client(options = {}) {
    return new Client("https://api.example.com", {
      intents: this.intents,
      clock: () => this.now,
      random: () => 0.5,
      fetch: (url, request) => this.#answer(url, request),
      sleep: async (milliseconds) => {
        this.slept.push(milliseconds);
        this.now += milliseconds;
      },
      onEvent: (event) => this.events.push(event),
      ...options,
    });
  }

  async #answer(url, request) {
    this.sent.push({ url, ...request, headers: Object.fromEntries(request.headers) });
    const next = this.script.length > 1 ? this.script.shift() : this.script[0];
    if (next instanceof Error) throw next;
    return typeof next === "function" ? next(request) : new Response(next.body ?? "{}", next);
  }

  get keys() {
    return new Set(this.sent.map((each) => each.headers["idempotency-key"]));
  }
}

test("every attempt has the same key and the same bytes", async () => {
  const world = new World(new TypeError("cut"), { status: 503 }, { status: 429 }, { status: 201 });
  const intent = await world.client().intent("a");
  const answer = await intent.post("/orders", body);
  assert.deepEqual([answer.status, answer.attempts, answer.from, answer.key], [201, 4, "sent", intent.key]);
  assert.deepEqual([...world.keys], [intent.key]);
  assert.equal(new Set(world.sent.map((each) => String(each.body))).size, 1);
  assert.deepEqual(world.slept, [100, 200, 400]);
  assert.deepEqual(
    world.events.map((each) => each.type),
    ["captured", "attempt", "retry", "attempt", "retry", "attempt", "retry", "attempt", "answer"],
  );
});

test("attempts are used up", async () => {
  const world = new World({ status: 503 });
  const intent = await world.client({ attempts: 3 }).intent("a");
  await assert.rejects(intent.post("/orders", body), (error) => {
    assert.deepEqual([error.code, error.retryable, error.answer.status], ["gave-up", true, 503]);
    return true;
  });
  assert.equal(world.sent.length, 3);
  assert.equal((await world.client().pending()).length, 1);
  assert.equal(world.events.at(-1).type, "gave-up");
});

test("time is used up, and no pause goes beyond it", async () => {
  const world = new World({ status: 503, headers: { "Retry-After": "25" } });
  const intent = await world.client().intent("a");
  await assert.rejects(intent.post("/orders", body), { code: "gave-up" });
  assert.deepEqual(world.slept, [25_000, 25_000]);
});

test("what still runs there uses up time, and no attempts", async () => {
  const world = new World(...Array(20).fill({ status: 409, headers: { "Retry-After": "1" } }), { status: 201 });
  const intent = await world.client({ attempts: 2 }).intent("a");
  assert.equal((await intent.post("/orders", body)).attempts, 21);
  world.script = [{ status: 409, headers: { "Retry-After": "1" } }];
  const other = await world.client({ attempts: 2 }).intent("b");
  await assert.rejects(other.post("/orders", body), { code: "gave-up" });
  assert.equal(world.sent.length, 21 + 60);
});

test("a network that fails is the cause", async () => {
  const cut = new TypeError("cut");
  const intent = await new World(cut).client({ attempts: 2 }).intent("a");
  await assert.rejects(intent.post("/orders", body), (error) => error.cause === cut && error.answer === null);
});

test("an attempt that takes too long is one that failed", async () => {
  const never = (request) => new Promise((_, reject) => {
    request.signal.addEventListener("abort", () => reject(new DOMException("cut", "AbortError")));
  });
  const world = new World(never, { status: 201 });
  const intent = await world.client({ timeout: 1 }).intent("a");
  assert.equal((await intent.post("/orders", body)).attempts, 2);
  assert.equal(world.events.find((each) => each.type === "retry").reason, "It took too long.");
});

test("the caller's signal ends it, and it stays pending", async () => {
  const world = new World({ status: 503 });
  const controller = new AbortController();
  const reason = new Error("the user left");
  const sleep = async (_, signal) => {
    controller.abort(reason);
    throw signal.reason;
  };
  const client = world.client({ sleep });
  const intent = await client.intent("a");
  await assert.rejects(intent.post("/orders", { ...body, signal: controller.signal }), reason);
  assert.deepEqual((await client.pending()).map((each) => each.key), [intent.key]);
  assert.equal(world.sent.length, 1);
});

test("a signal that has ended before sends nothing that counts", async () => {
  const world = new World((request) => {
    if (request.signal.aborted) throw new DOMException("aborted", "AbortError");
    return new Response();
  });
  const intent = await world.client().intent("a");
  const signal = AbortSignal.abort(new Error("too late"));
  await assert.rejects(intent.post("/orders", { ...body, signal }), /too late/);
});

test("the same name is the same intent, before and after its answer", async () => {
  const world = new World({ status: 201, body: '{"id": 1}' });
  const first = await world.client().intent("a");
  const again = await world.client().intent("a");
  assert.equal(again.key, first.key);
  await first.post("/orders", body);
  const headers = { "Content-Type": "application/json" };
  const answer = await (await world.client().intent("a")).post("/orders", { body: '{ "item": "tea" }', headers });
  assert.deepEqual([answer.from, answer.status, answer.attempts, answer.json()], ["remembered", 201, 0, { id: 1 }]);
  assert.equal(world.sent.length, 1);
  world.now += 24 * HOUR;
  assert.notEqual((await world.client().intent("a")).key, first.key);
});

test("another request of the same name is refused, and nothing is sent", async () => {
  const world = new World({ status: 201 });
  const intent = await world.client().intent("a");
  await intent.post("/orders", body);
  for (const [method, path, options] of [
    ["POST", "/orders", { json: { item: "cake" } }],
    ["PUT", "/orders", body],
    ["POST", "/others", body],
  ]) {
    await assert.rejects(intent.request(method, path, options), { code: "intent-changed", key: intent.key });
  }
  assert.equal(world.sent.length, 1);
});

for (const [script, code, isPending] of [
  [problem(422, "idempotency-key-reused"), "idempotency-key-reused", false],
  [problem(409, "outcome-not-kept"), "outcome-not-kept", false],
  [problem(409, "outcome-unknown"), "outcome-unknown", true],
  [problem(400, "idempotency-key-invalid"), "key-refused", true],
  [{ status: 401 }, "credentials-refused", true],
]) {
  test(`${code} is told, and ${isPending ? "stays pending" : "is final"}`, async () => {
    const world = new World(script);
    const client = world.client();
    const intent = await client.intent("a");
    const refused = { code, key: intent.key, retryable: false };
    await assert.rejects(intent.post("/orders", body), refused);
    assert.equal((await client.pending()).length, isPending ? 1 : 0);
    await assert.rejects(intent.post("/orders", body), refused);
    assert.equal(world.sent.length, isPending ? 2 : 1);
  });
}

test("credentials are asked for with every attempt, and kept nowhere", async () => {
  const world = new World({ status: 503 }, { status: 201 });
  let number = 0;
  const client = world.client({ headers: async () => ({ Authorization: `Bearer hush-${++number}` }) });
  const intent = await client.intent("a");
  await intent.post("/orders", { ...body, headers: { "X-API-Key": "hush-key", "X-Shop": "7" } });
  assert.deepEqual(world.sent.map((each) => each.headers.authorization), ["Bearer hush-1", "Bearer hush-2"]);
  for (const { headers } of world.sent) assert.deepEqual([headers["x-api-key"], headers["x-shop"]], ["hush-key", "7"]);
  assert.doesNotMatch(JSON.stringify(await world.intents.all()), /hush/);
});

test("one that was first sent too long ago is not sent again unless it must be", async () => {
  const world = new World({ status: 503 });
  const client = world.client({ attempts: 1 });
  const intent = await client.intent("a");
  await assert.rejects(intent.post("/orders", body), { code: "gave-up" });
  world.script = [{ status: 201 }];
  world.now += 24 * HOUR;
  await assert.rejects(intent.post("/orders", body), { code: "intent-too-old" });
  await assert.rejects(intent.resume(), { code: "intent-too-old" });
  assert.equal(world.sent.length, 1);
  assert.equal((await intent.resume({ force: true })).status, 201);
  assert.equal(world.keys.size, 1);
});

test("an intent tells what it stands for", async () => {
  const world = new World({ status: 503 });
  const client = world.client({ attempts: 1 });
  const intent = await client.intent("a");
  assert.deepEqual([intent.name, intent.method, intent.url], ["a", null, null]);
  assert.equal(intent.createdAt.getTime(), world.now);
  await assert.rejects(intent.put("/orders/1", body));
  const [pending] = await client.pending();
  for (const each of [intent, pending]) {
    assert.deepEqual([each.method, each.url], ["PUT", "https://api.example.com/orders/1"]);
  }
});

test("one that was captured long ago and never sent is as good as new", async () => {
  const world = new World({ status: 201 });
  const intent = await world.client().intent("a");
  world.now += 48 * HOUR;
  assert.equal(await intent.resume(), null);
  assert.equal((await intent.post("/orders", body)).status, 201);
});

test("an answer is recovered by asking only", async () => {
  const known = { status: 201, body: "7", headers: REPLAYED };
  const world = new World(new TypeError("cut"), problem(404, "not-found"), { status: 202 }, known);
  const client = world.client({ attempts: 1, headers: { Authorization: "Bearer x" } });
  const intent = await client.intent("a");
  assert.equal(await intent.recover(), null);
  await assert.rejects(intent.post("/orders?now=1", body), { code: "gave-up" });
  assert.equal(await intent.recover(), null);
  await assert.rejects(intent.recover(), { code: "in-flight", retryable: true });
  const answer = await intent.recover();
  assert.deepEqual([answer.json(), answer.from, answer.replayed], [7, "recovered", true]);
  const asked = world.sent.slice(1);
  const url = `https://api.example.com/orders/by-idempotency-key/${intent.key}`;
  assert.deepEqual(asked.map((each) => [each.method, each.url]), Array(3).fill(["GET", url]));
  assert.deepEqual(asked[0].headers, { authorization: "Bearer x" });
  assert.deepEqual(await client.pending(), []);
  assert.equal((await intent.recover()).from, "remembered");
});

test("an answer of more than a mebibyte is asked for again", async () => {
  const world = new World({ status: 201, body: "x".repeat(BIG + 1) }, { status: 201, body: "x".repeat(BIG) });
  const client = world.client();
  const intent = await client.intent("a");
  await intent.post("/orders", body);
  assert.deepEqual(await client.pending(), []);
  assert.equal((await intent.post("/orders", body)).from, "sent");
  assert.equal((await intent.post("/orders", body)).from, "remembered");
  assert.equal(world.keys.size, 1);
});

test("what was given up is forgotten, and cannot be sent by those who still hold it", async () => {
  const world = new World({ status: 201 });
  const client = world.client();
  const intent = await client.intent("a");
  await intent.abandon();
  assert.deepEqual(await client.pending(), []);
  await assert.rejects(intent.post("/orders", body), { code: "intent-abandoned" });
  const next = await client.intent("a");
  assert.notEqual(next.key, intent.key);
  await intent.abandon();
  assert.equal((await client.intent("a")).key, next.key);
  assert.equal(world.sent.length, 0);
});

test("what is over is swept, and what belongs to another API is left alone", async () => {
  const world = new World({ status: 201 });
  const client = world.client();
  await (await client.intent("a")).post("/orders", body);
  const other = new Client("https://other.example.com", { intents: world.intents });
  const theirs = await other.intent("a");
  world.now += 24 * HOUR;
  assert.deepEqual(await client.pending(), []);
  assert.deepEqual((await world.intents.all()).map((each) => each.key), [theirs.key]);
});

test("nothing is sent that could not be kept", async () => {
  const world = new World({ status: 201 });
  const full = Object.assign(memoryIntents(), { change: async () => { throw new Error("no room"); } });
  await assert.rejects(world.client({ intents: full }).intent("a"), { code: "intent-not-kept", retryable: true });
  const filling = memoryIntents();
  const intent = await world.client({ intents: filling }).intent("a");
  filling.change = full.change;
  await assert.rejects(intent.post("/orders", body), (error) => error.cause.message === "no room");
  assert.equal(world.sent.length, 0);
});

test("an answer that could not be kept is not lost", async () => {
  const filling = memoryIntents();
  const world = new World(() => {
    filling.change = async () => { throw new Error("no room"); };
    return new Response("{}", { status: 201 });
  });
  const intent = await world.client({ intents: filling }).intent("a");
  assert.equal((await intent.post("/orders", body)).status, 201);
  assert.deepEqual(world.events.filter((each) => each.type === "not-kept").map((each) => each.reason), ["no room"]);
});

test("a hook that fails breaks nothing", async () => {
  for (const onEvent of [() => { throw new Error("hook"); }, async () => { throw new Error("hook"); }]) {
    const intent = await new World({ status: 201 }).client({ onEvent }).intent("a");
    assert.equal((await intent.post("/orders", body)).status, 201);
  }
});

test("other names for things", async () => {
  const dialect = { key: "X-Request-Key", replayed: "X-Again", operation: "Request-Id", conflicts: "retry" };
  const world = new World({ status: 409 }, { status: 500, headers: { "X-Again": "true", "Request-Id": "r-1" } });
  const intent = await world.client({ dialect }).intent("a");
  const answer = await intent.post("/charges", { body: new URLSearchParams({ amount: "1" }) });
  assert.deepEqual([answer.status, answer.replayed, answer.operationId, answer.ok], [500, true, "r-1", false]);
  assert.deepEqual(world.sent.map((each) => each.headers["x-request-key"]), [intent.key, intent.key]);
  assert.equal("idempotency-key" in world.sent[0].headers, false);
});

test("a client needs an address, and options that there are", async () => {
  assert.throws(() => new Client(), { code: "invalid-input" });
  assert.throws(() => new Client("https://a.example", { attemps: 1 }), /attemps/);
  await assert.rejects(new Client("https://a.example").intent(""), { code: "invalid-input" });
});
