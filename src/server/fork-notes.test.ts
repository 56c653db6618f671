import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { SILENT_LOG } from "../base/index.ts";
import { createClient, ToolCategoryHint, type AgentEvent, type AgentStream } from "../client/index.ts";
import { createNodeTransport } from "../client/node/index.ts";
import { readConfig } from "./config.ts";
import { startServer } from "./index.ts";

const SCRIPT = `
completions:
  - on: { step: 1, user: look }
    calls: [{ tool: look, args: {} }]
  - text: "Yes."
`;

/** The next event of this kind. */
async function next<Kind extends AgentEvent["kind"]>(
  events: AsyncIterator<AgentEvent>,
  kind: Kind,
): Promise<Extract<AgentEvent, { readonly kind: Kind }>> {
  for (;;) {
    const { value, done } = await events.next();
    if (done === true) throw new Error(`the stream ended before ${kind}`);
    if (isOf(value, kind)) return value;
  }
}

function isOf<Kind extends AgentEvent["kind"]>(event: AgentEvent, kind: Kind): event is Extract<AgentEvent, { readonly kind: Kind }> {
  return event.kind === kind;
}

const eventsOf = (stream: AgentStream): AsyncIterator<AgentEvent> => stream[Symbol.asyncIterator]();

it("a fork has the tools of the session that it came from, also when that was deleted and reclaimed", async () => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-fork-notes-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, "model.yaml"), SCRIPT);
  const model = `script:${join(folder, "model.yaml")}`;
  const read = readConfig({ listen: "127.0.0.1:0", store: "memory", registryListen: "off", harness: "agent", model }, {});
  await using server = await startServer({ ...read, retentionMs: 0 }, { log: SILENT_LOG });
  await using client = createClient({ transport: createNodeTransport({ address: server.url }) });

  await using parent = client.agent.stream();
  const tools = [{ name: "look", description: "Looks.", category: ToolCategoryHint.TOOL_CATEGORY_PURE }];
  await parent.send({ case: "start", value: { tools } });
  const told = eventsOf(parent);
  const session = (await next(told, "started")).started.sessionId;
  await parent.send({ case: "userMessage", value: { content: "hello" } });
  await next(told, "turn-complete");
  const [fork] = await client.sessions.fork(session, { count: 1 });
  const child = fork?.metadata?.uid ?? "";
  await client.sessions.delete(session);
  const isReclaimed = async (): Promise<boolean> => {
    const { rows } = await client.journal.lineage(child);
    return rows.some(({ uid, reclaimed }) => uid === session && reclaimed);
  };
  await expect.poll(isReclaimed, { timeout: 10_000 }).toBe(true);

  await using stream = client.agent.stream({ session: child });
  const heard = eventsOf(stream);
  await stream.send({ case: "userMessage", value: { content: "look" } });
  const { request } = await next(heard, "tool-request");
  expect(request.toolName).toBe("look");
  await stream.send({ case: "toolResult", value: { toolCallId: request.toolCallId, success: true } });
  await next(heard, "turn-complete");
});
