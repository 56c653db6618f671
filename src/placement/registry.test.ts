import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { HoldfastError } from "../base/errors.ts";
import { specDigest } from "../canon/index.ts";
import { HarnessSpecSchema } from "../gen/agentsessions/v1/harness_registry_pb.ts";
import type { RegistrationStore } from "../spi/index.ts";
import { createMemoryRegistrations } from "../stores/registry/index.ts";
import { seededPorts, testDigest } from "../testing/index.ts";
import { openHarnessRegistry } from "./registry.ts";

const at = (address: string) => create(HarnessSpecSchema, { placement: { case: "remote", value: { address } } });
const HERE = at("127.0.0.1:7000");
const THERE = at("127.0.0.1:7001");

function setUp(store: RegistrationStore = createMemoryRegistrations(), registrationsMax?: number) {
  const ports = seededPorts();
  const statics = [{ name: "echo" }, { name: "painter", spec: at("127.0.0.1:9") }];
  return { ports, store, open: () => openHarnessRegistry({ store, ports, statics, registrationsMax }) };
}

const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => "nothing",
    (error: unknown) => (error instanceof HoldfastError ? error.code : "no HoldfastError"),
  );

describe("a registry of harnesses", () => {
  it("registers, finds it there, retires it and takes it back", async () => {
    const { ports, open } = setUp();
    const registry = await open();
    const created = await registry.register("coder", HERE);
    expect(created).toMatchObject({
      kind: "created",
      row: { name: "coder", version: 1, spec: HERE, specDigest: specDigest(HERE, testDigest), retired: undefined },
    });
    ports.clock.advance(1_000);
    expect(await registry.register("coder", HERE)).toEqual({ kind: "unchanged", row: created.row });
    const retired = await registry.retire("coder", "broken");
    const nowMs = ports.clock.nowMs();
    expect(retired).toEqual({ ...created.row, version: 2, updateTimeMs: nowMs, retired: { timeMs: nowMs, reason: "broken" } });
    expect(registry.activeNames()).toEqual([]);
    ports.clock.advance(1_000);
    expect(await registry.retire("coder", "another reason")).toEqual(retired);
    expect(await registry.register("coder", HERE)).toMatchObject({
      kind: "reactivated",
      row: { uid: created.row.uid, version: 3, retired: undefined },
    });
    expect(registry.activeNames()).toEqual(["coder"]);
  });

  it("never changes the spec of a name, retired or not", async () => {
    const { open } = setUp();
    const registry = await open();
    await registry.register("coder", HERE);
    expect(await codeOf(registry.register("coder", THERE))).toBe("already_exists");
    await registry.retire("coder", "");
    expect(await codeOf(registry.register("coder", THERE))).toBe("already_exists");
    expect(registry.registered("coder")?.spec).toEqual(HERE);
  });

  it("leaves the host's own harnesses to its configuration", async () => {
    const { open } = setUp();
    const registry = await open();
    expect(await codeOf(registry.register("echo", HERE))).toBe("failed_precondition");
    expect(await codeOf(registry.retire("echo", ""))).toBe("failed_precondition");
    expect(registry.find("echo")).toEqual({ kind: "static", harness: { name: "echo" } });
    expect(await codeOf(registry.retire("nobody", ""))).toBe("not_found");
  });

  it("keeps the meaning of a registered name that became one of the host's own", async () => {
    const { store, ports } = setUp();
    await (await openHarnessRegistry({ store, ports, statics: [] })).register("echo", HERE);
    const registry = await setUp(store).open();
    expect(registry.find("echo")).toMatchObject({ kind: "registered" });
    expect((await registry.retire("echo", "")).retired).toBeDefined();
    expect(registry.list({ limit: 10, includeRetired: true }).harnesses).toHaveLength(2);
  });

  it("lets one of two registrations win, whoever races", async () => {
    const { open } = setUp();
    // Two hosts over one store, and two calls to one of them.
    const [one, other] = [await open(), await open()];
    const outcomes = await Promise.all([
      codeOf(one.register("coder", HERE)),
      codeOf(other.register("coder", THERE)),
      codeOf(one.register("coder", THERE)),
      codeOf(other.register("coder", HERE)),
    ]);
    expect(outcomes.toSorted()).toEqual(["already_exists", "already_exists", "nothing", "nothing"]);
    expect(one.registered("coder")).toEqual(other.registered("coder"));
  });

  it("makes a change of what the store has, and not of what it remembers", async () => {
    const { open } = setUp();
    const [one, other] = [await open(), await open()];
    const { row } = await one.register("coder", HERE);
    await other.register("coder", HERE);
    const retired = await other.retire("coder", "by the other");
    expect(await one.retire("coder", "by the one")).toEqual(retired);
    expect((await one.register("coder", HERE)).row.version).toBe(row.version + 2);
  });

  it("has its registrations when it is opened again", async () => {
    const { open } = setUp();
    const first = await open();
    await first.register("coder", HERE);
    await first.register("writer", THERE);
    await first.retire("writer", "done");
    const again = await open();
    expect(again.list({ limit: 10, includeRetired: true })).toEqual(first.list({ limit: 10, includeRetired: true }));
  });

  it("is not opened over a spec that is not what its digest says", async () => {
    const { store, open } = setUp();
    const registry = await open();
    const { row } = await registry.register("coder", HERE);
    const forged: RegistrationStore = { ...store, load: async () => [{ ...row, spec: THERE }] };
    expect(await codeOf(setUp(forged).open())).toBe("data_loss");
  });

  it("takes no more than its limit, and nothing that its store did not keep", async () => {
    const registry = await setUp(createMemoryRegistrations(), 2).open();
    await registry.register("a", HERE);
    await registry.register("b", HERE);
    expect(await codeOf(registry.register("c", HERE))).toBe("resource_exhausted");
    expect((await registry.register("a", HERE)).kind).toBe("unchanged");
    const full: RegistrationStore = {
      ...createMemoryRegistrations(),
      insert: async () => {
        throw new HoldfastError("resource_exhausted", "registry: the disk is full");
      },
    };
    const unlucky = await setUp(full).open();
    expect(await codeOf(unlucky.register("a", HERE))).toBe("resource_exhausted");
    expect(unlucky.find("a")).toBeUndefined();
  });

  it("lists in pages by name, with the host's own, and with retired ones when asked", async () => {
    const { open } = setUp();
    const registry = await open();
    for (const name of ["zebra", "coder", "ant"]) await registry.register(name, HERE);
    await registry.retire("coder", "");
    const namesOf = (includeRetired: boolean, limit: number) => {
      const pages: string[][] = [];
      let after: string | undefined;
      do {
        const { harnesses, next } = registry.list({ after, limit, includeRetired });
        pages.push(harnesses.map((known) => (known.kind === "static" ? known.harness.name : known.row.name)));
        after = next;
      } while (after !== undefined);
      return pages;
    };
    expect(namesOf(false, 3)).toEqual([["ant", "echo", "painter"], ["zebra"]]);
    expect(namesOf(true, 2)).toEqual([["ant", "coder"], ["echo", "painter"], ["zebra"]]);
    expect(namesOf(true, 5)).toEqual([["ant", "coder", "echo", "painter", "zebra"]]);
    expect(registry.list({ after: "zebra", limit: 1, includeRetired: true })).toEqual({ harnesses: [], next: undefined });
  });
});
