/**
 * The folder that the tools act in.
 *
 * Invariants:
 * - A path leads into the folder, symbolic links followed, or it is refused.
 * - Whether something is guarded is asked of where a path leads, not of how it is written.
 */

import { realpathSync } from "node:fs";
import { realpath } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { Refusal } from "./local-tool.ts";

/** A place in the folder. */
export interface Place {
  /** Where it is, links followed. */
  readonly path: string;
  /** How it is called in the folder, with slashes; "." for the folder itself. */
  readonly name: string;
  /** Whether it holds a repository's history, the chat's own data or, by its name, secrets. */
  readonly isGuarded: boolean;
}

/** Folders that nothing looks into by itself. */
const CLOSED_FOLDERS = new Set([".git", ".hg", ".svn", ".holdfast", ".ssh", ".gnupg", ".aws", ".kube", ".docker"]);
const SECRET_NAMES =
  /^(\.env(\..*)?|\.netrc|\.npmrc|\.pypirc|\.pgpass|\.htpasswd|id_(rsa|dsa|ecdsa|ed25519).*|.*\.(pem|key|p12|pfx|jks|keystore|kdbx)|credentials(\..*)?|secrets?(\..*)?)$/;
/** Files that only look like secrets. */
const HARMLESS_NAMES = /^(\.env\.(example|sample|template)|.*\.pub)$/;

export class Workspace {
  readonly root: string;

  constructor(folder: string) {
    this.root = realpathSync(folder);
  }

  /** The place that a path of a call's arguments names. Throws a Refusal for one that leads out of the folder. */
  async place(path: string): Promise<Place> {
    if (path === "" || path.includes("\0")) throw new Refusal("path: must name a file or a folder");
    const written = isAbsolute(path) ? resolve(path) : resolve(this.root, path);
    const real = await realOf(written);
    if (real !== this.root && !real.startsWith(this.root + sep))
      throw new Refusal("path: it leads out of the folder, where nothing is touched");
    const name = relative(this.root, real).replaceAll(sep, "/") || ".";
    return { path: real, name, isGuarded: isGuarded(name) };
  }
}

/** Whether a name in the folder is one that nothing is read from without asking. */
export function isGuarded(name: string): boolean {
  const parts = name.toLowerCase().split("/");
  if (parts.some((part) => CLOSED_FOLDERS.has(part))) return true;
  const last = parts.at(-1) ?? "";
  return SECRET_NAMES.test(last) && !HARMLESS_NAMES.test(last);
}

/** `path` with its links followed; of what is not there yet, the part that is. */
async function realOf(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch (error) {
    const isMissing = error instanceof Error && "code" in error && error.code === "ENOENT";
    if (!isMissing || dirname(path) === path) throw error;
    return join(await realOf(dirname(path)), basename(path));
  }
}
