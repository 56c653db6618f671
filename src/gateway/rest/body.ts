/** Reading a request body: its media type, its size and its text, each refused before anything is done with it. */

import { HoldfastError, invalidArgument } from "../../base/errors.ts";
import { HttpRefusal } from "./problem.ts";

/**
 * The body as text; "" where there is none, which stands for an empty message. Throws 415 for anything but UTF-8 JSON without
 * a content coding, 413 for more than `bytesMax`, 400 for what is not UTF-8.
 */
export async function readJsonText(request: Request, bytesMax: number): Promise<string> {
  if (Number(request.headers.get("content-length") ?? "0") > bytesMax) throw tooLarge(bytesMax);
  const mediaType = request.headers.get("content-type");
  if (mediaType !== null) refuseOtherMediaTypes(mediaType);
  refuseCodings(request.headers.get("content-encoding"));
  const bytes = await readBytes(request, bytesMax);
  if (bytes.length > 0 && mediaType === null) refuseOtherMediaTypes("");
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch (error) {
    throw invalidArgument("body", "must be UTF-8", { cause: error });
  }
}

async function readBytes(request: Request, bytesMax: number): Promise<Uint8Array> {
  if (request.body === null) return new Uint8Array(0);
  const chunks: Uint8Array[] = [];
  let length = 0;
  const reader: ReadableStreamDefaultReader<Uint8Array> = request.body.getReader();
  for (;;) {
    const { done, value } = await reader.read().catch((error: unknown) => {
      throw new HoldfastError("cancelled", "body: the client went away before it was sent", { cause: error });
    });
    if (done) return Buffer.concat(chunks, length);
    length += value.length;
    if (length > bytesMax) {
      await reader.cancel();
      throw tooLarge(bytesMax);
    }
    chunks.push(value);
  }
}

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
