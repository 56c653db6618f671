import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ROOT, run, type Outcome } from "../scripts/run.ts";

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "holdfast-bin-"));
  mkdirSync(join(folder, "bin"));
  mkdirSync(join(folder, "dist/cli"), { recursive: true });
  cpSync(join(ROOT, "bin/holdfast.mjs"), join(folder, "bin/holdfast.mjs"));
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }\n');
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** What the bin does before a program with this text. */
function runBefore(program: string): Promise<Outcome> {
  writeFileSync(join(folder, "dist/cli/main.js"), program);
  return run(["node", join(folder, "bin/holdfast.mjs"), "list", "--json"]);
}

describe("the bin", () => {
  it("starts the program with its arguments and leaves the exit code to it", async () => {
    expect(await runBefore("console.log(process.argv.slice(2).join(' ')); process.exitCode = 4;")).toMatchObject({
      exitCode: 4,
      output: "list --json\n",
    });
  });

  it("leaves out the one line that an older Node prints about its SQLite, and no other warning", async () => {
    const { output } = await runBefore(
      'process.emitWarning("SQLite is an experimental feature and might change at any time", "ExperimentalWarning");' +
        'process.emitWarning("Another thing is experimental", "ExperimentalWarning");' +
        'process.emitWarning("SQLite is old", { type: "DeprecationWarning", code: "DEP1" });',
    );
    expect(output).not.toContain("SQLite is an experimental feature");
    expect(output).toContain("ExperimentalWarning: Another thing is experimental");
    expect(output).toContain("[DEP1] DeprecationWarning: SQLite is old");
  });

  it("leaves out Node's remark about the server name of a TLS connection, and no other deprecation", async () => {
    const { output } = await runBefore(
      'process.emitWarning("Setting the TLS ServerName to an IP address is not permitted", "DeprecationWarning", "DEP0123");' +
        'process.emitWarning("Another thing is deprecated", "DeprecationWarning", "DEP0124");',
    );
    expect(output).not.toContain("ServerName");
    expect(output).toContain("[DEP0124] DeprecationWarning: Another thing is deprecated");
  });

  it.each([
    ["a program that fails", 'throw new Error("of its own");', "of its own"],
    ["a program that lacks a package", 'await import("no-such-package");', "no-such-package"],
    ["a program that lacks a file", 'await import("./gone.js");', "gone.js"],
  ])("lets the error of %s be seen", async (_what, program, text) => {
    const { exitCode, output } = await runBefore(program);
    expect(exitCode).toBe(1);
    expect(output).toContain(text);
    expect(output).not.toContain("[not-built]");
  });

  it("says how to get a program that has not been built", async () => {
    expect(await run(["node", join(folder, "bin/holdfast.mjs")])).toMatchObject({
      exitCode: 1,
      output: "holdfast: the program has not been built; run `npm ci` in its folder first [not-built]\n",
    });
  });
});
