/**
 * What a line costs: one session's turns with one model call, one after the other, on SQLite with `synchronous=FULL`. The same harness in
 * this process, at the other end of a child's standard streams, and of a unix socket. The journal has a writer thread, as a server's has.
 */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { create } from "@bufbuild/protobuf";
import { ComputeRefSchema } from "../src/gen/agentsessions/v1/session_pb.ts";
import { SILENT_LOG } from "../src/base/index.ts";
import { createController } from "../src/controller/index.ts";
import { createEchoHarness } from "../src/harnesses/index.ts";
import { createLineHarness, type HostLine } from "../src/harness-wire/index.ts";
import { dialHarness, hostLineOver } from "../src/harness-wire/node/index.ts";
import { createEchoProvider, createModelCatalog } from "../src/models/index.ts";
import { createHarnessCatalog } from "../src/placement/index.ts";
import type { JournalStore } from "../src/journal/index.ts";
import type { Harness, HarnessCatalog } from "../src/spi/index.ts";
import { createMemoryStore } from "../src/stores/memory/index.ts";
import type { BenchContext, Row, Target } from "./context.ts";
import { HOST_ID, runTurn } from "./host.ts";
import { median, spread, Stopwatch } from "./statistics.ts";
import { createSession, PORTS, withStore } from "./stores.ts";

const TARGET: Target = { of: "ratio", bound: "at-most", limit: 1.5 };
const INPUT = "Summarise what changed since yesterday, and say what is left to do.";
const PEER = fileURLToPath(new URL("wire-peer.ts", import.meta.url));

/** How many turns a variant runs before it is the next one's turn, and how many of them do not count. */
const RUN_TURNS = 30;
const WAKING_TURNS = 5;
const VARIANTS = ["local", "child", "socket"] as const;
type Variant = (typeof VARIANTS)[number];

/** The median turn of each variant in one round, in milliseconds. */
type Round = Readonly<Record<Variant, number>>;

/** Measures the `wire` group. */
export async function measureWire(context: BenchContext): Promise<Row[]> {
  await using child = await startChild();
  await using socket = await startServed(join(context.newFolder(), "harness.sock"));
  const harnesses = { local: createEchoHarness(), child: child.harness, socket: socket.harness };
  // Both ends' code becomes warm where a turn costs no disk.
  context.progress("turns over a line: warming up");
  await turnsOn(createMemoryStore({ ...PORTS, log: SILENT_LOG }), harnesses, context.scale(2_000, 500));
  const rounds: Round[] = [];
  const count = context.scale(9, 3);
  for (let round = 0; round <= count; round++) {
    context.progress(`turns over a line: round ${round} of ${count}`);
    context.settle();
    const medians = await withStore(context, "worker", (store) => turnsOn(store, harnesses, context.scale(600, 150)));
    if (round > 0) rounds.push(medians);
  }
  const rowOf = (name: string, variant: Variant): Row => {
    const values = rounds.map((round) => round[variant]);
    return { group: "wire", name, value: median(values), unit: "ms", spread: spread(values) };
  };
  const ratioOf = (variant: Variant): number => median(rounds.map((round) => round[variant] / round.local));
  return [
    rowOf("turn with its harness in process, p50", "local"),
    { ...rowOf("turn over a child's standard streams, p50", "child"), ratio: ratioOf("child"), target: TARGET },
    { ...rowOf("turn over a unix socket, p50", "socket"), ratio: ratioOf("socket"), target: TARGET },
  ];
}

/** One session of each variant, on one journal; they alternate, so that whatever else the machine does meets all alike. */
async function turnsOn(store: JournalStore, harnesses: Readonly<Record<Variant, Harness>>, turns: number): Promise<Round> {
  await using controller = createController({
    journal: store,
    harnesses: placed(createHarnessCatalog(harnesses)),
    models: createModelCatalog({ routes: [{ match: "echo", provider: createEchoProvider() }] }),
    ports: PORTS,
    log: SILENT_LOG,
    hostId: HOST_ID,
  });
  const sessions = {
    local: await createSession(store, { harness: "local" }),
    child: await createSession(store, { harness: "child" }),
    socket: await createSession(store, { harness: "socket" }),
  };
  const latenciesMs: Record<Variant, number[]> = { local: [], child: [], socket: [] };
  for (let run = 0; run < (turns / RUN_TURNS) * VARIANTS.length; run++) {
    const variant = VARIANTS[run % VARIANTS.length]!;
    for (let turn = 0; turn < RUN_TURNS; turn++) {
      const watch = new Stopwatch();
      await runTurn(controller, store, sessions[variant], { texts: [INPUT] });
      // Its process has slept while the others had their turns.
      if (turn >= WAKING_TURNS) latenciesMs[variant].push(watch.elapsedMs());
    }
  }
  return { local: median(latenciesMs.local), child: median(latenciesMs.child), socket: median(latenciesMs.socket) };
}

/** The catalog, with what a runtime tells of where a harness is: the controller knows by it that a harness is elsewhere. */
function placed(catalog: HarnessCatalog): HarnessCatalog {
  return {
    names: () => catalog.names(),
    find: (name) => {
      const entry = catalog.find(name);
      if (entry === undefined || name === "local") return entry;
      const compute = create(ComputeRefSchema, { runtime: name });
      return { ...entry, attach: async (options) => ({ ...(await entry.attach(options)), compute }) };
    },
  };
}

interface Peer extends AsyncDisposable {
  readonly harness: Harness;
}

async function startChild(): Promise<Peer> {
  const env = { ...process.env, HOLDFAST_HARNESS_LISTEN: "stdio" };
  const child = spawn(process.execPath, [PEER], { env, stdio: ["pipe", "pipe", "inherit"] });
  return peerOver(hostLineOver({ readable: child.stdout, writable: child.stdin }), async () => void (await once(child, "exit")));
}

async function startServed(path: string): Promise<Peer> {
  const env = { ...process.env, HOLDFAST_HARNESS_LISTEN: `unix://${path}` };
  const child = spawn(process.execPath, [PEER], { env, stdio: ["pipe", "pipe", "ignore"] });
  await once(child.stdout, "data");
  const { line } = await dialHarness(`unix://${path}`);
  return peerOver(line, async () => {
    const exited = once(child, "exit");
    child.stdin.end();
    await exited;
  });
}

async function peerOver(line: HostLine, close: () => Promise<void>): Promise<Peer> {
  const harness = createLineHarness({ line, clock: PORTS.clock });
  await harness.ready();
  return {
    harness,
    [Symbol.asyncDispose]: async () => {
      const closed = close();
      await harness[Symbol.asyncDispose]();
      await closed;
    },
  };
}
