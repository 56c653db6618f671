/**
 * `kill -9` of a real process in the middle of turns on a SQLite file, with a model server that counts requests at the transport.
 * Afterwards a new process resumes, and another one verifies and replays:
 * - what a client saw is in the journal, every chain verifies, every interrupted turn goes on to COMPLETED (I5, I8)
 * - no request was made without its MODEL_CALL in the journal (I7), and recovery costs one more for each interrupted turn at most (I3)
 * - replay and check make none (I1), also where they find that a harness asks for something else (I0)
 *
 * HOLDFAST_KILLS=200 runs it as often as a release needs; the default keeps the tests quick.
 */

import { spawn, type ChildProcessByStdio } from "node:child_process";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { describe, expect, it } from "vitest";
import { startModelServer, type ModelServer } from "../model-server.ts";
import { SeededRandom } from "../ports.ts";
import { TemporaryFolder } from "../temporary-folder.ts";
import type { TurnLine, TurnRole } from "./turn-process.ts";

const KILLS = Number(process.env["HOLDFAST_KILLS"] ?? "8");

const url = (path: string): string => JSON.stringify(new URL(path, import.meta.url).href);

/** The program: the real store, the real clock, a real provider. */
const PROGRAM = `
  import { openSqliteStore } from ${url("../../stores/sqlite/index.ts")};
  import { createModelCatalog, createOpenAiProvider } from ${url("../../models/index.ts")};
  import { cryptoRandom, nodeDigest, systemClock } from ${url("../../node/index.ts")};
  import { turnProcess } from ${url("./turn-process.ts")};
  const [role, folder, baseUrl] = process.argv.slice(1);
  const ports = { clock: systemClock, random: cryptoRandom, digest: nodeDigest };
  const provider = createOpenAiProvider({ baseUrl, modelPrefix: "", clock: systemClock, random: cryptoRandom });
  const journal = await openSqliteStore({ folder, clock: systemClock, digest: nodeDigest });
  const models = createModelCatalog({ routes: [], fallback: provider });
  const say = (line) => process.stdout.write(JSON.stringify(line) + "\\n");
  await turnProcess({ role, journal, models, ports, say });
  await journal[Symbol.asyncDispose]();
`;

interface Program {
  readonly child: ChildProcessByStdio<null, Readable, Readable>;
  readonly lines: TurnLine[];
  /** Resolves with its exit code, undefined after a signal, once all that it said is in `lines`. */
  readonly ended: Promise<number | undefined>;
}

function start(role: TurnRole, folder: string, server: ModelServer): Program {
  const args = ["--input-type=module", "-e", PROGRAM, role, folder, server.openAiBaseUrl];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
  const lines: TurnLine[] = [];
  let complaint = "";
  child.stderr.on("data", (chunk: Buffer) => (complaint += chunk.toString()));
  const reader = createInterface({ input: child.stdout });
  reader.on("line", (line) => {
    // A line that was cut by the kill was not told to anybody.
    if (line.endsWith("}")) lines.push(JSON.parse(line) as TurnLine);
  });
  const read = new Promise<void>((resolve) => reader.on("close", resolve));
  const ended = new Promise<number | undefined>((resolve) => {
    child.on("close", (code) => {
      void read.then(() => {
        if (code !== null && code !== 0) lines.push({ kind: "replayed", session: "", turns: 0, others: [complaint.slice(0, 2_000)] });
        resolve(code ?? undefined);
      });
    });
  });
  return { child, lines, ended };
}

/** Runs a program to its end; what it said. */
async function finished(role: TurnRole, folder: string, server: ModelServer): Promise<readonly TurnLine[]> {
  const program = start(role, folder, server);
  const code = await program.ended;
  expect({ code, said: code === 0 ? [] : program.lines }).toEqual({ code: 0, said: [] });
  return program.lines;
}

function only<Kind extends TurnLine["kind"]>(lines: readonly TurnLine[], kind: Kind): Extract<TurnLine, { kind: Kind }>[] {
  return lines.filter((line): line is Extract<TurnLine, { kind: Kind }> => line.kind === kind);
}

/** `turn <execution> step <n>` of the last user message of each request. */
function asked(server: ModelServer): string[] {
  return server.requests.map(({ json }) => {
    const text = JSON.stringify(json);
    return /turn [0-9a-f-]+ step \d+(?!.*turn [0-9a-f-]+ step)/.exec(text)?.[0] ?? "";
  });
}

describe("kill -9 in the middle of turns, with a model that counts at the transport", () => {
  it(`keeps every promise over ${KILLS} kills`, { timeout: 60_000 + KILLS * 6_000 }, async () => {
    const random = new SeededRandom(3);
    using folder = new TemporaryFolder("disk");
    await using server = await startModelServer();
    const seen: Extract<TurnLine, { kind: "saw" }>[] = [];
    let recovered = 0;
    for (let kill = 1; kill <= KILLS; kill++) {
      const program = start("run", folder.path, server);
      await Promise.race([server.request(server.requests.length + random.below(24)), program.ended]);
      if (random.below(2) === 0) await new Promise((resolve) => setImmediate(resolve));
      program.child.kill("SIGKILL");
      expect({ code: await program.ended, said: only(program.lines, "replayed") }).toEqual({ code: undefined, said: [] });
      seen.push(...only(program.lines, "saw"));

      const before = server.requests.length;
      const resumed = only(await finished("resume", folder.path, server), "resumed");
      expect(resumed.map(({ outcome }) => outcome)).toEqual(resumed.map(() => "COMPLETED"));
      recovered += resumed.length;
      const requests = asked(server);
      expect(requests.length - new Set(requests).size).toBeLessThanOrEqual(recovered);
      expect(requests.slice(before).every((text) => resumed.some(({ executionId }) => text.includes(executionId)))).toBe(true);

      const report = await finished("check", folder.path, server);
      expect(server.requests.length).toBe(requests.length);
      judge(report, seen, requests);
    }
    expect(recovered).toBeGreaterThan(0);

    const requests = server.requests.length;
    const changed = only(await finished("check-changed", folder.path, server), "replayed");
    expect(changed.every(({ turns, others }) => turns > 0 && others.length === turns)).toBe(true);
    expect(server.requests.length).toBe(requests);
  });
});

/** What must be true of the journals after each recovery. */
function judge(report: readonly TurnLine[], seen: readonly Extract<TurnLine, { kind: "saw" }>[], requests: readonly string[]): void {
  const journals = only(report, "journal");
  expect(journals.flatMap(({ violations }) => violations)).toEqual([]);
  expect(journals.filter(({ openTurn }) => openTurn)).toEqual([]);
  expect(only(report, "replayed").flatMap(({ others }) => others)).toEqual([]);
  const hashes = new Map(journals.map(({ session, contentHashes }) => [session, contentHashes]));
  expect(seen.filter(({ session, seq, contentHash }) => hashes.get(session)?.[seq - 1] !== contentHash)).toEqual([]);
  const calls = new Map(journals.flatMap(({ modelCalls }) => Object.entries(modelCalls)));
  const unrecorded = requests.filter((text) => {
    const [, execution = "", step = ""] = /turn (\S+) step (\d+)/.exec(text) ?? [];
    return (calls.get(execution) ?? 0) <= Number(step);
  });
  expect(unrecorded).toEqual([]);
  // Each turn was interrupted once at most, so one of its requests at most was made twice.
  const again = requests.filter((text, index) => requests.indexOf(text) !== index).map((text) => text.split(" step ")[0]);
  expect(again.length).toBe(new Set(again).size);
}
