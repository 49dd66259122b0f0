// How long is waited: Retry-After as it may be written, and a random part of a growing bound.

import assert from "node:assert/strict";
import { test } from "node:test";

import { pauseAfter, retryAfter, sleep } from "../lib/pause.js";

const NOW = Date.parse("Mon, 16 Nov 2026 07:53:57 GMT");

for (const [value, expected] of [
  ["0", 0],
  ["1", 1000],
  [" 7 ", 7000],
  ["60", 60_000],
  ["61", 60_000],
  ["99999999999999999999999", 60_000],
  ["Mon, 16 Nov 2026 07:53:59 GMT", 2000],
  ["Mon, 16 Nov 2026 07:53:57 GMT", 0],
  ["Mon, 16 Nov 2020 07:53:57 GMT", 0],
  ["Mon, 16 Nov 2099 07:53:57 GMT", 60_000],
  ["Mon, 99 Nov 2026 07:53:57 GMT", null],
  ["", null],
  ["-1", null],
  ["1.5", null],
  ["soon", null],
  ["2026-11-16", null],
]) {
  test(`Retry-After: ${value} is ${expected}`, () => assert.equal(retryAfter(value, NOW), expected));
}

test("without it, the bound doubles up to ten seconds", () => {
  const longest = { clock: () => NOW, random: () => 1 };
  const bounds = [1, 2, 3, 4, 5, 6, 7, 8].map((attempt) => pauseAfter(attempt, null, false, longest));
  assert.deepEqual(bounds, [200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
});

test("any part of the bound may be waited, none included", () => {
  assert.equal(pauseAfter(3, null, false, { clock: () => NOW, random: () => 0 }), 0);
  assert.equal(pauseAfter(3, null, false, { clock: () => NOW, random: () => 0.25 }), 200);
});

test("what the server says takes its place", () => {
  const answer = { headers: new Headers({ "Retry-After": "3" }) };
  assert.equal(pauseAfter(1, answer, false, { clock: () => NOW, random: () => 1 }), 3000);
});

test("whoever is told to come back at once rests all the same while it runs", () => {
  const answer = { headers: new Headers({ "Retry-After": "0" }) };
  const settings = { clock: () => NOW, random: () => 1 };
  assert.deepEqual([pauseAfter(0, answer, true, settings), pauseAfter(1, answer, false, settings)], [200, 0]);
});

test("a sleep ends with its signal", async () => {
  const controller = new AbortController();
  const sleeping = sleep(60_000, controller.signal);
  controller.abort(new Error("enough"));
  await assert.rejects(sleeping, /enough/);
  await assert.rejects(sleep(60_000, controller.signal), /enough/);
});
