/** Files of text, bounded. */

import { readFile, stat } from "node:fs/promises";
import { Refusal } from "./local-tool.ts";

/** A file that is larger is neither read nor searched. */
export const FILE_BYTES_MAX = 4 * 1024 * 1024;

/** The text of a file. Throws a Refusal for what is no file, is too large, or is not text. */
export async function readText(path: string, bytesMax = FILE_BYTES_MAX): Promise<string> {
  // Opening a pipe would wait for whoever writes to it.
  const facts = await stat(path);
  if (facts.isDirectory()) throw new Refusal("it is a folder, not a file");
  if (!facts.isFile()) throw new Refusal("it is neither a file nor a folder");
  if (facts.size > bytesMax) throw new Refusal(`the file has ${facts.size} bytes; at most ${bytesMax} are read`);
  const bytes = await readFile(path);
  const text = textIn(bytes);
  if (text === undefined) throw new Refusal(`the file is not text (${facts.size} bytes)`);
  return text;
}

/** The text in `bytes`, or undefined for what is none. */
export function textIn(bytes: Uint8Array): string | undefined {
  if (bytes.subarray(0, 8_192).includes(0)) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
