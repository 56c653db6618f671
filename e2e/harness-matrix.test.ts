/**
 * One harness, wherever it runs: the same turns leave the same journal up to ids, times and the name it is served under. In process, in a
 * child over its standard streams or a unix socket, at an address over TCP or a unix socket (by the harness wire and by the contract
 * alone), in a sandboxed VM, under gVisor where runsc runs; in TypeScript and in Python.
 */

import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { toJson } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SILENT_LOG } from "../src/base/index.ts";
import { createClient, type Client, type ExecStream, type ExecTurn } from "../src/client/index.ts";
import { createNodeTransport } from "../src/client/node/index.ts";
import { EventSchema } from "../src/gen/agentsessions/v1/common_pb.ts";
import { createCounterHarness } from "../src/harnesses/counter.ts";
import { cryptoRandom, systemClock } from "../src/node/index.ts";
import { whyNoGvisor } from "../src/runtimes/gvisor/index.ts";
import type { HarnessConfig } from "../src/server/harness-config.ts";
import { startServer, type RunningServer } from "../src/server/index.ts";
import { describeHarness, type Harness } from "../src/spi/index.ts";
import { createMemoryBlobStore } from "../src/stores/blobs/index.ts";
import { bundleProgram, type BundledProgram } from "../src/testing/harness-programs/bundle.ts";
import { listenAt, type ServedProgram } from "./support/served-program.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const PROGRAM = join(ROOT, "e2e/support/harness-program.ts");
const PYTHON = join(ROOT, "sdks/python/.venv/bin/python");

const NAMES = ["echo", "chat", "counter"] as const;
type Name = (typeof NAMES)[number];

const typescript = (name: Name): readonly [string, ...string[]] => [process.execPath, PROGRAM, name];
const python = (name: Name): readonly [string, ...string[]] => [PYTHON, join(ROOT, `examples/python/${name}.py`)];

/** A place where harnesses run: the configuration of one there. */
interface Place {
  readonly name: string;
  /** Whether a harness that keeps its state in memory can run there. */
  readonly keepsMemory: boolean;
  configOf(name: Name): Promise<HarnessConfig>;
}

const programs: ServedProgram[] = [];
const folder = mkdtempSync(join(tmpdir(), "holdfast-matrix-"));

/** Where the Python programs find the SDK. */
const ENV = { PYTHONPATH: join(ROOT, "sdks/python/src") };

const child = (command: readonly [string, ...string[]], line: "stdio" | "unix"): HarnessConfig => ({
  runtime: "process",
  command,
  cwd: ROOT,
  env: ENV,
  confine: false,
  line,
});

async function served(command: readonly [string, ...string[]], listen: string): Promise<HarnessConfig> {
  const program = await listenAt(command, listen, ENV);
  programs.push(program);
  return { runtime: "remote", address: program.address };
}

/** The program in one file, as a harness is shipped: an image of its memory is a third of what the modules make. */
let bundle: BundledProgram | undefined;

async function bundled(name: Name): Promise<HarnessConfig> {
  bundle ??= await bundleProgram(relative(join(ROOT, "src/testing/harness-programs"), PROGRAM));
  return { runtime: "gvisor", command: [process.execPath, bundle.file, name], cwd: bundle.folder, env: {} };
}

const whyNot = await whyNoGvisor({
  ports: { clock: systemClock, random: cryptoRandom },
  blobs: createMemoryBlobStore({ clock: systemClock }),
});
if (whyNot !== undefined) process.stderr.write(`skipped: the matrix's places under gVisor, since ${whyNot}\n`);

const GVISOR: readonly Place[] = [
  { name: "a gVisor sandbox", keepsMemory: true, configOf: bundled },
  {
    name: "a gVisor sandbox, Python",
    keepsMemory: true,
    configOf: async (name) => ({ runtime: "gvisor", command: python(name), cwd: ROOT, env: ENV }),
  },
];

const PLACES: readonly Place[] = [
  { name: "a child, standard streams", keepsMemory: false, configOf: async (name) => child(typescript(name), "stdio") },
  { name: "a child, unix socket", keepsMemory: false, configOf: async (name) => child(typescript(name), "unix") },
  { name: "an address, TCP", keepsMemory: false, configOf: (name) => served(typescript(name), "127.0.0.1:0") },
  { name: "an address, unix socket", keepsMemory: false, configOf: (name) => served(typescript(name), `unix://${folder}/${name}.sock`) },
  {
    name: "an address, by the contract alone",
    keepsMemory: false,
    configOf: (name) => served([...typescript(name), "contract"], "127.0.0.1:0"),
  },
  { name: "a Python child, standard streams", keepsMemory: false, configOf: async (name) => child(python(name), "stdio") },
  { name: "a Python child, unix socket", keepsMemory: false, configOf: async (name) => child(python(name), "unix") },
  { name: "Python at an address, TCP", keepsMemory: false, configOf: (name) => served(python(name), "127.0.0.1:0") },
  {
    name: "a sandboxed VM",
    keepsMemory: true,
    configOf: async (name) => ({ runtime: "quickjs", script: join(ROOT, `e2e/support/sandboxed/${name}.ts`) }),
  },
  ...(whyNot === undefined ? GVISOR : []),
];

