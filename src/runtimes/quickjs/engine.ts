/** The QuickJS engine: its WebAssembly, compiled once for all threads, and what a script is pinned by. */

import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import type { Digest } from "../../base/index.ts";
import { keepExports } from "./wasm-exports.ts";

/** A compiled engine. */
export interface Engine {
  readonly wasm: WebAssembly.Module;
  /** SHA-256 of its bytes. */
  readonly sha256: string;
}

/** What the package's own JavaScript calls; the rest is the C interface for extensions. */
const USED_EXPORTS = /^(?:qjs_|wasm_|_initialize$|memory$|__stack_pointer$|__indirect_function_table$)/;

let loaded: Promise<Engine> | undefined;

/** The engine that this program is installed with. */
export function loadEngine(digest: Digest): Promise<Engine> {
  loaded ??= compiled(digest);
  return loaded;
}

async function compiled(digest: Digest): Promise<Engine> {
  const bytes = await readFile(createRequire(import.meta.url).resolve("quickjs-wasi/quickjs.wasm"));
  const used = keepExports(bytes, (name) => USED_EXPORTS.test(name));
  return { wasm: await WebAssembly.compile(used), sha256: digest.sha256Hex(bytes) };
}
