/**
 * What a harness keeps in memory, on a server that is killed: the counter in a sandboxed VM goes on where its last turn left it, after
 * a suspension, after `kill -9` without one, and in every child of a fork (I4, I8).
 */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { createClient, type SessionHandle } from "../src/client/index.ts";
import { createNodeTransport } from "../src/client/node/index.ts";
import { ComputeState } from "../src/gen/agentsessions/v1/session_pb.ts";
import { messageText } from "../src/spi/index.ts";
import { newDataFolder, serve } from "./support/server-process.ts";

const SCRIPT = fileURLToPath(new URL("support/sandboxed/counter.ts", import.meta.url));

/** A server with the counter in a VM, and a client of it. */
async function counting(folder: string, more: Readonly<Record<string, unknown>> = {}) {
  const config = join(folder, "holdfast.json");
  writeFileSync(config, JSON.stringify({ harnesses: { counter: { runtime: "quickjs", script: SCRIPT } }, ...more }));
  const server = await serve(folder, { flags: ["--config", config] });
  const client = createClient({ transport: createNodeTransport({ address: server.url }) });
  onTestFinished(async () => {
    await client[Symbol.asyncDispose]();
    await server.end("SIGKILL");
  });
  return { server, client };
}

/** Runs a turn and resolves with what the counter said. */
const count = (session: SessionHandle): Promise<string> => said(session, "go");

/** Runs a turn with an input and resolves with what the harness said last. */
async function said(session: SessionHandle, input: string): Promise<string> {
  let last = "";
  for await (const item of session.exec({ inputs: input })) {
    const body = item.kind === "record" ? item.record.event?.body : undefined;
    if (body?.case === "message") last = messageText(body.value);
  }
  return last;
}

const uidOf = (session: { readonly metadata?: { readonly uid: string } | undefined }): string => session.metadata?.uid ?? "";

describe("a counter in a sandboxed VM", () => {
  it("goes on in another process after a suspension", async () => {
    const folder = newDataFolder();
    const first = await counting(folder);
    const uid = uidOf(await first.client.sessions.create({ harness: "counter" }));
    const session = first.client.session(uid);
    for (const expected of ["1", "2", "3"]) expect(await count(session)).toBe(expected);
    const cold = await session.suspend();
    expect(cold).toMatchObject({ computeState: ComputeState.COMPUTE_COLD, compute: { runtime: "quickjs", snapshot: { memory: true } } });
    await first.server.end("SIGKILL");

    const second = await counting(folder);
    const resumed = await second.client.session(uid).resume();
    expect(resumed.computeState).toBe(ComputeState.COMPUTE_LIVE);
    expect(await count(second.client.session(uid))).toBe("4");
    expect(await second.client.session(uid).verify()).toMatchObject({ intact: true });
  });

  it("goes on after kill -9 without one, from its last turn", async () => {
    const folder = newDataFolder();
    const first = await counting(folder);
    const uid = uidOf(await first.client.sessions.create({ harness: "counter" }));
    for (const expected of ["1", "2"]) expect(await count(first.client.session(uid))).toBe(expected);
    await first.server.end("SIGKILL");
    const second = await counting(folder);
    expect(await count(second.client.session(uid))).toBe("3");
  });

  it("goes on independently in eight children of one snapshot", async () => {
    const { client } = await counting(newDataFolder());
    const parent = client.session(uidOf(await client.sessions.create({ harness: "counter" })));
    for (const expected of ["1", "2"]) expect(await count(parent)).toBe(expected);
    const children = (await parent.fork({ count: 8 })).map((child) => client.session(uidOf(child)));
    const counts = await Promise.all(
      children.map(async (child, index) => {
        let last = "";
        for (let turn = 0; turn <= index; turn++) last = await count(child);
        return last;
      }),
    );
    expect(counts).toEqual(["3", "4", "5", "6", "7", "8", "9", "10"]);
    expect((await parent.get()).computeState).toBe(ComputeState.COMPUTE_COLD);
    expect(await count(parent)).toBe("3");
  });

  it("replays with the memory that it had", async () => {
    const { client } = await counting(newDataFolder());
    const session = client.session(uidOf(await client.sessions.create({ harness: "counter" })));
    for (let turn = 0; turn < 3; turn++) await count(session);
    const kinds: string[] = [];
    for await (const check of session.checkReplay()) kinds.push(check.kind);
    expect(kinds).toEqual(["same", "same", "same"]);
    expect(await count(session)).toBe("4");
  });

  it("goes warm, then cold, when nobody asks anything of it, and comes back by itself", async () => {
    const { client } = await counting(newDataFolder(), { pauseAfterIdleMs: 50, suspendAfterIdleMs: 150 });
    const session = client.session(uidOf(await client.sessions.create({ harness: "counter" })));
    expect(await count(session)).toBe("1");
    await expect.poll(async () => (await session.get()).computeState, { timeout: 20_000 }).toBe(ComputeState.COMPUTE_COLD);
    expect(await count(session)).toBe("2");
  });
});

describe("the REPL that comes with the host", () => {
  it("keeps its variables through a suspension, and every fork has its own", async () => {
    const { client } = await counting(newDataFolder(), { harnesses: { repl: { runtime: "quickjs", script: "builtin:repl" } } });
    const parent = client.session(uidOf(await client.sessions.create({ harness: "repl" })));
    await said(parent, "let x = 20; const add = (y) => x + y;");
    await parent.suspend();
    expect(await said(parent, "add(22)")).toBe("42");
    const [one, two] = (await parent.fork({ count: 2 })).map((child) => client.session(uidOf(child)));
    expect(await said(one!, "x = 1; add(1)")).toBe("2");
    expect(await said(two!, "add(1)")).toBe("21");
    expect(await said(parent, "add(2)")).toBe("22");
  });
});