const placeKey = (index: number, name: Name): string => `${name}-${index}`;

let server: RunningServer;
let client: Client;

beforeAll(async () => {
  if (!existsSync(PYTHON)) throw new Error("the Python SDK is not installed: run npm test -- --only python");
  const harnesses: Record<string, HarnessConfig> = {};
  for (const [index, place] of PLACES.entries()) {
    for (const name of NAMES) harnesses[placeKey(index, name)] = await place.configOf(name);
  }
  server = await startServer(
    {
      listen: { host: "127.0.0.1", port: 0 },
      store: { kind: "sqlite", folder: join(folder, "data") },
      registry: { listen: "off", token: undefined },
      harnesses,
    },
    { log: SILENT_LOG, harnesses: { countdown: inProcessCounter() } },
  );
  client = createClient({ transport: createNodeTransport({ address: server.url }) });
});

afterAll(async () => {
  await client?.[Symbol.asyncDispose]();
  await server?.shutdown({ graceMs: 0 });
  await Promise.all(programs.map((program) => program.end()));
  bundle?.[Symbol.dispose]();
  rmSync(folder, { recursive: true, force: true });
});

/** The counter in this process says that it keeps nothing: this process captures no memory, and its journal is what is compared. */
function inProcessCounter(): Harness {
  const counter = createCounterHarness();
  return { describe: async () => describeHarness({ id: "counter", version: "1" }), run: (...turn) => counter.run(...turn) };
}

/** The turns that every harness is given. */
const TURNS: readonly ExecTurn[] = [
  { inputs: ["hello"] },
  { inputs: ["two", "messages, the second with é and 𝄞"] },
  { inputs: ["again"], config: '{"system_prompt": "Be brief.", "params": {"temperature": "0.5"}}' },
  { inputs: ["wrong"], config: '{"unknown": 1}' },
  { inputs: [] },
];

/** Runs the turns and a suspension; the session's journal without ids, times and the harness's name. */
async function journalOf(harness: string): Promise<unknown[]> {
  const { metadata } = await client.sessions.create({ harness, model: "echo" });
  const session = client.session(metadata?.uid ?? "");
  for (const turn of TURNS) await toItsEnd(session.exec(turn));
  await session.suspend();
  await session.resume();
  await toItsEnd(session.exec({ inputs: "after a rest" }));
  const events: unknown[] = [];
  for await (const { record } of session.replay()) if (record.event !== undefined) events.push(stripped(toJson(EventSchema, record.event)));
  return events;
}

async function toItsEnd(turn: ExecStream): Promise<void> {
  for await (const item of turn) void item;
}

type Json = { [key: string]: unknown };

function stripped(event: unknown): unknown {
  const { executionId: _execution, ts: _ts, ...rest } = event as Json;
  const start = rest["executionStart"] as Json | undefined;
  if (start !== undefined) rest["executionStart"] = { ...start, harness: "" };
  const model = rest["model"] as Json | undefined;
  if (model !== undefined) rest["model"] = { ...model, id: "" };
  const lifecycle = rest["lifecycle"] as Json | undefined;
  if (lifecycle !== undefined) rest["lifecycle"] = { kind: lifecycle["kind"] };
  return rest;
}

describe.each(NAMES)("the harness %s", (name) => {
  let expected: unknown[];

  beforeAll(async () => {
    expected = await journalOf(name === "counter" ? "countdown" : name);
  });

  it("leaves more than a trivial journal in process", () => {
    expect(expected.length).toBeGreaterThan(2 * TURNS.length);
  });

  it.each(PLACES.map((place, index) => [place.name, place, index] as const))("leaves the same in %s", async (_name, place, index) => {
    const harness = placeKey(index, name);
    if (name === "counter" && !place.keepsMemory) {
      const { metadata } = await client.sessions.create({ harness });
      const session = client.session(metadata?.uid ?? "");
      await expect(toItsEnd(session.exec({ inputs: "go" }))).rejects.toMatchObject({
        code: "failed_precondition",
        message: expect.stringContaining("memory_snapshot"),
      });
      expect((await session.get()).lastSeq).toBe(0n);
      return;
    }
    expect(await journalOf(harness)).toEqual(expected);
  });
});
