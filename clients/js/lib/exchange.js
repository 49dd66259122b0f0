// One request, attempted until there is a verdict on it, or attempts or time are used up. Keeps nothing.

import { Answer } from "./answer.js";
import { GaveUp } from "./errors.js";
import { pauseAfter, reasonOf } from "./pause.js";

// `call` says what is asked: { name, key, request, judge, from, headers, signal }.
export async function exchange(settings, call) {
  const until = settings.clock() + settings.deadline;
  // A request that still runs there uses up time, and no attempts.
  let failures = 0;
  for (let attempt = 1; ; attempt++) {
    settings.tell({ type: "attempt", name: call.name, key: call.key, attempt });
    const { answer = null, failure } = await attempted(settings, call, attempt, until - settings.clock());
    const verdict = answer ? call.judge(answer, settings.dialect) : { is: "retry", reason: failure.message };
    if (verdict.is !== "retry") return { answer, verdict };

    failures += verdict.running ? 0 : 1;
    const after = pauseAfter(failures, answer, verdict.running, settings);
    if (failures >= settings.attempts || settings.clock() + after >= until) {
      throw gaveUp(settings, call, { attempt, answer, failure, reason: verdict.reason });
    }
    settings.tell({ type: "retry", name: call.name, key: call.key, attempt, reason: verdict.reason, after });
    await settings.sleep(after, call.signal);
  }
}

async function attempted(settings, call, attempt, left) {
  // Asked for each time: tokens are renewed. What is wrong with them is the caller's to hear.
  const headers = await headersOf(settings, call);
  const limit = limited(Math.min(settings.timeout, Math.max(left, 1)), call.signal);
  const { method, url, body } = call.request;
  const { credentials } = settings;
  try {
    const heard = await settings.fetch(url, {
      method, headers, body, credentials, cache: "no-store", signal: limit.signal,
    });
    const read = new Uint8Array(await heard.arrayBuffer());
    const parts = { status: heard.status, headers: heard.headers, body: read };
    const { key, from } = call;
    return { answer: new Answer(parts, { key, from, attempts: attempt, dialect: settings.dialect }) };
  } catch (error) {
    if (call.signal?.aborted) throw reasonOf(call.signal);
    return { failure: limit.reached() ? new Error("It took too long.", { cause: error }) : error };
  } finally {
    limit.clear();
  }
}

async function headersOf(settings, call) {
  const own = typeof settings.headers === "function" ? await settings.headers() : settings.headers;
  const headers = new Headers(own);
  for (const [name, value] of [...call.request.headers, ...(call.headers ?? [])]) headers.set(name, value);
  if (call.request.type) headers.set("Content-Type", call.request.type);
  if (call.from === "sent") headers.set(settings.dialect.key, call.key);
  return headers;
}

// The caller's signal and a bound in time, as one signal: AbortSignal.any is young.
function limited(milliseconds, signal) {
  const controller = new AbortController();
  let reached = false;
  const timer = setTimeout(() => {
    reached = true;
    controller.abort();
  }, milliseconds);
  const abort = () => controller.abort();
  if (signal?.aborted) abort();
  signal?.addEventListener("abort", abort);
  const clear = () => {
    clearTimeout(timer);
    signal?.removeEventListener("abort", abort);
  };
  return { signal: controller.signal, reached: () => reached, clear };
}

function gaveUp(settings, { name, key }, { attempt, answer, failure, reason }) {
  settings.tell({ type: "gave-up", name, key, attempt, reason });
  const times = attempt === 1 ? "once" : `${attempt} times`;
  const message = `There is no answer to ${name}, tried ${times}, the last time: ${reason}. It is pending: resume it.`;
  return new GaveUp(message, { key, answer, cause: failure });
}
