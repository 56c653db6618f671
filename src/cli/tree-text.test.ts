import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { ComputeState, DeletionState, ExecState } from "../client/index.ts";
import { LineageRowSchema } from "../gen/holdfast/v1/lineage_pb.ts";
import { treeLines } from "./tree-text.ts";

type Row = Exclude<MessageInitShape<typeof LineageRowSchema>, undefined>;

const drawn = (...rows: Row[]): string[] =>
  treeLines(
    rows.map((row) => create(LineageRowSchema, { execState: ExecState.EXEC_COMPLETED, lastSeq: 6n, ...row })),
    "",
  ).map(({ text }) => text);

describe("a tree of sessions", () => {
  it("draws each branch where it was forked, with state, head and name", () => {
    expect(
      drawn(
        { uid: "a", name: "main" },
        { uid: "b", depth: 1, forkSeq: 2n, parentUid: "a", execState: ExecState.EXEC_AWAITING },
        { uid: "c", depth: 2, forkSeq: 3n, parentUid: "b", name: "left" },
        { uid: "d", depth: 2, forkSeq: 4n, parentUid: "b", deletionState: DeletionState.DELETION_PENDING },
        { uid: "e", depth: 1, forkSeq: 6n, parentUid: "a", computeState: ComputeState.COMPUTE_COLD },
        { uid: "f", depth: 2, forkSeq: 7n, parentUid: "e" },
      ),
    ).toEqual([
      "a  completed  seq 6  main",
      "├─ at 2  b  awaiting  seq 6",
      "│  ├─ at 3  c  completed  seq 6  left",
      "│  └─ at 4  d  deleted  seq 6",
      "└─ at 6  e  completed  suspended  seq 6",
      "   └─ at 7  f  completed  seq 6",
    ]);
  });

  it("says what a cut tree hangs on, and what is left of a reclaimed session", () => {
    expect(drawn({ uid: "b", depth: 7, parentUid: "a", forkSeq: 2n }, { uid: "c", depth: 8, forkSeq: 9n, parentUid: "b" })).toEqual([
      "b  completed  seq 6  (forked from a at 2)",
      "└─ at 9  c  completed  seq 6",
    ]);
    expect(drawn({ uid: "a", reclaimed: true, createTime: {}, name: "old" })).toEqual(["a  reclaimed  seq 6  old"]);
    expect(drawn({ uid: "a", reclaimed: true }, { uid: "b", depth: 1, forkSeq: 1n, name: "\u001b[2J" })).toEqual([
      "a  reclaimed",
      "└─ at 1  b  completed  seq 6  \\u001b[2J",
    ]);
  });

  it("marks the one that was asked for", () => {
    const rows = ["a", "b"].map((uid, depth) => create(LineageRowSchema, { uid, depth }));
    expect(treeLines(rows, "b").map(({ isAsked }) => isAsked)).toEqual([false, true]);
  });
});
