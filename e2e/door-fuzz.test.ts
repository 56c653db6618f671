/**
 * Any sequence of messages and frames over real sockets, to a server in a process of its own: it never crashes and never hangs, says what the
 * documents say, and leaves a session that works. DOOR_FUZZ_SEQUENCES has more of them, DOOR_FUZZ_SEED others.
 */

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { stringify } from "yaml";
import { describe, expect, it } from "vitest";
import { create } from "@bufbuild/protobuf";
import { SEQ_NONE } from "../src/base/index.ts";
import {
  PongSchema,
  SessionErrorSchema,
  SessionResponseSchema,
  SessionStartedSchema,
  type SessionRequest,
  type SessionResponse,
} from "../src/gen/roz/v1/agent_pb.ts";
import type { AgentResponse, AgentService } from "../src/service/index.ts";
import { runSequence } from "./support/door-fuzz/sequence.ts";
import { usable } from "./support/door-fuzz/usable.ts";
import { DoorWire } from "./support/door-fuzz/wire-stream.ts";
import { openDoor } from "./support/grpc-door.ts";
import { newDataFolder, serve, type ServerProcess } from "./support/server-process.ts";

const SEQUENCES = Number(process.env["DOOR_FUZZ_SEQUENCES"] ?? 300);
const FIRST_SEED = Number(process.env["DOOR_FUZZ_SEED"] ?? 1);
/** Sequences that run at once. */
const LANES = 6;
/** How long anything may take before it counts as a hang. */
const PATIENCE_MS = 30_000;
/** With a door that has a fault, which is found out whether it hangs or not. */
const FAULT_PATIENCE_MS = 60;
/** What the server may hold in the end, garbage and all; most of it is texts that it keeps up to limits of its own. */
const RESIDENT_BYTES_MAX = 1_000_000_000;

const LONG_CHARS = 300_000;
const SLOW_MS = 1_500;

/** What the model does to the words of a user. */
const ROOMY = { maxContextTokens: 4_000_000 };
const COMPLETIONS = [
  // Words of turns that failed stand before it in the same message.
  { on: { user: "still there?" }, text: "ok" },
  { on: { user: "look", step: 1 }, text: "I look.", calls: [{ tool: "look", args: {} }] },
  { on: { user: "push", step: 1 }, calls: [{ tool: "push", args: { a: 1 } }] },
  {
    on: { user: "both", step: 1 },
    reasoning: "Both.",
    calls: [
      { tool: "look", args: {} },
      { tool: "look", args: {} },
      { tool: "none", args: {} },
    ],
  },
  { on: { user: "fail" }, error: { code: "invalid_argument", message: "secret of the provider" } },
  { on: { user: "slow" }, delayMs: SLOW_MS, text: ["It ", "took ", "long."] },
  { on: { user: "long" }, text: ["x".repeat(LONG_CHARS), "y".repeat(LONG_CHARS)] },
  { text: "ok" },
];

async function startServer(): Promise<ServerProcess> {
  const folder = newDataFolder();
  const data = join(folder, "data");
  mkdirSync(data);
  writeFileSync(join(folder, "script.yaml"), stringify({ completions: COMPLETIONS }));
  const config = {
    harness: "agent",
    model: `script:${join(folder, "script.yaml")}`,
    environments: { default: ROOMY, asking: { ...ROOMY, permissions: [{ tool: "look", policy: "require_confirmation" }] } },
  };
  writeFileSync(join(folder, "holdfast.json"), JSON.stringify(config));
  return serve(data, { flags: ["--config", join(folder, "holdfast.json")] });
}

/** Runs sequences, some at once. Resolves with what there is to complain about, by seed. */
async function storm(address: string, seeds: readonly number[], patienceMs: number): Promise<string[]> {
  const complaints: string[] = [];
  const left = [...seeds];
  const lane = async (): Promise<void> => {
    for (let seed = left.shift(); seed !== undefined; seed = left.shift()) {
      using wire = new DoorWire(address);
      const { complaints: told, session } = await runSequence({ address, seed, patienceMs });
      const after = await usable(wire, session, patienceMs);
      complaints.push(...[...told, ...after].map((each) => `seed ${seed}: ${each}`));
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  return complaints;
}

function residentBytes(pid: number): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) * 1_024;
}

