/**
 * What a confined program must not see although it lies in a folder that it sees: the host's own data and secrets.
 *
 * Invariant: a path is hidden wherever it would be seen, whatever it is called there. Links are followed, and a folder that is seen
 * under another name hides under that name.
 */

import { realpathSync, statSync } from "node:fs";

/** A path of the host, and where the program sees it. */
export interface Bind {
  readonly source: string;
  readonly destination: string;
}

/** A path of the program's that is to be empty. */
export interface Mask {
  readonly kind: "folder" | "file";
  readonly path: string;
}

/** What is to be laid over `binds`, so that nothing of `hidden` is seen. What does not exist needs nothing. */
export function masksOf(hidden: readonly string[], binds: readonly Bind[]): readonly Mask[] {
  const real = binds.flatMap(({ source, destination }) => {
    const path = realPath(source);
    return path === undefined ? [] : [{ source: path, destination }];
  });
  const masks = new Map<string, Mask>();
  for (const path of hidden.map(realPath)) {
    if (path === undefined) continue;
    const kind = statSync(path).isDirectory() ? "folder" : "file";
    for (const bind of real) {
      if (isWithin(path, bind.source)) {
        const seen = bind.destination + path.slice(bind.source.length);
        masks.set(seen, { kind, path: seen });
      } else if (kind === "folder" && isWithin(bind.source, path)) {
        masks.set(bind.destination, { kind: statSync(bind.source).isDirectory() ? "folder" : "file", path: bind.destination });
      }
    }
  }
  const all = [...masks.values()];
  // Within a folder that is empty there is nothing left to hide.
  return all.filter(({ path }) => !all.some((other) => other.kind === "folder" && other.path !== path && isWithin(path, other.path)));
}

/** Whether a path is one of `hidden` or lies within it. */
export function isHidden(path: string, hidden: readonly string[]): boolean {
  const real = realPath(path);
  return real !== undefined && hidden.some((each) => isWithin(real, realPath(each) ?? each));
}

/** Whether `path` is `folder` or lies within it. */
function isWithin(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith("/") ? folder : `${folder}/`);
}

function realPath(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}
