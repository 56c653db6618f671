import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { pruneOutputs } from "./prune-dist.ts";

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-prune-"));
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

function put(path: string): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true });
  writeFileSync(join(folder, path), "");
}

it("removes what was built from sources that are gone, and nothing else", () => {
  for (const file of ["src/base/ids.ts", "dist/base/ids.js", "dist/base/ids.js.map", "dist/base/ids.d.ts"]) put(file);
  for (const file of ["dist/base/old.js", "dist/base/old.js.map", "dist/base/old.d.ts", "dist/.build/old.d.ts"]) put(file);
  expect(pruneOutputs(join(folder, "dist"), join(folder, "src"))).toEqual(["base/old.d.ts", "base/old.js", "base/old.js.map"]);
  expect(existsSync(join(folder, "dist/base/ids.js"))).toBe(true);
  expect(existsSync(join(folder, "dist/.build/old.d.ts"))).toBe(true);
  expect(existsSync(join(folder, "dist/base/old.js"))).toBe(false);
});

it("has nothing to do without a build", () => {
  expect(pruneOutputs(join(folder, "dist"), join(folder, "src"))).toEqual([]);
});
