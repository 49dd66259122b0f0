// A request, frozen: what is kept with the key, and sent to the byte with every attempt. No credentials are in it.

import { InvalidInput } from "./errors.js";

const SAFE = new Set(["GET", "HEAD", "OPTIONS", "TRACE"]);
// They change between two attempts, and nobody is to find them in a store.
const CREDENTIALS = new Set([
  "authorization",
  "cookie",
  "proxy-authorization",
  "x-api-key",
  "x-auth-token",
  "x-csrf-token",
  "x-csrftoken",
  "x-xsrf-token",
]);

export async function freeze(method, url, { json, body, headers }, dialect) {
  const verb = method.toUpperCase();
  if (SAFE.has(verb)) throw new InvalidInput(`${verb} has no effect that could happen twice: use fetch for it.`);
  if (json !== undefined && body !== undefined) throw new InvalidInput("Give json or body, not both.");
  const lines = new Headers(headers);
  if (lines.has(dialect.key)) throw new InvalidInput(`The intent has the ${dialect.key}; leave it out of the headers.`);
  const content = json === undefined ? await contentOf(body) : contentOfJson(json);
  const type = lines.get("Content-Type") ?? content.type;
  const kept = [...lines].filter(([name]) => name !== "content-type" && !CREDENTIALS.has(name));
  return { method: verb, url, headers: kept, type, body: content.bytes };
}

// Those that are for this call only.
export function credentialsOf(headers) {
  return [...new Headers(headers)].filter(([name]) => CREDENTIALS.has(name));
}

// JSON is compared by value, everything else to the byte.
export function isSame(one, other) {
  if (one.method !== other.method || one.url !== other.url) return false;
  if (areEqualBytes(one.body, other.body)) return one.type === other.type;
  return isJson(one.type) && isJson(other.type) && isEqualJson(one.body, other.body);
}

// Where a URL leads, seen from the base; never to another origin, which must not get the credentials.
export function urlAt(base, path) {
  const url = /^[a-z][a-z\d+.-]*:|^\/\//i.test(path) ? new URL(path, base) : new URL(joined(base, path));
  if (url.origin !== new URL(base).origin) throw new InvalidInput(`${url.origin} is not where this client calls.`);
  url.hash = "";
  return url.href;
}

export function recoveryUrlOf(url, key) {
  const found = new URL(url);
  found.search = "";
  found.pathname = `${found.pathname.replace(/\/$/, "")}/by-idempotency-key/${encodeURIComponent(key)}`;
  return found.href;
}

function joined(base, path) {
  return `${base.replace(/\/$/, "")}${/^[/?]/.test(path) || path === "" ? "" : "/"}${path}`;
}

function contentOfJson(json) {
  const text = JSON.stringify(json);
  if (text === undefined) throw new InvalidInput("This is nothing that JSON can say.");
  return { bytes: new TextEncoder().encode(text), type: "application/json" };
}

async function contentOf(body) {
  if (body === undefined || body === null) return { bytes: null, type: null };
  // It knows what every kind of body looks like on the wire, forms included.
  const read = new Response(body);
  return { bytes: new Uint8Array(await read.arrayBuffer()), type: read.headers.get("Content-Type") };
}

function isJson(type) {
  return /^[\w.+-]+\/([\w.-]+\+)?json\s*(;|$)/i.test(type ?? "");
}

function areEqualBytes(one, other) {
  if (one === null || other === null) return one === other;
  return one.length === other.length && one.every((byte, at) => byte === other[at]);
}

function isEqualJson(one, other) {
  try {
    const read = (bytes) => JSON.parse(new TextDecoder().decode(bytes ?? new Uint8Array()));
    return isEqual(read(one), read(other));
  } catch {
    return false;
  }
}

function isEqual(one, other) {
  if (one === null || other === null || typeof one !== "object" || typeof other !== "object") return one === other;
  if (Array.isArray(one) !== Array.isArray(other)) return false;
  const names = Object.keys(one);
  if (names.length !== Object.keys(other).length) return false;
  return names.every((name) => Object.hasOwn(other, name) && isEqual(one[name], other[name]));
}
