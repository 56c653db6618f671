/**
 * The Google provider: Gemini's generateContent, streamed, by REST.
 *
 * It has a client of its own. The vendor's builds requests anew from the fields that it knows, in an order of its own, and drops the others
 * (seen with `@google/genai` 2.32): neither the bytes of a signature's part nor the prefix of a prompt would be in our hands.
 */

import type { ModelChunk, ModelProvider, ModelRequest } from "../spi/index.ts";
import { newCallId } from "./call-id.ts";
import { runCompletion, type Attempt } from "./completion.ts";
import { callIdsOf } from "./content.ts";
import { malformed, ProviderFaultError, reasonWord, requestIdWord, type ProviderFault } from "./fault.ts";
import { GOOGLE, googleRequest } from "./google-request.ts";
import { translateGoogle } from "./google-stream.ts";
import { resolveLimits } from "./limits.ts";
import { checkApiKey, checkBaseUrl, type RemoteProviderOptions } from "./provider-options.ts";
import { parseRetryAfter } from "./retry.ts";
import { causesOf, systemCodeOf } from "./sdk-fault.ts";
import { jsonEvents } from "./sse.ts";
import { observedFetch } from "./transport.ts";

const GOOGLE_BASE_URL = "https://generativelanguage.googleapis.com";

/** Options of the Google provider. */
export interface GoogleProviderOptions extends RemoteProviderOptions {
  readonly apiKey: string;
  /** The prefix of a model's id that is the host's routing and is not sent. Default `google/`; "" for none. */
  readonly modelPrefix?: string | undefined;
}

/** The Google provider. Throws INVALID_ARGUMENT for options that cannot work. */
export function createGoogleProvider(options: GoogleProviderOptions): ModelProvider {
  const { clock, random } = options;
  const limits = resolveLimits(options.limits);
  const baseUrl = checkBaseUrl(options.baseUrl ?? GOOGLE_BASE_URL).replace(/\/+$/, "");
  const apiKey = checkApiKey(options.apiKey);
  const requestOptions = { modelPrefix: options.modelPrefix ?? "google/" };

  async function* complete(request: ModelRequest, { signal }: { readonly signal: AbortSignal }): AsyncGenerator<ModelChunk> {
    const { model, body } = googleRequest(request, requestOptions);
    const takenCallIds = callIdsOf(request.messages);
    const url = `${baseUrl}/v1beta/${pathOf(model)}:streamGenerateContent?alt=sse`;
    const text = JSON.stringify(body);
    const open = async (attempt: Attempt): Promise<AsyncIterable<unknown>> => {
      const fetch = observedFetch({ onBytes: attempt.onBytes, answerBytesMax: limits.answerBytesMax, clock });
      const headers = { "content-type": "application/json", "x-goog-api-key": apiKey };
      const response = await fetch(url, { method: "POST", headers, body: text, signal: attempt.signal });
      if (!response.ok) throw new ProviderFaultError(await statusFault(response, clock.nowMs()));
      return untilAborted(jsonEvents(response.body ?? malformed()), attempt.signal);
    };
    yield* runCompletion({
      provider: GOOGLE,
      limits,
      clock,
      random,
      signal,
      open,
      translate: () => translateGoogle({ provider: GOOGLE, modelId: request.model, takenCallIds, newCallId: () => newCallId(random) }),
      faultOf,
    });
  }

  return { name: GOOGLE, complete };
}

/** An aborted stream ends without an error, as those of the vendors' clients do: an answer that is whole already is kept. */
async function* untilAborted(events: AsyncIterable<unknown>, signal: AbortSignal): AsyncGenerator<unknown, void, undefined> {
  try {
    yield* events;
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

/** A model's place in the path: `models/` unless the id names a collection itself. A segment never leads elsewhere. */
function pathOf(model: string): string {
  const segments = model.includes("/") ? model.split("/") : ["models", model];
  return segments.map((segment) => encodeURIComponent(/^\.{1,2}$/.test(segment) ? `_${segment}` : segment)).join("/");
}

async function statusFault(response: Response, nowMs: number): Promise<ProviderFault> {
  const error = errorOf(await response.text());
  return {
    kind: "status",
    status: response.status,
    retryAfterMs: parseRetryAfter(response.headers.get("retry-after"), nowMs) ?? error.retryAfterMs,
    retryForbidden: response.headers.get("x-should-retry") === "false",
    requestId: requestIdWord(response.headers.get("x-request-id")),
    reason: error.reason,
  };
}

interface ErrorBody {
  readonly reason?: string | undefined;
  readonly retryAfterMs?: number | undefined;
}

/** The words and the delay in an error's body; a body of any other form says nothing. */
function errorOf(body: string): ErrorBody {
  let error: unknown;
  try {
    error = JSON.parse(body);
  } catch {
    return {};
  }
  const { status, type, details } = recordOf(recordOf(error)["error"]);
  const records = Array.isArray(details) ? details.map(recordOf) : [];
  const detail = records.map((each) => wordOf(each["reason"])).find((word) => word !== undefined);
  const delay = records.map((each) => each["retryDelay"]).find((value) => typeof value === "string");
  const seconds = /^(\d{1,9}(?:\.\d{1,9})?)s$/.exec(delay ?? "")?.[1];
  return { reason: detail ?? wordOf(status) ?? wordOf(type), retryAfterMs: parseRetryAfter(seconds, 0) };
}

function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

function wordOf(value: unknown): string | undefined {
  return typeof value === "string" ? reasonWord(value.toLowerCase()) : undefined;
}

/** The fault behind an error of fetch or of the stream; undefined for one that is not the provider's doing. */
function faultOf(error: unknown): ProviderFault | undefined {
  const own = causesOf(error).find((cause) => cause instanceof ProviderFaultError);
  if (own instanceof ProviderFaultError) return own.fault;
  if (error instanceof SyntaxError) return { kind: "malformed" };
  // This is what fetch throws when it gets no connection, and when a body breaks off.
  const isFetch = error instanceof TypeError && (error.message === "fetch failed" || error.message === "terminated");
  return isFetch ? { kind: "connection", reason: systemCodeOf(error) } : undefined;
}
