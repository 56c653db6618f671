import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { HoldfastError, SILENT_LOG } from "../../base/index.ts";
import type { Transport } from "../../client/index.ts";
import { createNodeTransport } from "../../client/node/index.ts";
import type { JournalStore } from "../../journal/index.ts";
import { cryptoRandom, nodeDigest, systemClock } from "../../node/index.ts";
import { startServer, type RunningServer } from "../../server/index.ts";
import { createMemoryStore } from "../../stores/memory/index.ts";
import { openSqliteStore } from "../../stores/sqlite/index.ts";
import { inProcessTransport } from "../in-process.ts";
import { TemporaryFolder } from "../temporary-folder.ts";
import {
  CONFORMANCE_ABILITIES as abilities,
  CONFORMANCE_GROUPS,
  conformanceHarnesses,
  conformanceTools,
  CONTRACT_CASES,
  contractTests,
  runConformance,
  type CaseResult,
} from "./index.ts";

/** The suite against this project's own host: over every store in process, and by address over real gRPC. */

const ports = { clock: systemClock, random: cryptoRandom, digest: nodeDigest };
const over = (journal: JournalStore): Transport =>
  inProcessTransport({ journal, ports, harnesses: conformanceHarnesses(), tools: conformanceTools() });

describe("a host over the memory store", () => {
  const connect = (): Transport => over(createMemoryStore({ ...ports, log: SILENT_LOG }));
  it.each(contractTests({ connect, abilities }))("$name", ({ run }) => run());
});

describe("a host over the SQLite store", () => {
  const folder = new TemporaryFolder();
  let journal: JournalStore;
  beforeAll(async () => {
    journal = await openSqliteStore({ folder: folder.path, ...ports, log: SILENT_LOG, writer: "inline" });
  });
  afterAll(async () => {
    await journal[Symbol.asyncDispose]();
    folder[Symbol.dispose]();
  });
  it.each(contractTests({ connect: () => over(journal), abilities }))("$name", ({ run }) => run());
});

describe("a server, by address", () => {
  let server: RunningServer;
  const connect = (): Transport => createNodeTransport({ address: server.url });
  beforeAll(async () => {
    const config = { listen: { host: "127.0.0.1", port: 0 }, store: { kind: "memory" } } as const;
    server = await startServer(config, { harnesses: conformanceHarnesses(), tools: conformanceTools(), log: SILENT_LOG });
  });
  afterAll(() => server.shutdown({ graceMs: 0 }));

  it("keeps every promise", async () => {
    const report = await runConformance({ connect, abilities });
    expect(report.results.filter(({ outcome }) => outcome !== "passed")).toEqual([]);
    expect(report.passed).toBe(CONTRACT_CASES.length);
  });

  it("keeps every promise that can be asked of a server with nothing but the echo harness", async () => {
    const seen: string[] = [];
    const report = await runConformance({ connect, onResult: ({ id }) => seen.push(id) });
    expect(report.failed).toBe(0);
    const needy = CONTRACT_CASES.filter(({ needs }) => needs.length > 0).map(({ id }) => id);
    const skipped = report.results.filter(({ outcome }) => outcome === "skipped");
    expect(skipped.map(({ id }) => id)).toEqual(needy);
    expect(skipped.every((result) => "reason" in result && result.reason.startsWith("needs a harness"))).toBe(true);
    expect(seen).toEqual(CONTRACT_CASES.map(({ id }) => id));
  });
});

describe("the suite", () => {
  const connect = (): Transport => over(createMemoryStore({ ...ports, log: SILENT_LOG }));
  const outcomes = (results: readonly CaseResult[]): string[] => results.map(({ id, outcome }) => `${id} ${outcome}`);

  it("names each case once, by its group, and says which promise it rests on", () => {
    const ids = CONTRACT_CASES.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    expect([...new Set(ids.map((id) => id.split("/")[0]))]).toEqual(CONFORMANCE_GROUPS);
    for (const { promise } of CONTRACT_CASES) expect(promise).toMatch(/^\S.{20,}\.$/);
  });

  it("runs what it is asked for: groups or cases", async () => {
    const report = await runConformance({ connect, abilities, only: ["verify", "replay/past-head"] });
    expect(outcomes(report.results)).toEqual(["replay/past-head passed", "verify/agrees passed"]);
  });

  it("skips what the server does not have and need not have, and says so", async () => {
    const without = (transport: Transport): Transport => ({
      ports: transport.ports,
      unary: async (method, request, options) => {
        if (method.parent.typeName.startsWith("holdfast.")) throw new HoldfastError("unimplemented", "no such service");
        return transport.unary(method, request, options);
      },
      async *stream(method, request, options) {
        if (method.parent.typeName.startsWith("holdfast.")) throw new HoldfastError("unimplemented", "no such service");
        yield* transport.stream(method, request, options);
      },
      streamBytes: (method, request, options) => transport.streamBytes(method, request, options),
      upload: (method, requests, options) => transport.upload(method, requests, options),
      [Symbol.asyncDispose]: () => transport[Symbol.asyncDispose](),
    });
    const only = ["tail", "verify", "check", "lineage"];
    const report = await runConformance({ connect: () => without(connect()), abilities, only });
    expect([report.passed, report.failed]).toEqual([0, 0]);
    expect(report.results.map((result) => ("reason" in result ? result.reason : ""))).toContain(
      "the server does not have holdfast.v1.Journal/Verify",
    );
  });

  it("gives up on a case that takes too long, and says so; its caller can end all of it", async () => {
    const harnesses = { ...conformanceHarnesses(), plain: conformanceHarnesses()["waiting"]! };
    const slow = (): Transport => inProcessTransport({ journal: createMemoryStore({ ...ports, log: SILENT_LOG }), ports, harnesses });
    const report = await runConformance({ connect: slow, abilities, only: ["exec/order"], caseTimeoutMs: 50 });
    expect(report.results).toMatchObject([{ outcome: "failed", reason: "it took longer than 50 ms" }]);
    const enough = new AbortController();
    const running = runConformance({ connect: slow, abilities, only: ["exec"], signal: enough.signal });
    enough.abort(new Error("enough"));
    await expect(running).rejects.toThrow("enough");
  });

  it("leaves no session behind", async () => {
    const journal = createMemoryStore({ ...ports, log: SILENT_LOG });
    await runConformance({ connect: () => over(journal), abilities });
    const { rows } = await journal.list({ limit: 1_000 });
    expect(rows.map(({ seed }) => seed.project)).toEqual([]);
  });
});
