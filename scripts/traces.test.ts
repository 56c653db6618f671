import { describe, expect, it } from "vitest";
import { tracesIn } from "./traces.ts";

describe("traces of a machine", () => {
  it.each([
    ["a working folder", ["see /wo", "rk/main/src"]],
    ["an administrator's folder", ['"/ro', 'ot/.config"']],
    ["a home folder", ["cd /ho", "me/ada/project"]],
    ["a home folder on a Mac", ["cd /Us", "ers/ada"]],
    ["a download address in a lock file", ['"resol', 'ved": "https://example.com/x.tgz"']],
    ["a registry's host", ["https://registry", ".npmjs", ".org/x"]],
    ["another registry's host", ["registry.", "example.com/npm"]],
    ["a registry's host for Python", ["https://pypi", ".org/simple"]],
  ])("are found: %s", (_what, pieces) => {
    expect(tracesIn("a.md", `first\n${pieces.join("")}\n`)).toEqual([expect.stringMatching(/^a\.md:2: /)]);
  });

  it.each([
    "./work/file and net/work/x",
    "src/root/index.ts",
    "$HOME/home/x",
    "https://example.com/home/page",
    "`file://` addresses",
    "a registry.",
    "HarnessRegistry.register",
  ])("are not seen in %s", (line) => {
    expect(tracesIn("a.md", line)).toEqual([]);
  });
});
