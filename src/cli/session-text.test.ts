import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { ComputeState, ExecState } from "../client/index.ts";
import { SessionSchema } from "../gen/agentsessions/v1/session_pb.ts";
import { sessionLines } from "./session-text.ts";

const linesOf = (init: Exclude<MessageInitShape<typeof SessionSchema>, { $typeName: string }>) => sessionLines(create(SessionSchema, init));

describe("a session as a person reads it", () => {
  it("claims live compute only while a turn runs: what a killed host had is what was last known", () => {
    const live = { computeState: ComputeState.COMPUTE_LIVE, compute: { runtime: "quickjs" } };
    expect(linesOf({ ...live, execState: ExecState.EXEC_RUNNING })).toContain("compute     live on quickjs");
    expect(linesOf({ ...live, execState: ExecState.EXEC_AWAITING })).toContain("compute     live on quickjs (last known)");
    expect(linesOf({ computeState: ComputeState.COMPUTE_COLD })).toContain("compute     cold");
  });

  it("shows its identity in full", () => {
    expect(linesOf({ identity: { principal: "alice" } })).toContain("identity    alice");
    expect(linesOf({ identity: { principal: "alice", issuer: "idp", subject: "s" } })).toContain("identity    alice  by idp  as s");
    expect(linesOf({ identity: { principal: "alice", issuer: "idp", subject: "alice" } })).toContain("identity    alice  by idp");
  });
});
