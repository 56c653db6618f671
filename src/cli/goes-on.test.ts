import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { SessionSchema } from "../gen/agentsessions/v1/session_pb.ts";
import { goesOnLines } from "./goes-on.ts";

const lines = (session: Omit<MessageInitShape<typeof SessionSchema>, "$typeName" | "metadata">): readonly string[] =>
  goesOnLines(create(SessionSchema, { ...session, metadata: { uid: "s" } }), " --server x");

const RESUME = "let it go on with: holdfast resume s --server x";
const WORKER = { "holdfast.dev/spawned-by": "lead", "holdfast.dev/task": "lead", "holdfast.dev/depth": "1" };

describe("how a session goes on after a decision", () => {
  it("is a person's to say for a session of its own, and for a task", () => {
    expect(lines({})).toEqual([RESUME]);
    expect(lines({ annotations: { "holdfast.dev/kind": "task" } })).toEqual([RESUME]);
  });

  it("is its spawner's for a worker, and not for a fork of one", () => {
    expect(lines({ annotations: WORKER })).toEqual([
      "it goes on by itself, for the session that spawned it; if that was interrupted: holdfast resume lead --server x",
    ]);
    expect(lines({ annotations: WORKER, parentUid: "worker" })).toEqual([RESUME]);
  });

  it("is its client's for a conversation", () => {
    expect(lines({ annotations: { "holdfast.dev/kind": "interactive" } })).toEqual([
      "it goes on by itself where its client is connected, or once that comes back",
    ]);
  });

  it("comes after what else waits", () => {
    expect(lines({ pendingApproval: { toolCallId: "c2" } })).toEqual([
      "c2 waits for a decision too: holdfast approve s --call c2 --server x (or deny)",
      RESUME,
    ]);
  });
});
