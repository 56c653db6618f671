/** A program of this folder in one file, as a harness is shipped: it starts in a tenth of the time. */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { TemporaryFolder } from "../temporary-folder.ts";

/** A file that Node runs, until it is disposed of. */
export interface BundledProgram extends Disposable {
  readonly file: string;
  /** The folder that holds nothing else. */
  readonly folder: string;
}

/** Bundles the program `name`. */
export async function bundleProgram(name: string): Promise<BundledProgram> {
  const folder = new TemporaryFolder("disk");
  const file = join(folder.path, "harness.mjs");
  // Packages of CommonJS ask for Node's own modules by `require`.
  const banner = `import { createRequire } from "node:module"; const require = createRequire(import.meta.url);`;
  await build({
    entryPoints: [fileURLToPath(new URL(name, import.meta.url))],
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node22",
    banner: { js: banner },
    outfile: file,
    logLevel: "error",
  });
  return { file, folder: folder.path, [Symbol.dispose]: () => folder[Symbol.dispose]() };
}
