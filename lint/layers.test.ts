import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PLANTS } from "./planted.ts";
import { PROJECTS } from "./table.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
let copy: string;

/** A copy of the tree's configuration, outside the tree, with nothing in it but one empty module per project. */
beforeAll(() => {
  copy = realpathSync(mkdtempSync(join(tmpdir(), "holdfast-layers-")));
  for (const file of [".oxlintrc.json", "package.json", "tsconfig.json", "tsconfig.base.json"]) cpSync(join(ROOT, file), join(copy, file));
  for (const file of ["tsconfig.build.json", "tsconfig.tests.json"]) cpSync(join(ROOT, file), join(copy, file));
  for (const file of ["layers.ts", "table.ts"]) put(`lint/${file}`, readFileSync(join(ROOT, "lint", file), "utf8"));
  put("src/platform.d.ts", readFileSync(join(ROOT, "src/platform.d.ts"), "utf8"));
  for (const name of Object.keys(PROJECTS)) {
    put(`src/${name}/tsconfig.json`, readFileSync(join(ROOT, "src", name, "tsconfig.json"), "utf8"));
    put(`src/${name}/index.ts`, "export const x = 1;\nexport type X = number;\n");
  }
  symlinkSync(join(ROOT, "node_modules"), join(copy, "node_modules"), "junction");
});

afterAll(() => rmSync(copy, { recursive: true, force: true }));

function put(path: string, text: string): void {
  mkdirSync(dirname(join(copy, path)), { recursive: true });
  writeFileSync(join(copy, path), text);
}

interface Report {
  readonly diagnostics: readonly { readonly code?: string; readonly message: string; readonly filename: string }[];
}

/** The rules that reported each file, as `plugin/rule`. */
function lint(): Map<string, Set<string>> {
  const run = spawnSync(join(ROOT, "node_modules/.bin/oxlint"), ["-f", "json"], { cwd: copy, encoding: "utf8" });
  const report = JSON.parse(run.stdout) as Report;
  const found = new Map<string, Set<string>>();
  for (const { code, message, filename } of report.diagnostics) {
    const rule = code === undefined ? message : code.replace("(", "/").replace(")", "");
    const known = found.get(filename) ?? new Set<string>();
    found.set(filename, known.add(/unused .* directive/i.test(message) ? "unused-directive" : rule));
  }
  return found;
}

describe("the lint rules", () => {
  it("report every planted violation and none of its lookalikes", () => {
    for (const { path, text } of PLANTS) put(path, text);
    try {
      const found = lint();
      const seen = Object.fromEntries(PLANTS.map(({ path }) => [path, [...(found.get(path) ?? [])].toSorted()]));
      expect(seen).toEqual(Object.fromEntries(PLANTS.map(({ path, rules }) => [path, [...rules].toSorted()])));
    } finally {
      for (const { path } of PLANTS) rmSync(join(copy, path));
    }
  });

  it("pass over a tree without a violation", () => {
    expect(Object.fromEntries(lint())).toEqual({});
  });

  it("each have a planted violation when they are turned on by name", () => {
    const text = readFileSync(join(ROOT, ".oxlintrc.json"), "utf8").replaceAll(/^\s*\/\/.*$/gm, "");
    const { rules } = JSON.parse(text) as { readonly rules: Readonly<Record<string, unknown>> };
    const on = Object.keys(rules).filter((rule) => rules[rule] !== "off");
    const planted = new Set(PLANTS.flatMap((plant) => plant.rules));
    expect(on.filter((rule) => !planted.has(rule.includes("/") ? rule : `eslint/${rule}`))).toEqual([]);
  });
});

describe("the compiler", () => {
  /** What `tsc -b` says of one project with one more file in it. */
  function build(project: string, text: string): string {
    put(`src/${project}/planted.ts`, text);
    try {
      execFileSync(join(ROOT, "node_modules/.bin/tsc"), ["-b", `src/${project}`, "--pretty", "false"], { cwd: copy });
      return "";
    } catch (error) {
      return String((error as { readonly stdout?: unknown }).stdout);
    } finally {
      rmSync(join(copy, `src/${project}/planted.ts`));
    }
  }

  it("builds a project whose imports go down", () => {
    expect(build("journal", 'export { x } from "../canon/index.ts";\n')).toBe("");
  });

  it.each([
    ["upward", "canon", "../controller/index.ts"],
    ["upward, by a layer", "controller", "../service/index.ts"],
    ["to a sibling adapter", "stores/memory", "../sqlite/index.ts"],
    ["from an adapter to the controller", "models", "../controller/index.ts"],
    ["from the service to an adapter", "service", "../stores/memory/index.ts"],
  ])("refuses an import that goes %s", (_what, project, specifier) => {
    expect(build(project, `export { x } from "${specifier}";\n`)).toContain("TS6307");
  });

  it.each(["journal", "controller", "service", "client", "stores/memory"])("knows no Node in %s", (project) => {
    expect(build(project, 'export { existsSync } from "node:fs";\n')).toMatch(/TS2307|TS2591/);
    expect(build(project, "export const at = setTimeout;\n")).toMatch(/TS2304|TS2552/);
  });
});
