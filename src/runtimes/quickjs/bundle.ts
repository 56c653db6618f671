/**
 * A harness's module, with all that it imports, as one script. The bundler is optional: who brings a finished script needs none.
 */

import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { Plugin } from "esbuild";
import { HoldfastError } from "../../base/index.ts";

/** What to bundle. */
export interface BundleOptions {
  /** The module's file. It serves its harness itself, or exports it. */
  readonly file: string;
  /** The export that is the harness, or a function without parameters that makes one. Default `default`; absent is fine where it serves itself. */
  readonly exportName?: string | undefined;
}

/** The harness's end beside this program. */
function wireFile(): string {
  const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
  return fileURLToPath(new URL(`../../harness-wire/harness-end.${extension}`, import.meta.url));
}

/**
 * Bundles a harness for the `quickjs` runtime. Throws FAILED_PRECONDITION where `esbuild` is not installed, INVALID_ARGUMENT where the module
 * cannot be bundled: a Node module, for one, is not there in a sandbox.
 */
export async function bundleHarness({ file: path, exportName = "default" }: BundleOptions): Promise<string> {
  const file = resolve(path);
  const { build } = await bundler();
  try {
    const { outputFiles } = await build({
      stdin: { contents: entryOf(exportName), resolveDir: dirname(file), sourcefile: "holdfast-entry.js", loader: "js" },
      plugins: [entryModules(file)],
      bundle: true,
      write: false,
      format: "iife",
      platform: "neutral",
      mainFields: ["module", "main"],
      conditions: ["import", "default"],
      target: "es2023",
      charset: "utf8",
      legalComments: "none",
      treeShaking: true,
      minifySyntax: true,
      // Comments would name the places of files, and make the same harness another script on another machine.
      minifyWhitespace: true,
      logLevel: "silent",
    });
    return outputFiles[0]!.text;
  } catch (cause) {
    throw new HoldfastError("invalid_argument", `harness: its module cannot be bundled for a sandbox: ${firstError(cause)}`, { cause });
  }
}

/** The names by which the entry imports; nothing else is called so. */
const HARNESS_MODULE = "holdfast:harness-module";
const WIRE_MODULE = "holdfast:harness-end";

/** Serves what the module exports; a module that exports nothing of that name has served it. */
function entryOf(exportName: string): string {
  return `
import * as module from "${HARNESS_MODULE}";
import { HarnessEnd } from "${WIRE_MODULE}";
const exported = module[${JSON.stringify(exportName)}];
const door = globalThis.holdfastDoor;
if (exported !== undefined && door.receive === undefined) {
  const harness = typeof exported === "function" ? exported() : exported;
  const end = new HarnessEnd(harness, { send: (frame) => door.send(frame) });
  door.receive = (frame) => end.receive(frame);
}
`;
}

/** Finds the entry's modules. The harness's is there for what it does, whatever its package says of its side effects. */
function entryModules(file: string): Plugin {
  return {
    name: "holdfast-entry",
    setup: (bundle) => {
      bundle.onResolve({ filter: new RegExp(`^${HARNESS_MODULE}$`) }, () => ({ path: file, sideEffects: true }));
      bundle.onResolve({ filter: new RegExp(`^${WIRE_MODULE}$`) }, () => ({ path: wireFile() }));
    },
  };
}

async function bundler() {
  try {
    return await import("esbuild");
  } catch (cause) {
    const message = "harness: esbuild must be installed to bundle a module (npm install esbuild); or give a finished script";
    throw new HoldfastError("failed_precondition", message, { cause });
  }
}

/** The bundler's first complaint, without the place, which may be a path of this machine. */
function firstError(cause: unknown): string {
  if (typeof cause !== "object" || cause === null || !("errors" in cause) || !Array.isArray(cause.errors)) return "unknown";
  const [first] = cause.errors as readonly { readonly text?: unknown }[];
  return typeof first?.text === "string" ? first.text : "unknown";
}
