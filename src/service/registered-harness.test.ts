import { create } from "@bufbuild/protobuf";
import { describe, expect, it, onTestFinished } from "vitest";
import { hostIdOf, SILENT_LOG } from "../base/index.ts";
import { decodeLogRecord } from "../canon/index.ts";
import { createController } from "../controller/index.ts";
import { HarnessSpecSchema } from "../gen/agentsessions/v1/harness_registry_pb.ts";
import { CreateSessionRequestSchema, ExecRequestSchema, SessionSchema } from "../gen/agentsessions/v1/session_pb.ts";
import { createHarnessCatalog, createLiveCatalog, openHarnessRegistry } from "../placement/index.ts";
import { textMessage, type HarnessDescriptor } from "../spi/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import { createMemoryRegistrations } from "../stores/registry/index.ts";
import { DialledHarnesses, seededPorts, storyOf, testHarness, TestModel } from "../testing/index.ts";
import { ALLOW_ALL } from "./access.ts";
import type { CallContext } from "./contract.ts";
import { createSessionsService } from "./sessions.ts";

const context: CallContext = { caller: { identity: undefined }, signal: new AbortController().signal };
const HERE = "127.0.0.1:7000";

const coder = (changes: Partial<HarnessDescriptor> = {}) =>
  testHarness(async (_start, sink) => sink.output("coded"), { id: "coder", ...changes });

/** A host with two harnesses of its own, and a registry. */
async function bench() {
  const ports = seededPorts(5);
  const network = new DialledHarnesses();
  const echo = testHarness(async (_start, sink) => sink.output("static"));
  const registry = await openHarnessRegistry({
    store: createMemoryRegistrations(),
    ports,
    statics: [{ name: "echo" }, { name: "painter" }],
  });
  const harnesses = createLiveCatalog({ fixed: createHarnessCatalog({ echo, painter: echo }), registry, entryFor: network.entryFor });
  const journal = createMemoryStore(ports);
  const controller = createController({ journal, harnesses, models: new TestModel(), ports, log: SILENT_LOG, hostId: hostIdOf("host") });
  onTestFinished(() => controller[Symbol.asyncDispose]());
  const defaults = { harness: "echo", model: "" };
  const sessions = createSessionsService({ journal, controller, harnesses, authorizer: ALLOW_ALL, ports, defaults });
  return {
    network,
    harnesses,
    register: (name: string, descriptorId = "") =>
      registry.register(name, create(HarnessSpecSchema, { placement: { case: "remote", value: { address: HERE } }, descriptorId })),
    retire: (name: string) => registry.retire(name, ""),
    createSession: async (harness: string) => {
      const request = create(CreateSessionRequestSchema, { session: create(SessionSchema, { harness }) });
      return (await sessions.createSession(request, context)).metadata?.uid ?? "";
    },
    /** Runs a turn and tells its records in short words. */
    exec: async (session: string, harness = "") => {
      const story: string[] = [];
      const request = create(ExecRequestSchema, { session, harness, inputs: [textMessage("user", "hello")] });
      for await (const item of sessions.exec(request, context)) {
        const event = item.kind === "record" ? decodeLogRecord(item.record.bytes).event : undefined;
        if (event !== undefined) story.push(storyOf(event));
      }
      return story;
    },
  };
}

describe("a harness that is registered while the host runs", () => {
  it("drives sessions at once, and is closed to new ones when it is retired, while old ones go on", async () => {
    const { network, register, retire, createSession, exec, harnesses } = await bench();
    await expect(createSession("coder")).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining("echo, painter") as string,
    });
    network.serve(HERE, coder());
    await register("coder");
    expect(harnesses.names()).toEqual(["echo", "painter", "coder"]);
    const uid = await createSession("coder");
    expect(await exec(uid)).toContain("OUTPUT coded");
    await retire("coder");
    await expect(createSession("coder")).rejects.toMatchObject({ code: "failed_precondition" });
    await expect(exec("", "coder")).rejects.toMatchObject({ code: "failed_precondition" });
    expect(await exec(uid)).toContain("OUTPUT coded");
    await register("coder");
    await createSession("coder");
  });

  it("has its sessions to itself, and no others", async () => {
    const { network, register, createSession, exec } = await bench();
    network.serve(HERE, coder());
    await register("coder");
    const pinned = await createSession("coder");
    const free = await createSession("echo");
    for (const [session, harness] of [
      [pinned, "echo"],
      [pinned, "nobody"],
      [free, "coder"],
    ] as const) {
      await expect(exec(session, harness)).rejects.toMatchObject({ code: "failed_precondition", field: "harness" });
    }
    expect(await exec(pinned, "coder")).toContain("OUTPUT coded");
    expect(await exec(free, "painter")).toContain("OUTPUT static");
    await expect(exec(free, "nobody")).rejects.toMatchObject({
      code: "invalid_argument",
      message: expect.stringContaining("echo, painter, coder") as string,
    });
  });

  it("is not served where another harness answers, and nothing is written", async () => {
    const { network, register, createSession, exec } = await bench();
    await register("coder", "coder");
    const uid = await createSession("coder");
    network.serve(HERE, coder({ id: "impostor" }));
    await expect(exec(uid)).rejects.toMatchObject({ code: "failed_precondition" });
    network.serve(HERE, coder());
    const [first] = await exec(uid);
    expect(first).toContain("EXECUTION_START");
  });

  it("is dialled by nobody before it is used", async () => {
    const { network, register, retire, createSession, harnesses } = await bench();
    await register("coder");
    expect(harnesses.names()).toContain("coder");
    await createSession("coder");
    await retire("coder");
    expect(network.dialled).toBe(0);
  });

  it("is named among at most 20 others to whoever asks for one that is not there", async () => {
    const { register, createSession } = await bench();
    for (let index = 0; index < 25; index++) await register(`agent-${index}`);
    const refused = await createSession("nobody").catch((error: unknown) => error);
    expect(String(refused)).toMatch(/it serves: echo, painter, agent-0, .* and 7 more$/);
  });
});
