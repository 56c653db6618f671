import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { toHoldfastError } from "../../base/index.ts";
import { FeedbackNoteSchema } from "../../gen/holdfast/v1/agent_notes_pb.ts";
import { ListFeedbackRequestSchema } from "../../gen/holdfast/v1/feedback_pb.ts";
import type { Authorizer } from "../../spi/index.ts";
import { createMemoryStore } from "../../stores/memory/index.ts";
import { createMemoryNotes } from "../../stores/notes/index.ts";
import { seededPorts, testHarness, TestHost } from "../../testing/index.ts";
import { ALLOW_ALL } from "../access.ts";
import type { CallContext } from "../contract.ts";
import { addFeedback } from "./client-notes.ts";
import { createFeedbackService } from "./feedback.ts";

const context: CallContext = { caller: { identity: undefined }, signal: new AbortController().signal };

async function setup(authorizer: Authorizer = ALLOW_ALL) {
  const ports = seededPorts();
  const journal = createMemoryStore(ports);
  const notes = createMemoryNotes();
  const host = new TestHost({ journal, ports, harnesses: { test: testHarness(async () => undefined) } });
  const session = await host.createSession();
  const give = (messageId: string, rating = "up"): Promise<boolean> =>
    addFeedback(notes, session, create(FeedbackNoteSchema, { messageId, rating, timeMs: 1_500n, principal: "ada" }), 10);
  const service = createFeedbackService({ journal, authorizer, notes });
  const list = (after = 0n, pageSize = 0, of: string = session) =>
    service.listFeedback(create(ListFeedbackRequestSchema, { session: of, after, pageSize }), context);
  return { give, list, session };
}

const refusal = (act: Promise<unknown>): Promise<string> =>
  act.then(
    () => "nothing was refused",
    (error: unknown) => `${toHoldfastError(error).code} ${toHoldfastError(error).field ?? ""}`.trimEnd(),
  );

describe("the feedback of a session", () => {
  it("is listed in the order in which it came, with who gave it and when, page by page", async () => {
    const { give, list } = await setup();
    for (const [id, rating] of [
      ["m1", "up"],
      ["m2", "down"],
      ["m1", "down"],
    ] as const)
      await give(id, rating);
    const first = await list(0n, 2);
    expect(first.entries).toMatchObject([
      { place: 1n, messageId: "m1", rating: "up", principal: "ada", time: { seconds: 1n, nanos: 500_000_000 } },
      { place: 2n, messageId: "m2", rating: "down" },
    ]);
    expect((await list(2n, 2)).entries).toMatchObject([{ place: 3n, messageId: "m1", rating: "down" }]);
    expect((await list(3n)).entries).toEqual([]);
  });

  it("is refused by the field that is wrong, for an unknown session, and to whoever may not read it", async () => {
    const { list } = await setup();
    expect(await refusal(list(-1n))).toBe("invalid_argument after");
    expect(await refusal(list(0n, -1))).toBe("invalid_argument page_size");
    expect(await refusal(list(0n, 0, "018f0000-0000-7000-8000-000000000000"))).toBe("not_found session");
    const denied = await setup({ authorize: async () => ({ kind: "denied", reason: "no" }) });
    expect(await refusal(denied.list())).toBe("permission_denied");
  });
});
