import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { ADAPTERS, PROJECTS, projectOf, SAME_LAYER } from "./table.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const names = Object.keys(PROJECTS).toSorted();

interface Config {
  readonly compilerOptions?: { readonly types?: readonly string[] };
  readonly references: readonly { readonly path: string }[];
}

function configOf(path: string): Config {
  return JSON.parse(readFileSync(join(ROOT, path), "utf8")) as Config;
}

function referencesOf(path: string): string[] {
  return configOf(path)
    .references.map((reference) => posix.join(posix.dirname(path), reference.path).replace(/^src\//, ""))
    .toSorted();
}

describe("the table of layers", () => {
  it("has a row for every project under src, and no other", () => {
    const folders = readdirSync(join(ROOT, "src"), { recursive: true, encoding: "utf8" });
    const found = folders.filter((path) => path.endsWith("tsconfig.json")).map((path) => posix.dirname(path.replaceAll("\\", "/")));
    expect(found.toSorted()).toEqual(names);
  });

  it.each(names)("has the TypeScript references of %s", (name) => {
    const path = `src/${name}/tsconfig.json`;
    expect(existsSync(join(ROOT, path))).toBe(true);
    expect(referencesOf(path)).toEqual([...(PROJECTS[name]?.imports ?? [])].toSorted());
  });

  it.each(names)("says of %s whether it may use Node", (name) => {
    const types = configOf(`src/${name}/tsconfig.json`).compilerOptions?.types ?? [];
    expect(types).toEqual(PROJECTS[name]?.kind === "node" ? ["node"] : []);
  });

  it("covers what the build and the tests refer to", () => {
    expect(referencesOf("tsconfig.build.json")).toEqual(names);
    expect(referencesOf("tsconfig.tests.json")).toEqual(names);
  });

  it("lets imports go down only, save the named ones within a layer", () => {
    const wrong = names.flatMap((from) => {
      const project = PROJECTS[from];
      return (project?.imports ?? [])
        .filter((to) => (PROJECTS[to]?.layer ?? Infinity) >= (project?.layer ?? 0))
        .map((to) => `${from} → ${to}`);
    });
    expect(wrong.toSorted()).toEqual(SAME_LAYER.map(([from, to]) => `${from} → ${to}`).toSorted());
  });

  it("lets a core project import core projects only", () => {
    const wrong = names.filter(
      (name) => PROJECTS[name]?.kind === "core" && PROJECTS[name].imports.some((to) => PROJECTS[to]?.kind !== "core"),
    );
    expect(wrong).toEqual([]);
  });

  it("shows adapters to the server alone", () => {
    const seers = names.filter((name) => PROJECTS[name]?.imports.some((to) => ADAPTERS.includes(to)));
    expect(seers).toEqual(["server"]);
  });

  it("finds the project of a file by its deepest folder", () => {
    expect(projectOf("client/node/dial.ts")).toBe("client/node");
    expect(projectOf("client/session.ts")).toBe("client");
    expect(projectOf("gateway/rest/body.ts")).toBe("gateway");
    expect(projectOf("stores/sqlite/worker/entry.ts")).toBe("stores/sqlite");
    expect(projectOf("platform.d.ts")).toBeUndefined();
    expect(projectOf("elsewhere/file.ts")).toBeUndefined();
  });
});
