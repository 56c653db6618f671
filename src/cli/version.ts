/** The package that this command is of. Its folder lies two folders up both in the sources and in what is published. */

import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const ROOT = resolve(import.meta.dirname, "..", "..");

export function packageVersion(): string {
  const text = readFileSync(join(ROOT, "package.json"), "utf8");
  const json: unknown = JSON.parse(text);
  const version = typeof json === "object" && json !== null && "version" in json ? json.version : undefined;
  return typeof version === "string" ? version : "unknown";
}

/** What a project depends on to get this very copy: the package is on no registry. */
export function packageDependency(): string {
  return `file:${ROOT}`;
}

/** What `pip` installs the Python package from: its folder in a source tree. Where there is none it has but its name. */
export function pythonRequirement(): string {
  const folder = join(ROOT, "sdks", "python");
  return existsSync(folder) ? `holdfast-harness @ ${pathToFileURL(folder).href}` : "holdfast-harness";
}
