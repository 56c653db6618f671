import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { sessionUidOf, type SessionUid } from "../../base/index.ts";
import { EventSchema, ToolCallSchema } from "../../gen/agentsessions/v1/common_pb.ts";
import { emptySeed } from "../../testing/host.ts";
import { testDigest } from "../../testing/ports.ts";
import { DEPTH_ANNOTATION, depthOf, SPAWNED_BY_ANNOTATION, spawnerOf, TASK_ANNOTATION, taskOf, workerAnnotations } from "./annotations.ts";
import { spawnCallOf, workerUid } from "./spawn-call.ts";

const uid = (text: string): SessionUid => sessionUidOf(text);

describe("a worker's uid", () => {
  it("is the same for the same spawner and key, and a UUID", () => {
    const worker = workerUid(uid("parent"), "turn/call", testDigest);
    expect(workerUid(uid("parent"), "turn/call", testDigest)).toBe(worker);
    expect(worker).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  });

  it("stays what it was: journals name it", () => {
    expect(workerUid(uid("parent"), "turn/call", testDigest)).toBe("ce693333-dcb4-8fe8-a179-34f0d7509658");
  });

  it("differs for another spawner, another key, and where the two run into one another", () => {
    const uids = [
      workerUid(uid("parent"), "key", testDigest),
      workerUid(uid("other"), "key", testDigest),
      workerUid(uid("parent"), "another", testDigest),
      workerUid(uid("parentk"), "ey", testDigest),
    ];
    expect(new Set(uids).size).toBe(uids.length);
  });
});

describe("which event spawns", () => {
  const called = (tool: string) => create(EventSchema, { body: { case: "tool", value: create(ToolCallSchema, { id: "a", tool }) } });

  it("is a TOOL_CALL of the tool spawn, and no other", () => {
    expect(spawnCallOf(called("spawn"))?.id).toBe("a");
    expect(spawnCallOf(called("spawned"))).toBeUndefined();
    expect(spawnCallOf(create(EventSchema))).toBeUndefined();
  });
});

describe("a worker's annotations", () => {
  const root = emptySeed(uid("root"), 0);

  it("name its spawner, the root of the tree and its depth, over any number of generations", () => {
    const child = { ...emptySeed(uid("child"), 0), annotations: workerAnnotations(root) };
    expect(child.annotations).toEqual({ [SPAWNED_BY_ANNOTATION]: "root", [TASK_ANNOTATION]: "root", [DEPTH_ANNOTATION]: "1" });
    const grandchild = { ...emptySeed(uid("grandchild"), 0), annotations: workerAnnotations(child) };
    expect(grandchild.annotations).toEqual({ [SPAWNED_BY_ANNOTATION]: "child", [TASK_ANNOTATION]: "root", [DEPTH_ANNOTATION]: "2" });
    expect([spawnerOf(grandchild), taskOf(grandchild), depthOf(grandchild)]).toEqual(["child", "root", 2]);
  });

  it("are absent from a session that nobody spawned, which is the root of its own tree", () => {
    expect([spawnerOf(root), taskOf(root), depthOf(root)]).toEqual([undefined, "root", 0]);
  });

  it.each(["", "-1", "0", "01", "1e3", "3.5", "1234567890", "no number"])("count for nothing where the depth is %j", (depth) => {
    expect(depthOf({ ...root, annotations: { [DEPTH_ANNOTATION]: depth } })).toBe(0);
  });
});
