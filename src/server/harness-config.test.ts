import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { HoldfastError } from "../base/index.ts";
import { harnessConfigs } from "./harness-config.ts";

const FOLDER = "/srv/agents";

const parse = (harnesses: unknown, folder = FOLDER, env: Record<string, string> = {}) =>
  harnessConfigs({ at: "harnesses", value: harnesses }, { folder, env });
const parseOne = (harness: unknown) => parse({ coder: harness })["coder"];

function refusal(harnesses: unknown): string {
  try {
    parse(harnesses);
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error;
    expect(error).toMatchObject({ code: "invalid_argument" });
    expect(error.message.startsWith(`${error.field}: `)).toBe(true);
    return error.message;
  }
  return "";
}

describe("the harnesses of a config file", () => {
  it("may be none", () => {
    expect(harnessConfigs(undefined, { folder: FOLDER, env: {} })).toEqual({});
    expect(parse({})).toEqual({});
  });

  it("are whole: paths from the file's folder, defaults filled in", () => {
    expect(parseOne({ runtime: "process", command: ["node", "agent.ts", ""] })).toEqual({
      runtime: "process",
      command: ["node", "agent.ts", ""],
      cwd: FOLDER,
      env: {},
      confine: false,
      line: "stdio",
    });
    const limits = { memoryBytesMax: 512 * 1024 * 1024, cpuSecondsMax: 60 };
    const process = { runtime: "process", command: ["node"], cwd: "coder", env: { A: "" }, confine: true, line: "unix", ...limits };
    expect(parseOne(process)).toEqual({ ...process, cwd: "/srv/agents/coder" });
    expect(parseOne({ runtime: "gvisor", command: ["python3", "a.py"], cwd: "/opt", ...limits })).toEqual({
      runtime: "gvisor",
      command: ["python3", "a.py"],
      cwd: "/opt",
      env: {},
      ...limits,
    });
    expect(parseOne({ runtime: "quickjs", script: "agent.js" })).toEqual({ runtime: "quickjs", script: "/srv/agents/agent.js" });
    const remote = { runtime: "remote", address: "unix:///run/coder.sock" };
    expect(parseOne(remote)).toEqual(remote);
  });

  it("take secrets from the host's environment and from files", () => {
    const folder = mkdtempSync(join(tmpdir(), "holdfast-config-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    for (const name of ["key.txt", "ca.pem", "cert.pem", "key.pem"]) writeFileSync(join(folder, name), `${name}\n`);
    const env = { API_KEY: { env: "CODER_KEY" }, OTHER: { file: "key.txt" } };
    const harnesses = {
      coder: { runtime: "process", command: ["node"], env },
      far: {
        runtime: "remote",
        address: "far:443",
        tls: { caFile: "ca.pem", certFile: "cert.pem", keyFile: "key.pem", serverName: "far" },
      },
      plain: { runtime: "remote", address: "plain:443", tls: {} },
    };
    expect(parse(harnesses, folder, { CODER_KEY: "k" })).toMatchObject({
      coder: { env: { API_KEY: "k", OTHER: "key.txt" } },
      far: { tls: { ca: "ca.pem\n", cert: "cert.pem\n", key: "key.pem\n", serverName: "far" } },
      plain: { tls: {} },
    });
  });

  it("may have any name that could be registered", () => {
    const remote = { runtime: "remote", address: "a:1" };
    const named = parse(JSON.parse('{"constructor": {"runtime": "remote", "address": "a:1"}}'));
    expect(Object.entries(named)).toEqual([["constructor", remote]]);
    expect(refusal({ Coder: remote })).toMatch(/^harnesses\.Coder: must be 1 to 63 lowercase letters/);
    expect(refusal({ "a.b": remote })).toMatch(/^harnesses\."a\.b": /);
    expect(refusal(JSON.parse('{"__proto__": {}}'))).toMatch(/^harnesses\.__proto__: /);
  });

  const process = { runtime: "process", command: ["node"] };
  it.each([
    [[], /^harnesses: must be an object$/],
    [{ coder: "node" }, /^harnesses\.coder: must be an object$/],
    [{ coder: {} }, /^harnesses\.coder\.runtime: must be process, remote, quickjs or gvisor$/],
    [{ coder: { runtime: "docker" } }, /^harnesses\.coder\.runtime: must be process/],
    [{ coder: { ...process, comand: [] } }, /^harnesses\.coder\.comand: is no key here; there are: runtime, command, /],
    [{ coder: { runtime: "process" } }, /^harnesses\.coder\.command: must be a list of texts$/],
    [{ coder: { ...process, command: "node agent.ts" } }, /^harnesses\.coder\.command: must be a list of texts$/],
    [{ coder: { ...process, command: [] } }, /^harnesses\.coder\.command: must have one text at least$/],
    [{ coder: { ...process, command: [""] } }, /^harnesses\.coder\.command\[0\]: must be a text that is not empty$/],
    [{ coder: { ...process, command: ["node", 1] } }, /^harnesses\.coder\.command\[1\]: must be a text$/],
    [{ coder: { ...process, command: ["node", "a\u0000b"] } }, /^harnesses\.coder\.command\[1\]: must be a text$/],
    [{ coder: { ...process, command: Array(1_025).fill("a") } }, /^harnesses\.coder\.command: must have at most 1024 texts$/],
    [{ coder: { ...process, cwd: "" } }, /^harnesses\.coder\.cwd: /],
    [{ coder: { ...process, env: { "A=B": "c" } } }, /^harnesses\.coder\.env\."A=B": must have a name of letters/],
    [{ coder: { ...process, env: { A: 1 } } }, /^harnesses\.coder\.env\.A: must be a text, /],
    [{ coder: { ...process, env: { A: null } } }, /^harnesses\.coder\.env\.A: must be an object$/],
    [{ coder: { ...process, env: { A: {} } } }, /^harnesses\.coder\.env\.A: must have one of the keys env and file$/],
    [{ coder: { ...process, env: { A: { env: "B", file: "c" } } } }, /^harnesses\.coder\.env\.A: must have one of the keys/],
    [{ coder: { ...process, env: { A: { env: "NOT_SET" } } } }, /^harnesses\.coder\.env\.A\.env: must name a variable that the host has$/],
    [{ coder: { ...process, env: { A: { file: "nowhere" } } } }, /^harnesses\.coder\.env\.A\.file: must name a file that can be read$/],
    [{ coder: { ...process, memoryBytesMax: 0 } }, /^harnesses\.coder\.memoryBytesMax: must be a whole number from 1/],
    [{ coder: { ...process, cpuSecondsMax: "9" } }, /^harnesses\.coder\.cpuSecondsMax: must be a whole number from 1/],
    [{ coder: { ...process, confine: "yes" } }, /^harnesses\.coder\.confine: must be true or false$/],
    [{ coder: { ...process, line: "tcp" } }, /^harnesses\.coder\.line: must be stdio or unix$/],
    [{ coder: { runtime: "gvisor", command: ["a"], confine: true } }, /^harnesses\.coder\.confine: is no key here/],
    [{ coder: { runtime: "quickjs" } }, /^harnesses\.coder\.script: must be a text that is not empty$/],
    [{ coder: { runtime: "quickjs", script: "a.js", command: [] } }, /^harnesses\.coder\.command: is no key here/],
    [{ coder: { runtime: "remote", address: "nowhere" } }, /^harnesses\.coder\.address: must be unix:\/\/\/path or host:port/],
    [{ coder: { runtime: "remote", address: "unix:///a", tls: {} } }, /^harnesses\.coder\.tls: is for host:port addresses$/],
    [
      { coder: { runtime: "remote", address: "a:1", tls: { insecure: true } } },
      /^harnesses\.coder\.tls\.insecure: is no key here; there are: caFile/,
    ],
    [{ coder: { runtime: "remote", address: "a:1", tls: { keyFile: "/nowhere" } } }, /^harnesses\.coder\.tls\.keyFile: must name a file/],
  ])("are refused by the path of the key: %j", (harnesses, message) => {
    expect(refusal(harnesses)).toMatch(message);
  });
});
