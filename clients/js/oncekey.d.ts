// The types of oncekey.js, written by hand; test/types.test.js holds the two together.

/** How the answer came here: over the network, by asking for it, or from where it was kept. */
export type From = "sent" | "recovered" | "remembered";

export interface Dialect {
  /** The header that carries the key: `Idempotency-Key`. */
  key: string;
  /** The header that marks a stored answer with `true`: `Idempotent-Replayed`. */
  replayed: string;
  /** The header with the id of the operation: `X-Operation-Id`. */
  operation: string;
  /** A 409 that says nothing of itself is the application's (`"answer"`), or the key is in use (`"retry"`). */
  conflicts: "answer" | "retry";
  /** A header whose `true` or `false` counts more than the status; none. */
  shouldRetry: string;
}

export interface ClientEvent {
  type: "captured" | "attempt" | "retry" | "answer" | "gave-up" | "not-kept";
  /** Null where no intent is meant, but the place where they are kept. */
  name: string | null;
  key: string | null;
  attempt?: number;
  reason?: string;
  /** Milliseconds until the next attempt. */
  after?: number;
  status?: number;
  from?: From;
}

/** What is kept of an intent. */
export interface IntentRecord {
  id: string;
  base: string;
  name: string;
  key: string;
  createdAt: number;
  request?: {
    method: string;
    url: string;
    headers: [string, string][];
    type: string | null;
    body: Uint8Array | null;
  };
  sentAt?: number;
  endedAt?: number;
  outcome?: { status: number; headers: [string, string][]; body: Uint8Array } | null;
}

/** Where intents are kept. */
export interface Intents {
  /** Stores what `decide` returns: a record, null to remove it, undefined to leave it. Nobody changes it meanwhile. */
  change(
    id: string,
    decide: (found: IntentRecord | undefined) => IntentRecord | null | undefined,
  ): Promise<IntentRecord | undefined>;
  all(): Promise<IntentRecord[]>;
}

export interface ClientOptions {
  /** Sent with every attempt, and never kept. A function is asked each time. */
  headers?: HeadersInit | (() => HeadersInit | Promise<HeadersInit>);
  /** Whether cookies are sent, as of `fetch`: `"same-origin"`. */
  credentials?: RequestCredentials;
  /** IndexedDB where there is one, else memory. */
  intents?: Intents | Promise<Intents>;
  dialect?: Partial<Dialect>;
  /** 8 */
  attempts?: number;
  /** Milliseconds for one attempt: 30 000. */
  timeout?: number;
  /** Milliseconds for all of them: 60 000. */
  deadline?: number;
  /** Milliseconds for which an answer is remembered: 24 hours. */
  remember?: number;
  /** Milliseconds after which a key may be new to the server: 24 hours. */
  safeFor?: number;
  onEvent?: ((event: ClientEvent) => unknown) | null;
  clock?: () => number;
  random?: () => number;
  fetch?: typeof globalThis.fetch;
  sleep?: (milliseconds: number, signal?: AbortSignal) => Promise<void>;
  draw?: () => string;
}

export interface CallOptions {
  /** Credentials in it are for this call; the rest is frozen with the request. */
  headers?: HeadersInit;
  signal?: AbortSignal;
}

export interface SendOptions extends CallOptions {
  json?: unknown;
  body?: BodyInit | null;
}

export interface ResumeOptions extends CallOptions {
  /** Send it though its key may be new to the server. */
  force?: boolean;
}

export class Client {
  constructor(base?: string | URL, options?: ClientOptions);
  intent(name: string): Promise<Intent>;
  pending(): Promise<Intent[]>;
}

/** Made by `client.intent()` and `client.pending()`. */
export class Intent {
  private constructor();
  get name(): string;
  /** The same for every attempt, after a restart too. */
  get key(): string;
  get createdAt(): Date;
  /** Of the request that it stands for; null as long as there is none. */
  get method(): string | null;
  get url(): string | null;
  post(path: string, options?: SendOptions): Promise<Answer>;
  put(path: string, options?: SendOptions): Promise<Answer>;
  patch(path: string, options?: SendOptions): Promise<Answer>;
  delete(path: string, options?: SendOptions): Promise<Answer>;
  request(method: string, path: string, options?: SendOptions): Promise<Answer>;
  resume(options?: ResumeOptions): Promise<Answer | null>;
  recover(options?: CallOptions): Promise<Answer | null>;
  abandon(): Promise<void>;
}

export class Answer {
  private constructor();
  readonly status: number;
  readonly headers: Headers;
  readonly key: string;
  readonly from: From;
  readonly attempts: number;
  get ok(): boolean;
  get replayed(): boolean;
  get operationId(): string | null;
  /** The problem document (RFC 9457), or the error object of Stripe's; else an empty object. */
  get problem(): Record<string, any>;
  /** The problem in a word: `outcome-unknown`. */
  get code(): string;
  /** What the server says of it, in a sentence. */
  get detail(): string;
  get parts(): { status: number; headers: [string, string][]; body: Uint8Array };
  bytes(): Uint8Array;
  text(): string;
  json(): any;
}

export const ONCEKEY: Dialect;
export const STRIPE: Dialect;

export function memoryIntents(): Intents;
export function indexedDBIntents(name?: string, factory?: IDBFactory): Promise<Intents>;

export class OnceKeyError extends Error {
  readonly code: string;
  readonly retryable: boolean;
  readonly key: string | null;
  readonly answer: Answer | null;
  readonly cause?: unknown;
}
export class InvalidInput extends OnceKeyError {}
export class IntentChanged extends OnceKeyError {}
export class IntentTooOld extends OnceKeyError {}
export class IntentAbandoned extends OnceKeyError {}
export class IntentNotKept extends OnceKeyError {}
export class CredentialsRefused extends OnceKeyError {}
export class KeyRefused extends OnceKeyError {}
export class KeyReused extends OnceKeyError {}
export class InFlight extends OnceKeyError {}
export class OutcomeUnknown extends OnceKeyError {}
export class OutcomeNotKept extends OnceKeyError {}
export class NotRecovered extends OnceKeyError {}
export class GaveUp extends OnceKeyError {}
