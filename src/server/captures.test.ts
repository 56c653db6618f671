import { existsSync, mkdtempSync, readdirSync, renameSync, rmSync, utimesSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { SILENT_LOG } from "../base/index.ts";
import { createClient } from "../client/index.ts";
import { createNodeTransport } from "../client/node/index.ts";
import { storyOf } from "../testing/index.ts";
import type { ServerConfig } from "./config.ts";
import { startServer } from "./start.ts";

const COUNTER = { counter: { runtime: "quickjs", script: "builtin:counter" } } as const;

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-captures-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** A server on a data folder, and one turn of a session on it. */
async function start(folder: string, config: Partial<ServerConfig> = { harnesses: COUNTER }) {
  const server = await startServer(
    { listen: { host: "127.0.0.1", port: 0 }, store: { kind: "sqlite", folder }, ...config },
    { log: SILENT_LOG },
  );
  const client = createClient({ transport: createNodeTransport({ address: server.url }) });
  const count = async (session: string): Promise<string> => {
    const stories = (await Array.fromAsync(client.session(session).exec({ inputs: "go" }))).flatMap((item) =>
      item.kind === "record" && item.record.event !== undefined ? [storyOf(item.record.event)] : [],
    );
    return stories.find((story) => story.startsWith("OUTPUT ")) ?? "";
  };
  return {
    client,
    count,
    created: async () => (await client.sessions.create({ harness: "counter" })).metadata?.uid ?? "",
    end: async () => {
      await client[Symbol.asyncDispose]();
      await server.shutdown({ graceMs: 0 });
    },
  };
}

function files(folder: string): string[] {
  const entries = readdirSync(join(folder, "captures"), { recursive: true, withFileTypes: true });
  return entries.flatMap((entry) => (entry.isFile() ? [join(entry.parentPath, entry.name)] : [])).toSorted();
}

function makeOld(folder: string): void {
  for (const file of files(folder)) utimesSync(file, 1_000, 1_000);
}

describe("the captures of a server", () => {
  it("have a folder of their own, which is made for the first harness that needs it", async () => {
    const folder = newFolder();
    await (await start(folder, {})).end();
    expect(existsSync(join(folder, "captures"))).toBe(false);
    const { created, count, end } = await start(folder);
    expect(await count(await created())).toBe("OUTPUT 1");
    await end();
    expect(files(folder)).toHaveLength(2);
    expect(existsSync(join(folder, "blobs"))).toBe(false);
  });

  it("are swept as it starts: what no session needs goes, also where no harness of it captures any more", async () => {
    const folder = newFolder();
    const first = await start(folder);
    const [kept, lost] = [await first.created(), await first.created()];
    for (const session of [kept, lost]) expect(await first.count(session)).toBe("OUTPUT 1");
    await first.client.session(lost).delete();
    await first.end();
    expect(files(folder)).toHaveLength(3);
    makeOld(folder);

    const second = await start(folder, { retentionMs: 0 });
    await expect
      .poll(
        async () =>
          (await second.client
            .session(lost)
            .get()
            .catch(() => undefined)) === undefined,
      )
      .toBe(true);
    await second.end();
    const third = await start(folder, {});
    await expect.poll(() => files(folder).length).toBe(2);
    await third.end();

    const fourth = await start(folder);
    expect(await fourth.count(kept)).toBe("OUTPUT 2");
    await fourth.end();
  });

  it("are found where an earlier version stored them, and what is named anew moves to their own folder", async () => {
    const folder = newFolder();
    const first = await start(folder);
    const session = await first.created();
    expect(await first.count(session)).toBe("OUTPUT 1");
    await first.end();
    renameSync(join(folder, "captures"), join(folder, "blobs"));

    const second = await start(folder);
    expect(await second.count(session)).toBe("OUTPUT 2");
    await second.end();
    // The base, the capture that was there, and the new one.
    expect(files(folder)).toHaveLength(3);
    rmSync(join(folder, "blobs"), { recursive: true });

    const third = await start(folder);
    expect(await third.count(session)).toBe("OUTPUT 3");
    await third.end();
  });
});
