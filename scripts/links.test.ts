import { describe, expect, it } from "vitest";
import { anchorsOf, brokenLinks, linksOf } from "./links.ts";

const TREE = new Map([
  [
    "README.md",
    "# Top\n[guide](docs/guide.md) [part](docs/guide.md#the-second-part) [folder](docs) [self](#top) [out](https://example.com/x)\n",
  ],
  ["docs/guide.md", "# Guide\n## The `second` part\n## Why?\n## Why?\n[back](../README.md)\n[source](../src/base/ids.ts)\n"],
  ["src/base/ids.ts", "export {};\n"],
]);

function broken(text: string): string[] {
  const tree = new Map([...TREE, ["docs/page.md", text]]);
  return brokenLinks("docs/page.md", new Set(tree.keys()), (file) => tree.get(file) ?? "");
}

describe("links in Markdown", () => {
  it("are followed to files, folders and headings", () => {
    expect(brokenLinks("README.md", new Set(TREE.keys()), (file) => TREE.get(file) ?? "")).toEqual([]);
    expect(brokenLinks("docs/guide.md", new Set(TREE.keys()), (file) => TREE.get(file) ?? "")).toEqual([]);
  });

  it.each([
    ["a missing file", "[x](missing.md)"],
    ["a missing heading", "[x](guide.md#the-third-part)"],
    ["a missing heading of its own", "# Page\n[x](#pages)"],
    ["a place outside", "[x](../../elsewhere.md)"],
    ["a missing picture", "![x](picture.png)"],
    ["a missing reference", "[x]: missing.md"],
    ["a missing page in HTML", '<a href="missing.md">x</a>'],
  ])("that lead to %s are reported", (_what, text) => {
    expect(broken(text)).toHaveLength(1);
  });

  it("in code are no links", () => {
    expect(linksOf("`[x](missing.md)`\n```\n[x](missing.md)\n```\n[y](z.md)")).toEqual([{ line: 5, target: "z.md" }]);
  });

  it("name headings as forges do", () => {
    expect([...anchorsOf(TREE.get("docs/guide.md") ?? "")]).toEqual(["guide", "the-second-part", "why", "why-1"]);
  });
});
