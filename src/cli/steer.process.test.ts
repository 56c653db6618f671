import { describe, expect, it } from "vitest";
import { command } from "../../e2e/support/command.ts";
import { SILENT_LOG } from "../base/ports.ts";
import { createClient } from "../client/index.ts";
import { createNodeTransport } from "../client/node/index.ts";
import { startServer } from "../server/index.ts";
import { INBOX_TOOL, inboxMessage, messageText } from "../spi/index.ts";
import { testHarness, toolCall } from "../testing/index.ts";

describe("holdfast steer", () => {
  it("gives a message to the running turn through a real process, and says where it stands", async () => {
    const arrived = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    let execs = 0;
    const authorizer = {
      authorize: async (_caller: unknown, action: string) => {
        execs += action === "session.exec" ? 1 : 0;
        // The first is the turn's own.
        if (execs === 2) arrived.resolve();
        return { kind: "allowed" } as const;
      },
    };
    const listener = testHarness(async (_start, sink) => {
      begun.resolve();
      await arrived.promise;
      await new Promise((resolve) => setImmediate(resolve));
      const message = inboxMessage(await sink.toolCall(toolCall(INBOX_TOOL, "inbox")));
      await sink.output(`heard ${message === undefined ? "nothing" : messageText(message)}`);
    });
    const config = { listen: { host: "127.0.0.1", port: 0 }, store: { kind: "memory" } } as const;
    await using server = await startServer(config, { harnesses: { listener }, authorizer, log: SILENT_LOG });
    await using client = createClient({ transport: createNodeTransport({ address: server.url }) });
    const ask = (...args: string[]) => command([...args, "--server", server.url]);
    const { metadata } = await client.sessions.create({ harness: "listener" });
    const { uid } = metadata!;
    const late = await ask("steer", uid, "--input", "too early");
    expect([late.exitCode === 0, late.stderr]).toEqual([false, expect.stringContaining("no turn of it runs on this host")]);
    execs = 0;
    const turn = client.session(uid).exec({ inputs: "listen" });
    const story = turn.finish();
    await begun.promise;
    const { exitCode, stdout } = await ask("steer", uid, "--input", "only the north side");
    expect([exitCode, stdout]).toEqual([0, expect.stringMatching(new RegExp(`^session ${uid}  taken into \\S+  seq 4\\n$`))]);
    await story;
    expect((await ask("replay", uid)).stdout).toContain("heard only the north side");
    expect((await ask("steer", uid)).stderr).toContain("--input: must be given: the message");
  });
});
