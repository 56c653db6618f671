/** Fails when src/gen is not what `npm run gen` makes of proto/ now. Works offline. */

import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT, run } from "./run.ts";

/** How the generated code in `found` differs from `fresh`: one line a file, none when it is current. */
export function differences(fresh: string, found: string): string[] {
  const freshFiles = codeFiles(fresh);
  const foundFiles = codeFiles(found);
  const missing = freshFiles.filter((file) => !foundFiles.includes(file)).map((file) => `${file}: missing`);
  const extra = foundFiles.filter((file) => !freshFiles.includes(file)).map((file) => `${file}: no proto file makes it`);
  const stale = freshFiles
    .filter((file) => foundFiles.includes(file))
    .filter((file) => !readFileSync(join(fresh, file)).equals(readFileSync(join(found, file))))
    .map((file) => `${file}: not current`);
  return [...missing, ...extra, ...stale].toSorted();
}

function codeFiles(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"));
}

async function main(): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-gen-"));
  try {
    const { exitCode, output } = await run(["buf", "generate", "--output", folder]);
    if (exitCode !== 0) {
      console.error(output.trimEnd());
      return 1;
    }
    const found = differences(join(folder, "src/gen"), join(ROOT, "src/gen"));
    for (const line of found) console.error(`src/gen/${line}`);
    if (found.length > 0) console.error("run `npm run gen` and commit what it makes");
    return found.length > 0 ? 1 : 0;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

if (import.meta.main) process.exitCode = await main();
