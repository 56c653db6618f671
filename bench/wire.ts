/**
 * What a line costs: one session's turns with one model call, one after the other, on SQLite with `synchronous=FULL`. The same harness in
 * this process, at the other end of a child's standard streams, and of a unix socket. The journal has a writer thread, as a server's has.
 */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { SILENT_LOG } from "../src/base/index.ts";
import { createController } from "../src/controller/index.ts";
import { createEchoHarness } from "../src/harnesses/index.ts";
import { createLineHarness, type HostLine } from "../src/harness-wire/index.ts";
import { dialHarness, hostLineOver } from "../src/harness-wire/node/index.ts";
import { createEchoProvider, createModelCatalog } from "../src/models/index.ts";
import { createHarnessCatalog } from "../src/placement/index.ts";
import type { Harness } from "../src/spi/index.ts";
import type { BenchContext, Row, Target } from "./context.ts";
import { HOST_ID, runTurn } from "./host.ts";
import { median, pairedRatio, Stopwatch, takeTurns, type Figure, type Rounds } from "./statistics.ts";
import { createSession, PORTS, withStore } from "./stores.ts";

const TARGET: Target = { of: "ratio", bound: "at-most", limit: 1.5 };
const INPUT = "Summarise what changed since yesterday, and say what is left to do.";
const PEER = fileURLToPath(new URL("wire-peer.ts", import.meta.url));

/** Measures the `wire` group. */
export async function measureWire(context: BenchContext): Promise<Row[]> {
  const turns = context.scale(600, 150);
  await using child = await startChild();
  await using socket = await startServed(join(context.newFolder(), "harness.sock"));
  const rounds = await takeTurns(context, "turns over a line", context.scale(9, 3), {
    local: () => turnsOf(context, createEchoHarness(), turns),
    child: () => turnsOf(context, child.harness, turns),
    socket: () => turnsOf(context, socket.harness, turns),
  });
  return [
    rowOf("turn with its harness in process, p50", rounds.local),
    { ...rowOf("turn over a child's standard streams, p50", rounds.child), ratio: pairedRatio(rounds.local, rounds.child), target: TARGET },
    { ...rowOf("turn over a unix socket, p50", rounds.socket), ratio: pairedRatio(rounds.local, rounds.socket), target: TARGET },
  ];
}

function rowOf(name: string, { median: perSecond, spread: [least, most], cpuUs }: Rounds): Row {
  return { group: "wire", name, value: 1000 / perSecond, unit: "ms", spread: [1000 / most, 1000 / least], cpuUs };
}

/** The median turn of one session, as turns a second. */
function turnsOf(context: BenchContext, harness: Harness, turns: number): Promise<Figure> {
  return withStore(context, "worker", async (store) => {
    await using controller = createController({
      journal: store,
      harnesses: createHarnessCatalog({ echo: harness }),
      models: createModelCatalog({ routes: [{ match: "echo", provider: createEchoProvider() }] }),
      ports: PORTS,
      log: SILENT_LOG,
      hostId: HOST_ID,
    });
    const session = await createSession(store);
    const latenciesMs: number[] = [];
    const whole = new Stopwatch();
    for (let turn = 0; turn < turns; turn++) {
      const watch = new Stopwatch();
      await runTurn(controller, store, session, [INPUT]);
      latenciesMs.push(watch.elapsedMs());
    }
    return { perSecond: 1000 / median(latenciesMs), cpuUs: whole.cpuUs() / turns };
  });
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
