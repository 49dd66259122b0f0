// How long to wait before the next attempt, in milliseconds: as the server says, else a random part of a growing bound.

const FIRST = 200;
const LONGEST = 10_000;
const LONGEST_TOLD = 60_000;
// Date.parse makes a date of almost anything, "1.5" included.
const HTTP_DATE = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT$/;

// `running`: the answer is due from another attempt, and whoever is told to come back at once rests all the same.
export function pauseAfter(failures, answer, running, { clock, random }) {
  const told = retryAfter(answer?.headers.get("Retry-After") ?? "", clock());
  if (told !== null) return running ? Math.max(told, FIRST) : told;
  return random() * Math.min(LONGEST, FIRST * 2 ** (Math.max(failures, 1) - 1));
}

// Null where it says nothing.
export function retryAfter(value, now) {
  const text = value.trim();
  if (/^\d+$/.test(text)) return Math.min(Number(text) * 1000, LONGEST_TOLD);
  if (!HTTP_DATE.test(text)) return null;
  const until = Date.parse(text) - now;
  return Number.isNaN(until) ? null : Math.min(Math.max(until, 0), LONGEST_TOLD);
}

export function sleep(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const end = () => {
      clearTimeout(timer);
      reject(reasonOf(signal));
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", end);
      resolve();
    }, milliseconds);
    if (signal?.aborted) end();
    else signal?.addEventListener("abort", end, { once: true });
  });
}

// Older browsers have none.
export function reasonOf(signal) {
  return signal.reason ?? new DOMException("The request was aborted.", "AbortError");
}
