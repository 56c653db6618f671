import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { SILENT_LOG } from "../base/index.ts";
import { createClient } from "../client/index.ts";
import { createNodeTransport } from "../client/node/index.ts";
import { TemporaryFolder } from "../testing/temporary-folder.ts";
import { testHarness, toolCall } from "../testing/index.ts";
import type { ToolResult } from "../spi/index.ts";
import { createFunctionTools, startServer, type ServerConfig } from "./index.ts";

const LARGE = "x".repeat(2 * 1024 * 1024);

/** A server on a data folder, with a tool whose output is too large for a record, and a harness that calls it. */
async function start(folder: string, config: Partial<ServerConfig> = {}) {
  const caller = testHarness((_start, sink) => sink.toolCall(toolCall("large", "c1")).then(() => undefined), { id: "caller" });
  const tools = createFunctionTools({ large: { description: "", run: () => LARGE } });
  const server = await startServer(
    { store: { kind: "sqlite", folder }, listen: { host: "127.0.0.1", port: 0 }, registry: { listen: "off", token: undefined }, ...config },
    { log: SILENT_LOG, harnesses: { caller }, tools },
  );
  const client = createClient({ transport: createNodeTransport({ address: server.url }) });
  const called = async () => {
    const uid = (await client.sessions.create({ harness: "caller" })).metadata?.uid ?? "";
    const results: ToolResult[] = [];
    for await (const item of client.session(uid).exec({ inputs: "go" })) {
      if (item.kind === "record" && item.record.event?.body.case === "result") results.push(item.record.event.body.value);
    }
    return { uid, results };
  };
  const end = async () => {
    await client[Symbol.asyncDispose]();
    await server.shutdown({ graceMs: 0 });
  };
  return { client, called, end };
}

function outputsIn(folder: string, session: string): string[] {
  const outputs = join(folder, "outputs", session);
  if (!existsSync(outputs)) return [];
  const entries = readdirSync(outputs, { recursive: true, withFileTypes: true });
  return entries.flatMap((entry) => (entry.isFile() ? [join(entry.parentPath, entry.name)] : []));
}

it("what a function returns is cut in the record, and whole beside the journal, whatever its size", async () => {
  using folder = new TemporaryFolder();
  const { called, end } = await start(folder.path);
  const { uid, results } = await called();
  expect(results).toMatchObject([{ isError: false, outputDigest: `sha256:${createHash("sha256").update(LARGE).digest("hex")}` }]);
  expect(outputsIn(folder.path, uid).map((file) => readFileSync(file, "utf8") === LARGE)).toEqual([true]);
  await end();
});

it("it goes with its session, and as the server starts if need be; those of other sessions stay", async () => {
  using folder = new TemporaryFolder();
  const first = await start(folder.path, { retentionMs: 0 });
  const [kept, lost, forked] = [await first.called(), await first.called(), await first.called()];
  await first.client.sessions.fork(forked.uid, { count: 1 });
  for (const { uid } of [lost, forked]) await first.client.session(uid).delete();
  const isGone = async (uid: string) =>
    (await first.client
      .session(uid)
      .get()
      .catch(() => undefined)) === undefined;
  await expect.poll(() => isGone(lost.uid), { timeout: 10_000 }).toBe(true);
  await first.end();
  for (const { uid } of [kept, lost, forked]) for (const file of outputsIn(folder.path, uid)) utimesSync(file, 1_000, 1_000);
  const second = await start(folder.path);
  await expect.poll(() => outputsIn(folder.path, lost.uid)).toEqual([]);
  await second.end();
  expect(readdirSync(join(folder.path, "outputs")).toSorted()).toEqual([kept.uid, forked.uid].toSorted());
  expect([kept, forked].map(({ uid }) => outputsIn(folder.path, uid).length)).toEqual([1, 1]);
});
