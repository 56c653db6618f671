/**
 * What the real providers refuse with 400: the shape rules of a request, as one function a protocol. They are written from
 * the providers' documentation and know nothing of how Holdfast builds a request. What every protocol wants is here.
 */

import { anthropicRefusal } from "./model-rules-anthropic.ts";
import { chatRefusal } from "./model-rules-chat.ts";
import { googleRefusal } from "./model-rules-google.ts";
import { isObject, loneSurrogateIn, type Json } from "./model-rules-json.ts";
import { responsesRefusal } from "./model-rules-responses.ts";

/** The protocols that the model server speaks: chat completions, Responses, Anthropic's messages, Gemini's generateContent. */
export const MODEL_PROTOCOLS = ["openai", "responses", "anthropic", "google"] as const;
export type ModelProtocol = (typeof MODEL_PROTOCOLS)[number];

const RULES: Readonly<Record<ModelProtocol, (body: Json) => string | undefined>> = {
  openai: chatRefusal,
  responses: responsesRefusal,
  anthropic: anthropicRefusal,
  google: googleRefusal,
};

/** The largest body in bytes of its JSON. */
export const BODY_BYTES_MAX: Readonly<Record<ModelProtocol, number>> = {
  openai: 50 * 1024 * 1024,
  responses: 50 * 1024 * 1024,
  anthropic: 32 * 1024 * 1024,
  google: 20 * 1024 * 1024,
};

/** Why a provider would refuse this request for its shape; undefined when it would not. */
export function refusalOf(protocol: ModelProtocol, body: unknown): string | undefined {
  if (!isObject(body)) return "the body is not an object";
  // Google names the model and the stream in its path.
  if (protocol !== "google") {
    if (typeof body["model"] !== "string" || body["model"] === "") return "model: required";
    if (body["stream"] !== true) return "stream: the scripted server only streams";
  }
  const lone = loneSurrogateIn(body, "body");
  if (lone !== undefined) return `${lone}: not well-formed Unicode`;
  if (Buffer.byteLength(JSON.stringify(body)) > BODY_BYTES_MAX[protocol]) return "the body is larger than the provider takes";
  return RULES[protocol](body);
}
