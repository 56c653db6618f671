/** One planted violation for every rule that is turned on by name, with lookalikes that must pass. */

/** A file to lint and the rules that must report it: no more, no fewer. */
export interface Plant {
  readonly path: string;
  readonly text: string;
  readonly rules: readonly string[];
}

function plant(path: string, text: string, ...rules: string[]): Plant {
  return { path, text: `${text}\n`, rules };
}

const LONG_FUNCTION = `export function long(n: number): number {\n${"  n += 1;\n".repeat(81)}  return n;\n}`;

const OURS: readonly Plant[] = [
  // Upward, sideways, past a layer, and out of src; in every way in which a file can name another.
  plant("src/canon/up.ts", 'export { x } from "../controller/index.ts";', "holdfast/layers"),
  plant("src/canon/up-all.ts", 'export * from "../journal/index.ts";', "holdfast/layers"),
  plant("src/controller/up-type.ts", 'import type { X } from "../service/index.ts";\nexport type Y = X;', "holdfast/layers"),
  plant(
    "src/controller/up-inline.ts",
    'export type Y = import("../server/index.ts").X;',
    "holdfast/layers",
    "typescript/consistent-type-imports",
  ),
  plant("src/controller/up-late.ts", 'export const x = await import("../server/index.ts");', "holdfast/layers"),
  plant("src/stores/sqlite/sibling.ts", 'export { x } from "../memory/index.ts";', "holdfast/layers"),
  plant("src/harnesses/sibling.ts", 'export { x } from "../models/index.ts";', "holdfast/layers"),
  plant("src/models/past.ts", 'export { x } from "../controller/index.ts";', "holdfast/layers"),
  plant("src/service/adapter.ts", 'export { x } from "../stores/memory/index.ts";', "holdfast/layers"),
  plant("src/client/platform.ts", 'export { x } from "./node/index.ts";', "holdfast/layers"),
  plant("src/cli/past.ts", 'export { x } from "../controller/index.ts";', "holdfast/layers"),
  plant("src/base/out.ts", 'export { projectOf } from "../../lint/table.ts";', "holdfast/layers"),
  plant(
    "src/stores/sqlite/worker.ts",
    'import { Worker } from "node:worker_threads";\nexport const w = new Worker(new URL("../memory/index.ts", import.meta.url));',
    "holdfast/layers",
  ),
  plant("src/journal/down.ts", 'export { x } from "../canon/index.ts";\nexport { y } from "./own.ts";'),
  plant("src/journal/own.ts", "export const y = 1;"),
  plant("src/client/node/core.ts", 'export { x } from "../index.ts";'),
  plant("src/canon/free.test.ts", 'import { x } from "../server/index.ts";\nexport const y = x;'),

  plant("src/journal/files.ts", 'export { existsSync } from "node:fs";', "holdfast/core-imports"),
  plant("src/journal/bare.ts", 'export { existsSync } from "fs";', "holdfast/core-imports", "unicorn/prefer-node-protocol"),
  plant("src/service/package.ts", 'export { Hono } from "hono";', "holdfast/core-imports"),
  plant("src/client/wire.ts", 'export { create } from "@bufbuild/protobuf";\nexport { base64Encode } from "@bufbuild/protobuf/wire";'),
  plant("src/stores/sqlite/files.ts", 'export { existsSync } from "node:fs";'),

  plant("src/journal/now.ts", "export const at = new Date();", "holdfast/core-clock"),
  plant("src/journal/now-text.ts", "export const at: string = Date();", "holdfast/core-clock"),
  plant("src/controller/timer.ts", "export const later = setTimeout;", "holdfast/core-clock", "typescript/no-unsafe-assignment"),
  plant("src/controller/tick.ts", "setImmediate(() => undefined);", "holdfast/core-clock", "typescript/no-unsafe-call"),
  plant("src/controller/global.ts", "globalThis.setInterval(() => undefined, 1);", "holdfast/core-clock", "typescript/no-unsafe-call"),
  plant("src/journal/then.ts", "export const at = new Date(0);"),
  plant("src/controller/own-timer.ts", "export function run(setTimeout: () => void): void {\n  setTimeout();\n}"),
  plant("src/controller/member.ts", "export const f = (clock: { setTimeout: () => void }): void => clock.setTimeout();"),
  plant("src/server/timer.ts", "export const later = setTimeout;"),

  plant("src/base/double.ts", "export const x = 1 as unknown as string;", "holdfast/no-double-assertion"),
  plant("src/base/time-utils.ts", "export const x = 1;", "holdfast/file-name"),
  plant("src/server/helpers.test.ts", "export const x = 1;", "holdfast/file-name"),
  plant("src/server/SessionManager.ts", "export const x = 1;", "holdfast/file-name"),
  plant("src/server/useful.ts", "export const x = 1;"),
];

