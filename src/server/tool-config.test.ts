import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { HoldfastError } from "../base/index.ts";
import { toolsConfig, type ToolsConfig } from "./tool-config.ts";

function parse(servers: unknown, env: Record<string, string> = {}, folder = "/conf"): ToolsConfig {
  return toolsConfig({ at: "tools", value: { servers } }, { folder, env });
}

function refusal(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error;
    expect(error.code).toBe("invalid_argument");
    return error.message;
  }
  return "";
}

describe("the tools of a config file", () => {
  it("are none where nothing is said", () => {
    expect(toolsConfig(undefined, { folder: "/", env: {} })).toEqual({ servers: {} });
    expect(toolsConfig({ at: "tools", value: {} }, { folder: "/", env: {} })).toEqual({ servers: {} });
  });

  it("are servers in child processes and over HTTP, in the file's order", () => {
    const folder = mkdtempSync(join(tmpdir(), "holdfast-tools-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    writeFileSync(join(folder, "key"), "from a file\n");
    const { servers } = parse(
      {
        web: {
          url: "https://tools.example/mcp",
          headers: { Authorization: { env: "WEB_AUTH" }, "x-api-key": { file: "key" }, "x-team": "blue" },
          trustHints: true,
          allow: ["search"],
        },
        files: {
          command: ["node", "files.js", ""],
          cwd: "sub",
          env: { LANG: "C", KEY: { file: "key" } },
          timeoutMs: 1_000,
          outputBytesMax: 2_000,
          idempotent: ["read"],
        },
      },
      { WEB_AUTH: "Bearer w" },
      folder,
    );
    expect(Object.keys(servers)).toEqual(["web", "files"]);
    expect(servers["web"]).toMatchObject({
      reach: {
        kind: "http",
        url: "https://tools.example/mcp",
        headers: { Authorization: "Bearer w", "x-api-key": "from a file", "x-team": "blue" },
      },
      trustHints: true,
      allow: ["search"],
    });
    expect(servers["files"]).toMatchObject({
      reach: { kind: "stdio", command: ["node", "files.js", ""], cwd: join(folder, "sub"), env: { LANG: "C", KEY: "from a file" } },
      timeoutMs: 1_000,
      outputBytesMax: 2_000,
      idempotent: ["read"],
    });
  });

  it.each([
    [{ "a.b": {} }, /^tools\.servers\."a\.b": must have a name of/],
    [{ a__b: {} }, /^tools\.servers\.a__b: must have a name of/],
    [{ "7": {} }, /^tools\.servers\.7: must have a name of/],
    [JSON.parse('{"__proto__": {}}'), /^tools\.servers\.__proto__: must have a name of/],
    [{ a: {} }, /^tools\.servers\.a: must have one of the keys command and url$/],
    [{ a: { command: ["x"], url: "http://x" } }, /^tools\.servers\.a: must have one of/],
    [{ a: { command: "x" } }, /^tools\.servers\.a\.command: must be a list of texts$/],
    [{ a: { command: ["x"], headers: {} } }, /^tools\.servers\.a\.headers: is no key here; there are: command, /],
    [{ a: { command: ["x"], timeoutMs: 0 } }, /^tools\.servers\.a\.timeoutMs: must be a whole number from 1 to 86400000$/],
    [{ a: { command: ["x"], outputBytesMax: 1e9 } }, /^tools\.servers\.a\.outputBytesMax: must be a whole number/],
    [{ a: { command: ["x"], idempotent: true } }, /^tools\.servers\.a\.idempotent: must be a list of texts$/],
    [{ a: { command: ["x"], trustHints: "yes" } }, /^tools\.servers\.a\.trustHints: must be true or false$/],
    [{ a: { url: "ftp://x" } }, /^tools\.servers\.a\.url: must be a URL of http or https$/],
    [{ a: { url: "https://me:pass@x" } }, /^tools\.servers\.a\.url: must hold no credentials/],
    [{ a: { url: "https://x", headers: { authorization: "Bearer x" } } }, /^tools\.servers\.a\.headers\.authorization: must be \{"env"/],
    [{ a: { url: "https://x", headers: { "X-Api-Key": "x" } } }, /^tools\.servers\.a\.headers\.X-Api-Key: must be \{"env"/],
    [{ a: { url: "https://x", headers: { "x-key": { env: "NONE" } } } }, /^tools\.servers\.a\.headers\.x-key\.env: must name a variable/],
    [{ a: { url: "https://x", headers: { "a b": "x" } } }, /^tools\.servers\.a\.headers\."a b": must have the name of a header$/],
    [{ a: { url: "https://x", headers: { team: "a\nb" } } }, /^tools\.servers\.a\.headers\.team: must be visible ASCII/],
  ])("are refused by the path of the key: %j", (servers, message) => {
    expect(refusal(() => parse(servers))).toMatch(message);
  });

  it("repeat no secret", () => {
    const servers = { a: { url: "https://x", headers: { "x-key": { env: "KEY" } } } };
    expect(refusal(() => parse(servers, { KEY: "s3cret\nvalue" }))).not.toContain("s3cret");
  });
});
