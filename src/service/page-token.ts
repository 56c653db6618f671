/**
 * The tokens of pages. Pure but for the digest.
 *
 * A token is opaque to callers: the position after which the next page begins and what it belongs to, with a checksum, so that a
 * token which was cut, mixed up or made up is refused instead of listing from somewhere.
 */

import { invalidArgument } from "../base/errors.ts";
import type { Digest } from "../base/ports.ts";

/** The field of a request that has one. */
export const PAGE_TOKEN_FIELD = "page_token";
const CHECKSUM_CHARS = 16;
/** More than any token that was ever given out. */
const TOKEN_CHARS_MAX = 4_096;

/** A token that holds `content`. */
export function sealPageToken(content: readonly (string | number | boolean)[], digest: Digest): string {
  const body = toBase64Url(JSON.stringify(content));
  return `${body}.${checksum(body, digest)}`;
}

/** The content of a token, a list of any values. Throws INVALID_ARGUMENT for one that was not given out. */
export function openPageToken(token: string, digest: Digest): readonly unknown[] {
  const [body = "", sum = "", ...rest] = token.length > TOKEN_CHARS_MAX ? [] : token.split(".");
  if (rest.length > 0 || body === "" || checksum(body, digest) !== sum) throw unreadableToken();
  const content = readBody(body);
  if (content === undefined) throw unreadableToken();
  return content;
}

function readBody(body: string): readonly unknown[] | undefined {
  try {
    const content: unknown = JSON.parse(fromBase64Url(body));
    return Array.isArray(content) ? content : undefined;
  } catch {
    return undefined;
  }
}

/** INVALID_ARGUMENT for a token that was not given out. */
export function unreadableToken(): Error {
  return invalidArgument(
    PAGE_TOKEN_FIELD,
    "cannot be read; it must be the next_page_token of an earlier answer, or empty for the first page",
  );
}

function checksum(body: string, digest: Digest): string {
  return digest.sha256Hex(`holdfast page ${body}`).slice(0, CHECKSUM_CHARS);
}

function toBase64Url(text: string): string {
  let binary = "";
  for (const byte of new TextEncoder().encode(text)) binary += String.fromCharCode(byte);
  return btoa(binary).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

function fromBase64Url(body: string): string {
  const binary = atob(body.replaceAll("-", "+").replaceAll("_", "/"));
  return new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(binary, (char) => char.charCodeAt(0)));
}
