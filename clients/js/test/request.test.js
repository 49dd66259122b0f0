// Requests, frozen: what is in them, which are the same, and where they lead.

import assert from "node:assert/strict";
import { test } from "node:test";

import { ONCEKEY } from "../lib/dialect.js";
import { newKey } from "../lib/key.js";
import { freeze, isSame, recoveryUrlOf, urlAt } from "../lib/request.js";

const URL_ = "https://api.example.com/orders";
const made = (options, method = "post", url = URL_) => freeze(method, url, options, ONCEKEY);
const json = (text) => made({ body: text, headers: { "Content-Type": "application/json" } });

test("it has the bytes, their type and the caller's headers", async () => {
  const request = await made({ json: { item: "té" }, headers: { "X-Shop": "1" } });
  assert.deepEqual(request, {
    method: "POST",
    url: URL_,
    headers: [["x-shop", "1"]],
    type: "application/json",
    body: new TextEncoder().encode('{"item":"té"}'),
  });
});

test("no credentials are in it, however they are written", async () => {
  const names = "AUTHORIZATION cookie X-Api-Key x-auth-token X-CSRF-Token X-CSRFToken x-xsrf-token Proxy-Authorization";
  const headers = Object.fromEntries(names.split(" ").map((name) => [name, "hush"]));
  assert.deepEqual((await made({ json: 1, headers })).headers, []);
});

test("forms and blobs are frozen with their types", async () => {
  const form = await made({ body: new URLSearchParams({ item: "tea" }) });
  assert.equal(form.type, "application/x-www-form-urlencoded;charset=UTF-8");
  assert.equal(new TextDecoder().decode(form.body), "item=tea");
  const blob = await made({ body: new Blob(["tea"], { type: "text/x-tea" }) });
  assert.equal(blob.type, "text/x-tea");
  const bytes = await made({ body: new Uint8Array([1, 2]), headers: { "Content-Type": "image/png" } });
  assert.deepEqual([bytes.type, [...bytes.body]], ["image/png", [1, 2]]);
  assert.deepEqual((await made({}, "delete")).body, null);
});

test("what breaks a rule is refused", async () => {
  await assert.rejects(made({}, "get"), { code: "invalid-input" });
  await assert.rejects(made({ json: 1, body: "1" }), { code: "invalid-input" });
  await assert.rejects(made({ json: () => 1 }), { code: "invalid-input" });
  await assert.rejects(made({ headers: { "idempotency-key": "mine" } }), { code: "invalid-input" });
});

for (const [one, other, expected] of [
  ['{"a":1,"b":[1,null,"x"]}', '{ "b": [1.0, null, "x"], "a": 1 }', true],
  ['{"a":1}', '{"a":1,"b":2}', false],
  ['{"a":1,"b":2}', '{"a":1}', false],
  ['{"a":1,"b":2}', '{"a":1,"c":2}', false],
  ["[1,2]", "[2,1]", false],
  ["[]", "{}", false],
  ["null", "{}", false],
  ['{"a":"1"}', '{"a":1}', false],
  ['{"__proto__":1}', '{"x":1}', false],
  ["{broken", "{broken", true],
  ["{broken", "{ broken", false],
]) {
  test(`${one} and ${other} are ${expected ? "" : "not "}the same JSON`, async () => {
    assert.equal(isSame(await json(one), await json(other)), expected);
  });
}

test("what is no JSON is compared to the byte", async () => {
  const text = (body) => made({ body });
  assert.equal(isSame(await text("1"), await text("1")), true);
  assert.equal(isSame(await text("1"), await text("1 ")), false);
  assert.equal(isSame(await text("1"), await json("1")), false);
  assert.equal(isSame(await made({}), await made({})), true);
  assert.equal(isSame(await made({}), await text("")), false);
});

test("method and address count as well", async () => {
  assert.equal(isSame(await made({ json: 1 }), await made({ json: 1 }, "put")), false);
  assert.equal(isSame(await made({ json: 1 }), await made({ json: 1 }, "post", `${URL_}?a=1`)), false);
});

for (const [base, path, expected] of [
  ["https://api.example.com", "/orders", "https://api.example.com/orders"],
  ["https://api.example.com/v1", "/orders?a=1#top", "https://api.example.com/v1/orders?a=1"],
  ["https://api.example.com/v1", "orders", "https://api.example.com/v1/orders"],
  ["https://api.example.com/v1", "", "https://api.example.com/v1"],
  ["https://api.example.com/v1", "?a=1", "https://api.example.com/v1?a=1"],
  ["https://api.example.com/v1", "https://api.example.com/v2/orders", "https://api.example.com/v2/orders"],
]) {
  test(`${path} at ${base} is ${expected}`, () => assert.equal(urlAt(base, path), expected));
}

for (const path of ["https://evil.example/", "//evil.example/", "http://api.example.com/", "javascript:alert(1)"]) {
  test(`${path} gets no credentials`, () => {
    assert.throws(() => urlAt("https://api.example.com", path), { code: "invalid-input" });
  });
}

test("an answer is asked for beside its route", () => {
  const url = "https://api.example.com/v1/orders/7/pay?cents=1";
  assert.equal(recoveryUrlOf(url, "k-1"), "https://api.example.com/v1/orders/7/pay/by-idempotency-key/k-1");
  assert.equal(recoveryUrlOf("https://a.example/", "k"), "https://a.example/by-idempotency-key/k");
});

test("keys are random UUIDs, also where the browser makes none", () => {
  const shape = /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/;
  const poor = { getRandomValues: (bytes) => crypto.getRandomValues(bytes) };
  const keys = new Set();
  for (let n = 0; n < 100; n++) {
    for (const key of [newKey(), newKey(poor)]) {
      assert.match(key, shape);
      keys.add(key);
    }
  }
  assert.equal(keys.size, 200);
});
