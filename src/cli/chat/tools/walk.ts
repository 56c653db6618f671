/** Walking through the folder, bounded. */

import type { Dirent } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { isGuarded, type Place } from "./workspace.ts";

/** Folders that are shown and not looked into unless they are named. */
const LEFT_OUT = new Set(["node_modules", ".venv", "__pycache__", "dist", "target"]);

/** Folders that are not shown: what a server that runs in the chat's own process keeps here is no part of anybody's work. */
const HIDDEN = new Set([".holdfast"]);

/** Something in the folder. */
export interface Entry {
  readonly kind: "file" | "folder" | "link" | "other";
  readonly path: string;
  readonly name: string;
  /** How deep under the place where the walk began; 1 for what is in it. */
  readonly depth: number;
}

/** What is under a place, folders before what is in them, by name. Links are not followed; guarded and left-out folders are not entered, hidden ones not shown. */
export async function* walk(
  place: Pick<Place, "path" | "name">,
  depthMax: number,
  signal: AbortSignal,
  depth = 1,
): AsyncGenerator<Entry, void, undefined> {
  signal.throwIfAborted();
  const found = await readdir(place.path, { withFileTypes: true });
  for (const item of found.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    if (HIDDEN.has(item.name)) continue;
    const name = place.name === "." ? item.name : `${place.name}/${item.name}`;
    const entry: Entry = { kind: kindOf(item), path: join(place.path, item.name), name, depth };
    yield entry;
    const isEntered = entry.kind === "folder" && depth < depthMax && !LEFT_OUT.has(item.name) && !isGuarded(name);
    if (isEntered) yield* walk(entry, depthMax, signal, depth + 1);
  }
}

function kindOf(item: Dirent): Entry["kind"] {
  if (item.isFile()) return "file";
  if (item.isDirectory()) return "folder";
  return item.isSymbolicLink() ? "link" : "other";
}
