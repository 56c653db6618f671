import { execFileSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { TemporaryFolder } from "../../testing/temporary-folder.ts";
import { holdFolder } from "./folder.ts";

function place(): string {
  const folder = new TemporaryFolder();
  onTestFinished(() => folder[Symbol.dispose]());
  return folder.path;
}

describe("the data folder", () => {
  it("that is made in a repository is ignored by Git", () => {
    const repository = place();
    execFileSync("git", ["init", "--quiet", repository]);
    const status = (): string => execFileSync("git", ["status", "--porcelain"], { cwd: repository, encoding: "utf8" });
    holdFolder(join(repository, ".holdfast"))[Symbol.dispose]();
    writeFileSync(join(repository, ".holdfast", "journal.sqlite"), "a journal");
    expect(status()).toBe("");
    writeFileSync(join(repository, "mine.txt"), "the person's own");
    expect(status()).toBe("?? mine.txt\n");
  });

  it("that was there before is left as it is", () => {
    const folder = join(place(), "data");
    mkdirSync(folder);
    holdFolder(folder)[Symbol.dispose]();
    expect(readdirSync(folder)).toEqual(["journal.lock"]);
  });

  it("keeps what its owner writes into .gitignore", () => {
    const folder = join(place(), "data");
    holdFolder(folder)[Symbol.dispose]();
    writeFileSync(join(folder, ".gitignore"), "*.lock\n");
    holdFolder(folder)[Symbol.dispose]();
    expect(readFileSync(join(folder, ".gitignore"), "utf8")).toBe("*.lock\n");
  });
});
