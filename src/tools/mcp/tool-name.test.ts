import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { hostToolName, isServerName } from "./tool-name.ts";

describe("the name of a server's tool", () => {
  it("is the server's and the tool's, where every provider takes that", () => {
    expect(hostToolName("files", "read-text_file")).toBe("files__read-text_file");
    expect(hostToolName("s".repeat(32), "t".repeat(30))).toHaveLength(64);
  });

  it("is made of what is good of it and a fingerprint, where not", () => {
    expect(hostToolName("s", "a.b")).toMatch(/^s__a_b_[0-9a-f]{8}$/);
    expect(hostToolName("s", "a/b")).not.toBe(hostToolName("s", "a.b"));
    expect(hostToolName("s", "x".repeat(100))).toMatch(/^s__x{52}_[0-9a-f]{8}$/);
  });

  it("is one that providers take, of one server, and different for different tools", () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1, unit: "grapheme" }), fc.string({ minLength: 1 }), (one, other) => {
        const names = [one, other].map((tool) => hostToolName("a_b", tool));
        expect(names.every((name) => /^a_b__[A-Za-z0-9_-]{1,59}$/.test(name))).toBe(true);
        expect(names[0] === names[1]).toBe(one === other);
      }),
    );
  });

  it("ends its server's part at the first double underscore", () => {
    for (const name of ["a", "a-b_c", "-", "7", "a".repeat(32)]) expect(isServerName(name)).toBe(true);
    for (const name of ["", "_", "a_", "_a", "a__b", "a.b", "ü", "a".repeat(33)]) expect(isServerName(name)).toBe(false);
  });
});
