/** What idle streams of the interactive door take of a server that was started as its users start it. */

import { setTimeout as pause } from "node:timers/promises";
import type { BenchContext, Row } from "./context.ts";
import { CONNECTIONS, megabytes, Streams } from "./door-streams.ts";
import { serveByCommand } from "./served-by-command.ts";

const IDLE_STREAMS = 2_000;
/** How long a server has been there before it counts as idle, and when it is looked at after the last stream was opened. */
const FRESH_MS = 5_000;
const SETTLED_MS = [30_000, 120_000];

/** Memory that idle streams take of a server as its users have it: nobody collects its garbage but itself. */
export async function measureIdle(context: BenchContext): Promise<Row[]> {
  const count = context.scale(IDLE_STREAMS, IDLE_STREAMS / 10);
  const name = `${count.toLocaleString("en-GB")} idle streams on ${CONNECTIONS} connections, above the idle server`;
  await using server = await serveByCommand(context.newFolder());
  await pause(FRESH_MS);
  const fresh = server.memory();
  const rowAbove = (when: string): Row => {
    const { rssBytes, pssBytes } = server.memory();
    const pss = `proportional set ${((pssBytes - fresh.pssBytes) / 1e6).toFixed(1)} MB`;
    return { ...megabytes(`${name}, ${when}`, rssBytes - fresh.rssBytes), note: pss };
  };
  context.progress(`${count} idle streams`);
  using streams = new Streams(server.url);
  await streams.open(count);
  const rows = [rowAbove("as the last one has started")];
  let waitedMs = 0;
  for (const afterMs of context.quick ? SETTLED_MS.slice(0, 1) : SETTLED_MS) {
    await pause(afterMs - waitedMs);
    waitedMs = afterMs;
    rows.push({ ...rowAbove(`${afterMs / 1_000} s later`), target: { of: "value", bound: "at-most", limit: 80 } });
  }
  return rows;
}
