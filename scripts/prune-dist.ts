/** Before packing: takes out of dist/ what was built from sources that are gone. The compiler leaves such files where they are. */

import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "./run.ts";

/** Removes the outputs under `dist` that no source under `src` makes any more, and returns their paths. */
export function pruneOutputs(dist: string, src: string): string[] {
  if (!existsSync(dist)) return [];
  const outputs = readdirSync(dist, { recursive: true, encoding: "utf8" }).filter((file) => !file.startsWith(".build"));
  const orphans = outputs.filter((file) => {
    const stem = /^(.*?)(?:\.js|\.js\.map|\.d\.ts)$/.exec(file)?.[1];
    return stem !== undefined && !existsSync(join(src, `${stem}.ts`));
  });
  for (const file of orphans) rmSync(join(dist, file));
  return orphans.toSorted();
}

if (import.meta.main) {
  for (const file of pruneOutputs(join(ROOT, "dist"), join(ROOT, "src"))) console.error(`dist/${file}: its source is gone; removed`);
}
