/** The package that this command is of. Its folder lies two folders up both in the sources and in what is published. */

import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const ROOT = resolve(import.meta.dirname, "..", "..");

export function packageVersion(): string {
  const version = field(fileJson(join(ROOT, "package.json")), "version");
  return typeof version === "string" ? version : "unknown";
}

/**
 * What a project depends on to get this very copy, since the package is on no registry: the source tree, or the packed file that it was
 * installed from. Its version where that cannot be told.
 */
export function packageDependency(): string {
  if (existsSync(join(ROOT, "tsconfig.build.json"))) return `file:${ROOT}`;
  // What npm keeps of an installation beside the packages; paths are those of the folder that has them.
  const lock = join(ROOT, "..", ".package-lock.json");
  const packages = existsSync(lock) ? field(fileJson(lock), "packages") : undefined;
  const from = field(field(packages, "node_modules/holdfast"), "resolved");
  if (typeof from !== "string" || !from.startsWith("file:")) return `^${packageVersion()}`;
  return `file:${resolve(ROOT, "..", "..", from.slice("file:".length))}`;
}

function fileJson(path: string): unknown {
  return JSON.parse(readFileSync(path, "utf8"));
}

function field(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? Object.getOwnPropertyDescriptor(value, name)?.value : undefined;
}

/** What `pip` installs the Python package from: its folder in a source tree. Where there is none it has but its name. */
export function pythonRequirement(): string {
  const folder = join(ROOT, "sdks", "python");
  return existsSync(folder) ? `holdfast-harness @ ${pathToFileURL(folder).href}` : "holdfast-harness";
}