const TYPES: readonly Plant[] = [
  plant("src/base/ban-comment.ts", "// @ts-ignore: no reason\nexport const x: number = 1;", "typescript/ban-ts-comment"),
  plant("src/base/type-import.ts", 'import { X } from "./type-source.ts";\nexport type Y = X;', "typescript/consistent-type-imports"),
  plant("src/base/type-source.ts", "export type X = number;\nexport const seven = 7;"),
  plant(
    "src/base/side-effects.ts",
    'import { type X } from "./type-source.ts";\nexport type Y = X;',
    "typescript/no-import-type-side-effects",
  ),
  plant(
    "src/base/deprecated.ts",
    "/** @deprecated */\nexport function old(): void {}\nexport const y = (): void => old();",
    "typescript/no-deprecated",
  ),
  plant("src/base/any.ts", "export function f(x: any): string {\n  return typeof x;\n}", "typescript/no-explicit-any"),
  plant(
    "src/base/floating.ts",
    "export async function f(): Promise<void> {}\nexport function g(): void {\n  f();\n}",
    "typescript/no-floating-promises",
  ),
  plant(
    "src/base/misused.ts",
    "export async function f(): Promise<boolean> {\n  return true;\n}\nexport const y = (): number => (f() ? 1 : 2);",
    "typescript/no-misused-promises",
  ),
  plant("src/base/namespace.ts", "export namespace N {\n  export type X = number;\n}", "typescript/no-namespace"),
  plant(
    "src/base/unsafe.ts",
    'const x = JSON.parse("1");\nexport const y = x.z;\nexport const v: number = x();\nexport const w = Math.abs(x);\n' +
      "export const f = (): string => x;",
    "typescript/no-unsafe-argument",
    "typescript/no-unsafe-assignment",
    "typescript/no-unsafe-call",
    "typescript/no-unsafe-member-access",
    "typescript/no-unsafe-return",
  ),
  plant("src/base/function.ts", "export function f(x: Function): string {\n  return typeof x;\n}", "typescript/no-unsafe-function-type"),
  plant("src/base/throw.ts", 'export function f(): never {\n  throw "text";\n}', "typescript/only-throw-error"),
  plant(
    "src/base/return-await.ts",
    "export async function f(g: () => Promise<number>): Promise<number> {\n" +
      "  try {\n    return g();\n  } catch {\n    return 0;\n  }\n}",
    "typescript/return-await",
  ),
  plant(
    "src/base/exhaustive.ts",
    'export function f(x: "a" | "b"): number {\n  switch (x) {\n    case "a":\n      return 1;\n  }\n  return 2;\n}',
    "typescript/switch-exhaustiveness-check",
  ),
  plant(
    "src/base/catch.ts",
    "export const f = (p: Promise<number>): Promise<number> => p.catch((error) => Number(error));",
    "typescript/use-unknown-in-catch-callback-variable",
  ),
];

const CODE: readonly Plant[] = [
  plant("src/base/equal.ts", "export const f = (x: number): boolean => x == 1;", "eslint/eqeqeq"),
  plant("src/base/cycle-a.ts", 'export { b } from "./cycle-b.ts";\nexport const a = 1;', "import/no-cycle"),
  plant("src/base/cycle-b.ts", 'export { a } from "./cycle-a.ts";\nexport const b = 1;', "import/no-cycle"),
  plant(
    "src/base/twice.ts",
    'import { seven } from "./type-source.ts";\nimport { seven as eight } from "./type-source.ts";\nexport const y = seven + eight;',
    "import/no-duplicates",
  ),
  plant("src/base/lines.ts", "export const x = 1;\n".padEnd(500, "\n"), "eslint/max-lines"),
  plant("src/base/long.ts", LONG_FUNCTION, "eslint/max-lines-per-function"),
  plant("src/gateway/console.ts", 'console.log("x");', "eslint/no-console"),
  plant("src/cli/console.ts", 'console.log("x");'),
  plant(
    "src/base/fall.ts",
    "export function f(x: number, log: string[]): void {\n" +
      '  switch (x) {\n    case 1:\n      log.push("a");\n    default:\n      log.push("b");\n  }\n}',
    "eslint/no-fallthrough",
  ),
  plant("src/base/var.ts", "export var x = 1;", "eslint/no-var"),
  plant("src/base/later.ts", "// xxx: later\nexport const x = 1;", "eslint/no-warning-comments"),
  plant("src/base/const.ts", "let x = 1;\nexport const y = (): number => x;", "eslint/prefer-const"),
  plant("src/base/throw-new.ts", 'export function f(): never {\n  throw Error("x");\n}', "unicorn/throw-new-error"),
  plant("src/base/clock.ts", "export const at = Date.now();", "eslint/no-restricted-properties"),
  plant("src/server/random.ts", "export const r = Math.random();", "eslint/no-restricted-properties"),
  plant("src/server/span.ts", "export const at = performance.now();", "eslint/no-restricted-properties"),
  plant("src/server/id.ts", "export const id = crypto.randomUUID();", "eslint/no-restricted-properties"),
  plant("src/server/id-import.ts", 'export { randomUUID } from "node:crypto";', "eslint/no-restricted-imports"),
  plant("src/node/clock.ts", "export const at = Date.now();"),
  plant(
    "src/base/expects.test.ts",
    'import { expect, it } from "vitest";\nit("does", () => {\n  expect(1, "why", 2).toBe(1);\n});',
    "vitest/valid-expect",
  ),
  plant("src/base/disable.ts", "// oxlint-disable-next-line no-var\nexport const x = 1;", "unused-directive"),
];

export const PLANTS: readonly Plant[] = [...OURS, ...TYPES, ...CODE];
