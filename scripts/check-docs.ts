/**
 * Fails when a link in a Markdown file leads nowhere, when it names an npm script that there is not, or when a tracked file holds
 * a path of a machine or a registry's host.
 */

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { brokenLinks } from "./links.ts";
import { unknownScripts } from "./named-scripts.ts";
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
  const pages = files.filter((file) => file.endsWith(".md"));
  const links = pages.flatMap((file) => brokenLinks(file, known, read));
  const manifest = JSON.parse(read("package.json")) as { readonly scripts: Readonly<Record<string, string>> };
  const scripts = new Set(Object.keys(manifest.scripts));
  const unknown = pages.flatMap((file) => unknownScripts(file, read(file), scripts));
  const traces = files.flatMap((file) => {
    const bytes = readFileSync(join(ROOT, file));
    return isText(bytes) ? tracesIn(file, bytes.toString()) : [];
  });
  for (const line of [...links, ...unknown, ...traces]) console.error(line);
  console.log(`${files.length} files looked at`);
  return links.length + unknown.length + traces.length > 0 ? 1 : 0;
}

process.exitCode = await main();