/** Lines of a log that tell of the server's own faults. */
function faultsIn(log: string): string[] {
  return log.split("\n").filter((line) => line !== "" && !/"level":"(info|warn)"/.test(line));
}

const seedsFrom = (first: number, count: number): number[] => Array.from({ length: count }, (_, index) => first + index);

describe("any sequence over real sockets", () => {
  it("is answered as documented, and leaves a server and a session that work", { timeout: 60_000 + SEQUENCES * 1_000 }, async () => {
    const { address, command } = await startServer();
    let log = "";
    command.child.stderr.on("data", (text: string) => (log += text));
    const { pid = 0 } = command.child;
    expect(await storm(address, seedsFrom(FIRST_SEED, SEQUENCES), PATIENCE_MS)).toEqual([]);
    expect(command.child.exitCode).toBe(null);
    expect(faultsIn(log)).toEqual([]);
    expect(residentBytes(pid)).toBeLessThan(RESIDENT_BYTES_MAX);
  });
});

/** What a door with a fault makes of a request; undefined for what it does not answer. */
type Fault = (request: SessionRequest["request"]) => SessionResponse["response"] | undefined;

const STARTED: SessionResponse["response"] = { case: "sessionStarted", value: create(SessionStartedSchema, { sessionId: "s" }) };
const PONG: SessionResponse["response"] = { case: "pong", value: create(PongSchema) };
const errorOf = (code: string, message: string): SessionResponse["response"] => ({
  case: "error",
  value: create(SessionErrorSchema, { code, message }),
});

/** A door that starts, answers pings, and has a fault. */
const doorWith = (fault: Fault): AgentService["streamSession"] =>
  async function* (requests, { metadata }) {
    const said = (response: SessionResponse["response"]): AgentResponse => ({
      response: create(SessionResponseSchema, { response }),
      seq: SEQ_NONE,
    });
    if (metadata("holdfast-session") !== undefined) yield said(STARTED);
    for await (const incoming of requests) {
      const request: SessionRequest["request"] = incoming.kind === "message" ? incoming.message.request : { case: undefined };
      const answer = fault(request) ?? (request.case === "start" ? STARTED : request.case === "ping" ? PONG : undefined);
      if (answer !== undefined) yield said(answer);
    }
  };

describe("a door with a fault", () => {
  it.each<readonly [string, RegExp, Fault]>([
    ["an error that is in no table", /was answered with .*sorry/, () => errorOf("sorry", "session: it cannot be")],
    ["an error in a provider's words", /in words that it may not have/, () => errorOf("model_error", "model: secret of the provider")],
    ["an error that names no field", /in words that it may not have/, () => errorOf("agent_error", "Something went wrong")],
    ["a fault of its own", /internal: session/, () => errorOf("internal", "session: it failed")],
    ["no answer to what is wrong", /was answered with no error/, () => undefined],
    [
      "no answer to a ping",
      /a ping was not answered/,
      ({ case: kind }) => (kind === "ping" ? errorOf("agent_error", "agent: no") : undefined),
    ],
    [
      "a status of its own",
      /ended with .*"code":13/,
      () => {
        throw new Error("a fault");
      },
    ],
    ["no turn for those who come later", /no turn can be begun|a turn did not complete/, () => undefined],
  ])("is found out: %s", async (_, complaint, fault) => {
    const { address } = await openDoor({ agent: { streamSession: doorWith(fault) } });
    const complaints = await storm(address, seedsFrom(1, 12), FAULT_PATIENCE_MS);
    expect(complaints.join("\n")).toMatch(complaint);
  });

  it("is found out when it is gone, and when it tells of a fault in its log", async () => {
    const { address, listener } = await openDoor();
    await listener.close();
    expect((await storm(address, [1], FAULT_PATIENCE_MS)).join()).toMatch(/the session is not to be had/);
    expect(faultsIn('{"level":"info"}\n{"level":"error","message":"a call failed"}\n')).toHaveLength(1);
    expect(faultsIn("Error: boom\n")).toHaveLength(1);
  });
});
