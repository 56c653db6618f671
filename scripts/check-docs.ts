/** Fails when a link in a Markdown file leads nowhere, or a tracked file holds a path of a machine or a registry's host. */

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { brokenLinks } from "./links.ts";
import { ROOT, run } from "./run.ts";
import { tracesIn } from "./traces.ts";

/** The repository's files: what git tracks and what it would track. */
async function repositoryFiles(): Promise<string[]> {
  const { exitCode, output } = await run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]);
  if (exitCode !== 0) throw new Error(`git ls-files failed: ${output}`);
  return output.split("\0").filter((file) => file !== "" && existsSync(join(ROOT, file)));
}

function isText(bytes: Buffer): boolean {
  return !bytes.subarray(0, 8_000).includes(0);
}

async function main(): Promise<number> {
  const files = await repositoryFiles();
  const known = new Set(files);
  const read = (file: string): string => readFileSync(join(ROOT, file), "utf8");
  const links = files.filter((file) => file.endsWith(".md")).flatMap((file) => brokenLinks(file, known, read));
  const traces = files.flatMap((file) => {
    const bytes = readFileSync(join(ROOT, file));
    return isText(bytes) ? tracesIn(file, bytes.toString()) : [];
  });
  for (const line of [...links, ...traces]) console.error(line);
  console.log(`${files.length} files looked at`);
  return links.length + traces.length > 0 ? 1 : 0;
}

process.exitCode = await main();
