import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create, fromBinary } from "@bufbuild/protobuf";
import { Client, credentials } from "@grpc/grpc-js";
import { describe, expect, it, onTestFinished } from "vitest";
import { SILENT_LOG } from "../base/index.ts";
import { IdentityRefSchema } from "../gen/agentsessions/v1/common_pb.ts";
import {
  ApproveRequestSchema,
  ExecRequestSchema,
  ExecState,
  ExecUpdateSchema,
  GetSessionRequestSchema,
  Sessions,
} from "../gen/agentsessions/v1/session_pb.ts";
import { ApprovalUpdateSchema, ToolCalls, WatchApprovalsRequestSchema, type ApprovalUpdate } from "../gen/holdfast/v1/calls_pb.ts";
import { createFunctionTools } from "../tools/index.ts";
import { gatedCall, storyOf, testHarness } from "../testing/index.ts";
import { ask, collect, stream } from "../../e2e/support/grpc-door.ts";
import { readConfig } from "./config.ts";
import { startServer } from "./start.ts";

/** Asks to write to two places, and says what came of it. */
const writer = testHarness(async (_, sink) => {
  const calls = ["/srv/a", "/etc/a"].map((path, at) => sink.toolCall(gatedCall("write", `w${at}`, { args: { path } })));
  for (const { isError } of await Promise.all(calls)) await sink.output(isError ? "no" : "yes");
});

async function served(file: unknown) {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-policies-"));
  const config = join(folder, "holdfast.json");
  writeFileSync(config, JSON.stringify(file));
  const written: string[] = [];
  const tools = createFunctionTools({
    write: {
      description: "",
      inputSchema: { type: "object" },
      idempotent: false,
      run: ({ path }) => void written.push(JSON.stringify(path)),
    },
  });
  const read = readConfig({ config, listen: "127.0.0.1:0", store: "memory", harness: "writer", registryListen: "off" }, {});
  const server = await startServer(read, { log: SILENT_LOG, harnesses: { writer }, tools });
  const client = new Client(`${server.host}:${server.port}`, credentials.createInsecure());
  onTestFinished(async () => {
    client.close();
    await server.shutdown({ graceMs: 0 });
    rmSync(folder, { recursive: true });
  });
  return { client, written, url: server.url };
}

/** One turn; its story and the session. */
async function turnOf(client: Client) {
  const updates = (await collect(stream(client, Sessions.method.exec, create(ExecRequestSchema)))).map((bytes) =>
    fromBinary(ExecUpdateSchema, bytes),
  );
  const story = updates.flatMap(({ update }) =>
    update.case === "record" && update.value.event !== undefined ? [storyOf(update.value.event)] : [],
  );
  const session = updates.findLast(({ update }) => update.case === "session")?.update.value;
  if (session?.$typeName !== "agentsessions.v1.Session") throw new Error("the stream has no session");
  return { story, session };
}

describe("a server with policies", () => {
  it("decides by the rules of its config file what a person need not", async () => {
    const policies = [
      { name: "own", tool: "write", args: { path: { under: "/srv" } }, do: "allow" },
      { name: "system", tool: "*", args: { path: { under: "/etc" } }, do: "deny", reason: "hands off" },
    ];
    const { client, written } = await served({ policies });
    const { story } = await turnOf(client);
    expect(story.filter((line) => /^APPROVAL_RESULT|^OUTPUT|^END/.test(line))).toEqual([
      "APPROVAL_RESULT w0 true",
      "APPROVAL_RESULT w1 false",
      "OUTPUT yes",
      "OUTPUT no",
      "END COMPLETED",
    ]);
    expect(written).toEqual([`"/srv/a"`]);
  });

  it("answers by itself what nobody does, and lets the turn go on", async () => {
    const { client, written } = await served({ approvals: { expireAfter: "1s", resume: true } });
    const { session } = await turnOf(client);
    expect(session.execState).toBe(ExecState.EXEC_AWAITING);
    const uid = session.metadata?.uid ?? "";
    const read = () => ask(client, Sessions.method.getSession, create(GetSessionRequestSchema, { uid }));
    await expect.poll(async () => (await read()).execState, { timeout: 15_000 }).toBe(ExecState.EXEC_COMPLETED);
    expect(written).toEqual([]);
  });

  it("takes no decision in the name of its own policies", async () => {
    const { client } = await served({});
    const { session } = await turnOf(client);
    const { executionId, toolCallId, requestSeq } = session.pendingApproval!;
    const identity = create(IdentityRefSchema, { issuer: "holdfast", principal: "policy", subject: "own" });
    const request = create(ApproveRequestSchema, {
      session: session.metadata?.uid ?? "",
      executionId,
      toolCallId,
      requestSeq,
      approved: true,
      identity,
    });
    await expect(ask(client, Sessions.method.approve, request)).rejects.toMatchObject({ code: "invalid_argument", field: "identity" });
  });
});

describe("a server's live inbox", () => {
  it("is told over gRPC and as events alike", async () => {
    const { client, url } = await served({});
    const calls = stream(client, ToolCalls.method.watchApprovals, create(WatchApprovalsRequestSchema));
    const received: ApprovalUpdate[] = [];
    calls.on("data", (bytes: Uint8Array) => received.push(fromBinary(ApprovalUpdateSchema, bytes)));
    calls.on("error", () => undefined);
    const events = await fetch(`${url}/v1/approvals/events`, { headers: { accept: "text/event-stream" } });
    const reader = events.body!.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    const has = async (words: string): Promise<void> => {
      while (!text.includes(words)) text += (await reader.read()).value ?? "";
    };
    await has("event: listed");
    const { session } = await turnOf(client);
    await has("event: requested");
    expect(text).toContain(session.metadata?.uid);
    await expect.poll(() => received.map(({ update }) => update.case)).toEqual(["listed", "requested", "requested"]);
    calls.cancel();
    await reader.cancel();
  });
});

describe("a server with budgets", () => {
  it("ends a turn that would spend more, and refuses the next one", async () => {
    const policies = [{ tool: "*", do: "allow" }];
    const { client, written } = await served({ policies, budgets: { turn: { toolCalls: 1 }, session: { turns: 1 } } });
    const { story, session } = await turnOf(client);
    expect(story.at(-1)).toContain("END FAILED");
    expect(written).toEqual([]);
    const again = collect(stream(client, Sessions.method.exec, create(ExecRequestSchema, { session: session.metadata?.uid ?? "" })));
    await expect(again).rejects.toMatchObject({
      code: "resource_exhausted",
      message: "budget session.turns: 1 of 1 are used; nothing was done",
    });
  });
});
