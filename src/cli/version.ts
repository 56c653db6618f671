/** The version in package.json, which lies two folders up both in the sources and in what is published. */

import { readFileSync } from "node:fs";
import { join } from "node:path";

export function packageVersion(): string {
  const text = readFileSync(join(import.meta.dirname, "..", "..", "package.json"), "utf8");
  const json: unknown = JSON.parse(text);
  const version = typeof json === "object" && json !== null && "version" in json ? json.version : undefined;
  return typeof version === "string" ? version : "unknown";
}
