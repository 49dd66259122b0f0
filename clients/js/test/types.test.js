// The types written by hand tell of what is there: names, members, options, and nothing else.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";

import * as oncekey from "../oncekey.js";

const TYPES = await readFile(new URL("../oncekey.d.ts", import.meta.url), "utf8");
const CLIENT = await readFile(new URL("../lib/client.js", import.meta.url), "utf8");

function block(kind, name) {
  const found = new RegExp(`^export ${kind} ${name}\\b[^{]*\\{\\n(.*?)^\\}`, "ms").exec(TYPES);
  assert.ok(found, `${kind} ${name} is not told of`);
  return found[1];
}

test("every name is told of, with its kind", () => {
  const told = [...TYPES.matchAll(/^export (?:class|function|const) (\w+)/gm)].map((found) => found[1]);
  assert.deepEqual(told.sort(), Object.keys(oncekey).sort());
  for (const [, kind, name] of TYPES.matchAll(/^export (class|function) (\w+)/gm)) {
    assert.equal(/^class\b/.test(String(oncekey[name])), kind === "class", name);
  }
});

test("every error has the base that is told, and a code of its own", () => {
  const codes = new Set();
  for (const [, name, base] of TYPES.matchAll(/^export class (\w+) extends (OnceKeyError|Error)/gm)) {
    const error = new oncekey[name]("words", { key: "k", cause: 1 });
    assert.equal(Object.getPrototypeOf(oncekey[name]).name, base);
    assert.deepEqual([error.name, error.message, error.key, error.answer, error.cause], [name, "words", "k", null, 1]);
    assert.equal(typeof error.retryable, "boolean");
    codes.add(error.code);
  }
  assert.equal(codes.size, Object.values(oncekey).filter((each) => each.prototype instanceof Error).length);
});

for (const name of ["Client", "Intent", "Answer"]) {
  test(`every method of ${name} is told of`, () => {
    const told = [...block("class", name).matchAll(/^ {2}(?:get |private )?(\w+)\(/gm)].map((found) => found[1]);
    assert.deepEqual(told.sort(), Object.getOwnPropertyNames(oncekey[name].prototype).sort());
  });
}

test("every option is told of", () => {
  const told = [...block("interface", "ClientOptions").matchAll(/^ {2}(\w+)\?:/gm)].map((found) => found[1]);
  const defaults = /const DEFAULTS = \{\n(.*?)^\};/ms.exec(CLIENT)[1];
  const own = [...defaults.matchAll(/^ {2}(\w+)[:,]/gm)].map((found) => found[1]);
  assert.deepEqual(told.sort(), [...own, "intents", "dialect"].sort());
});
