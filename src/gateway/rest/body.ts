/** Reading a request body: its media type, its size and its text, each refused before anything is done with it. */

import { HoldfastError, invalidArgument } from "../../base/errors.ts";
import type { Arrivals } from "../arrivals.ts";
import type { RestLimits } from "./limits.ts";
import { HttpRefusal } from "./problem.ts";

/** What a body may be, and what it shares with the others that are arriving. */
export interface BodyOptions {
  readonly limits: Pick<RestLimits, "requestBytesMax" | "requestPartsMax">;
  readonly arrivals: Arrivals;
}

/**
 * The body as text; "" where there is none, which stands for an empty message. Throws 415 for anything but UTF-8 JSON without
 * a content coding, 413 for too many bytes or parts, 429 when it must make room for others, 400 for what is not UTF-8.
 */
export async function readJsonText(request: Request, { limits, arrivals }: BodyOptions): Promise<string> {
  const bytesMax = limits.requestBytesMax;
  if (Number(request.headers.get("content-length") ?? "0") > bytesMax) throw tooLarge(bytesMax);
  const mediaType = request.headers.get("content-type");
  if (mediaType !== null) refuseOtherMediaTypes(mediaType);
  refuseCodings(request.headers.get("content-encoding"));
  const bytes = await readBytes(request, bytesMax, arrivals);
  if (bytes.length > 0 && mediaType === null) refuseOtherMediaTypes("");
  if (!hasPartsAtMost(bytes, limits.requestPartsMax)) {
    const message = `body: must have at most ${limits.requestPartsMax} values, keys, objects and lists, nested ones included`;
    throw new HttpRefusal(413, "resource_exhausted", message, { field: "body" });
  }
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    throw invalidArgument("body", "must be UTF-8", { cause: error });
  }
}

async function readBytes(request: Request, bytesMax: number, arrivals: Arrivals): Promise<Uint8Array> {
  if (request.body === null) return new Uint8Array(0);
  const chunks: Uint8Array[] = [];
  let length = 0;
  const reader: ReadableStreamDefaultReader<Uint8Array> = request.body.getReader();
  const refused = Promise.withResolvers<never>();
  refused.promise.catch(() => undefined);
  const arrival = arrivals.begin(refused.reject);
  try {
    for (;;) {
      const { done, value } = await Promise.race([reader.read().catch(clientGone), refused.promise]);
      if (done) return Buffer.concat(chunks, length);
      length += value.length;
      if (length > bytesMax) throw tooLarge(bytesMax);
      chunks.push(value);
      arrival.add(value.length);
    }
  } finally {
    arrival.end();
    reader.cancel().catch(() => undefined);
  }
}

function clientGone(error: unknown): never {
  throw new HoldfastError("cancelled", "body: the client went away before it was sent", { cause: error });
}

/**
 * Counts the punctuation of JSON that makes a part: `,` `:` `[` `{` outside of texts. An empty object takes three bytes and becomes a
 * message of a hundred, so bytes alone are no measure of the work. What is no JSON is counted somehow; the parser refuses it.
 */
function hasPartsAtMost(json: Uint8Array, partsMax: number): boolean {
  let parts = 0;
  let inText = false;
  for (let at = 0; at < json.length; at++) {
    const byte = json[at];
    if (byte === QUOTE) inText = !inText;
    else if (inText && byte === BACKSLASH) at++;
    else if (!inText && (byte === COMMA || byte === COLON || byte === BRACKET || byte === BRACE) && ++parts > partsMax) return false;
  }
  return true;
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const BRACE = 0x7b;

function refuseOtherMediaTypes(header: string): void {
  const [type = "", ...parameters] = header.split(";").map((part) => part.trim().toLowerCase());
  const charset = parameters
    .find((parameter) => parameter.startsWith("charset="))
    ?.slice("charset=".length)
    .replaceAll('"', "");
  if (type === "application/json" && (charset === undefined || charset === "utf-8")) return;
  throw new HttpRefusal(415, "invalid_argument", "Content-Type: must be application/json", {
    field: "Content-Type",
    headers: { "accept-post": "application/json" },
  });
}

function refuseCodings(header: string | null): void {
  if (header === null || header === "" || header.toLowerCase() === "identity") return;
  throw new HttpRefusal(415, "invalid_argument", "Content-Encoding: must be absent; bodies are read as they are", {
    field: "Content-Encoding",
    headers: { "accept-encoding": "identity" },
  });
}

function tooLarge(bytesMax: number): HoldfastError {
  return new HttpRefusal(413, "resource_exhausted", `body: must have at most ${bytesMax} bytes`, { field: "body" });
}
