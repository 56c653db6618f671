import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "vitest";
import { HoldfastError } from "../base/index.ts";
import { specDigest } from "../canon/index.ts";
import {
  GetHarnessRequestSchema,
  HarnessSource,
  HarnessSpecSchema,
  HarnessState,
  ListHarnessesRequestSchema,
  RegisterHarnessRequestSchema,
  RegisterOutcome,
  RetireHarnessRequestSchema,
} from "../gen/agentsessions/v1/harness_registry_pb.ts";
import { createHarnessCatalog, createLiveCatalog, openHarnessRegistry } from "../placement/index.ts";
import { describeHarness, Resumability, type Authorizer, type HarnessDescriptor } from "../spi/index.ts";
import { createMemoryRegistrations } from "../stores/registry/index.ts";
import { DialledHarnesses, seededPorts, testDigest, testHarness } from "../testing/index.ts";
import { ALLOW_ALL } from "./access.ts";
import type { CallContext } from "./contract.ts";
import { createHarnessRegistryService, type RegistryLimits } from "./harness-registry.ts";
import { pageToken as sessionsPageToken } from "./list-request.ts";

const context: CallContext = { caller: { identity: undefined }, signal: new AbortController().signal };
const HERE = "127.0.0.1:7000";

interface BenchOptions {
  readonly authorizer?: Authorizer;
  readonly limits?: Partial<RegistryLimits>;
}

async function bench({ authorizer = ALLOW_ALL, limits }: BenchOptions = {}) {
  const ports = seededPorts(5);
  const network = new DialledHarnesses();
  const store = createMemoryRegistrations();
  const echo = testHarness(async (_start, sink) => sink.output("static"));
  const painter = create(HarnessSpecSchema, { placement: { case: "remote", value: { address: "127.0.0.1:9" } } });
  const registry = await openHarnessRegistry({ store, ports, statics: [{ name: "echo" }, { name: "painter", spec: painter }] });
  const harnesses = createLiveCatalog({ fixed: createHarnessCatalog({ echo, painter: echo }), registry, entryFor: network.entryFor });
  const service = createHarnessRegistryService({ registry, harnesses, authorizer, ports, limits });
  return {
    ports,
    network,
    harnesses,
    service,
    painter,
    register: (
      name: string,
      init: MessageInitShape<typeof HarnessSpecSchema> = { placement: { case: "remote", value: { address: HERE } } },
    ) => service.registerHarness(create(RegisterHarnessRequestSchema, { name, spec: init }), context),
    get: (name: string, observe = false) => service.getHarness(create(GetHarnessRequestSchema, { name, observe }), context),
    retire: (name: string, reason = "") => service.retireHarness(create(RetireHarnessRequestSchema, { name, reason }), context),
    list: (init: MessageInitShape<typeof ListHarnessesRequestSchema> = {}) =>
      service.listHarnesses(create(ListHarnessesRequestSchema, init), context),
  };
}

const coder = (changes: Partial<HarnessDescriptor> = {}) =>
  testHarness(async (_start, sink) => sink.output("coded"), { id: "coder", ...changes });

describe("the registry service", () => {
  it("tells a registration from its creation to its return", async () => {
    const { ports, register, get, retire } = await bench();
    const createTime = timestampFromMs(ports.clock.nowMs());
    const spec = create(HarnessSpecSchema, { placement: { case: "remote", value: { address: HERE } }, descriptorId: "coder" });
    const { harness, outcome } = await register("coder", spec);
    expect(outcome).toBe(RegisterOutcome.CREATED);
    expect(harness).toMatchObject({
      metadata: { name: "coder", uid: expect.stringMatching(/^[0-9a-f-]{36}$/) as string, version: 1n, createTime, updateTime: createTime },
      spec,
      specDigest: specDigest(spec, testDigest),
      state: HarnessState.ACTIVE,
      source: HarnessSource.REGISTERED,
      retireReason: "",
      unservableReason: "",
    });
    expect(harness?.retireTime).toBeUndefined();
    expect(await register("coder", spec)).toMatchObject({ harness, outcome: RegisterOutcome.UNCHANGED });
    ports.clock.advance(5_000);
    const retireTime = timestampFromMs(ports.clock.nowMs());
    const retired = await retire("coder", "replaced");
    expect(retired).toMatchObject({
      state: HarnessState.RETIRED,
      retireTime,
      retireReason: "replaced",
      metadata: { version: 2n, updateTime: retireTime },
    });
    expect(await get("coder")).toEqual(retired);
    expect(await retire("coder", "again")).toEqual(retired);
    expect(await register("coder", spec)).toMatchObject({
      harness: { state: HarnessState.ACTIVE, retireReason: "" },
      outcome: RegisterOutcome.REACTIVATED,
    });
  });

  it("refuses what is wrong by the field, and what the state forbids", async () => {
    const { register, get, retire, list } = await bench();
    await expect(register("Coder")).rejects.toMatchObject({ code: "invalid_argument", field: "name" });
    await expect(register("coder", {})).rejects.toMatchObject({ code: "invalid_argument", field: "spec" });
    await expect(register("coder", { placement: { case: "remote", value: { address: "x" } } })).rejects.toMatchObject({
      field: "spec.remote.address",
    });
    await expect(register("echo")).rejects.toMatchObject({ code: "failed_precondition", field: "name" });
    await register("coder");
    const other = { placement: { case: "remote", value: { address: "127.0.0.1:7001" } } } as const;
    await expect(register("coder", other)).rejects.toMatchObject({ code: "already_exists", field: "name" });
    await expect(get("")).rejects.toMatchObject({ code: "invalid_argument", field: "name" });
    await expect(get("nobody")).rejects.toMatchObject({ code: "not_found", field: "name" });
    await expect(retire("nobody")).rejects.toMatchObject({ code: "not_found" });
    await expect(retire("echo")).rejects.toMatchObject({ code: "failed_precondition" });
    await expect(retire("coder", "a\u0007b")).rejects.toMatchObject({ code: "invalid_argument", field: "reason" });
    await expect(list({ pageSize: -1 })).rejects.toMatchObject({ code: "invalid_argument", field: "page_size" });
  });

  it("takes and keeps a substrate harness, and says that this host cannot serve it", async () => {
    const { register, harnesses } = await bench();
    const { harness } = await register("actor", { placement: { case: "substrate", value: { atespace: "agents", template: "coder" } } });
    expect(harness).toMatchObject({ state: HarnessState.ACTIVE, unservableReason: "this host has no substrate runtime" });
    expect(harnesses.names()).toEqual(["echo", "painter"]);
    const entry = harnesses.find("actor");
    expect(entry).toMatchObject({ source: "registered", open: false });
    await expect(entry?.describe()).rejects.toMatchObject({
      code: "failed_precondition",
      message: "harness: this host has no substrate runtime",
    });
  });

  it("asks the authorizer for each call", async () => {
    const asked: string[] = [];
    const authorizer: Authorizer = {
      authorize: async (_caller, action) => {
        asked.push(action);
        return { kind: "denied", reason: "not you" };
      },
    };
    const { register, get, retire, list } = await bench({ authorizer });
    for (const call of [register("coder"), get("echo"), retire("echo"), list()]) {
      await expect(call).rejects.toMatchObject({ code: "permission_denied", message: "not you" });
    }
    expect(asked).toEqual(["harness.operate", "harness.read", "harness.operate", "harness.read"]);
  });
});

describe("a list of harnesses", () => {
  it("comes in pages, the host's own too, and retired ones when asked", async () => {
    const { register, retire, list, painter } = await bench();
    for (const name of ["ant", "bee", "zebra"]) await register(name);
    await retire("bee");
    const seen: string[] = [];
    let pageToken = "";
    do {
      const page = await list({ pageSize: 2, pageToken, includeRetired: true });
      expect(page.harnesses.length).toBeLessThanOrEqual(2);
      for (const { metadata, source, state } of page.harnesses) {
        const words = [source === HarnessSource.STATIC ? "static" : "registered", state === HarnessState.RETIRED ? "retired" : "active"];
        seen.push([metadata?.name, ...words].join(" "));
      }
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    expect(seen).toEqual([
      "ant registered active",
      "bee registered retired",
      "echo static active",
      "painter static active",
      "zebra registered active",
    ]);
    const { harnesses } = await list();
    expect(harnesses.map(({ metadata }) => metadata?.name)).toEqual(["ant", "echo", "painter", "zebra"]);
    expect(harnesses[2]).toMatchObject({ spec: painter, specDigest: specDigest(painter, testDigest) });
    expect(harnesses[1]?.spec).toBeUndefined();
  });

  it("takes no page token that was not given out, nor one of sessions", async () => {
    const { register, list } = await bench();
    await register("ant");
    const { nextPageToken } = await list({ pageSize: 1 });
    const ofSessions = sessionsPageToken({ createTimeMs: 1, uid: "u" as never }, "", testDigest);
    for (const pageToken of ["x", `${nextPageToken}x`, nextPageToken.slice(1), ofSessions]) {
      await expect(list({ pageToken })).rejects.toMatchObject({ code: "invalid_argument", field: "page_token" });
    }
    expect((await list({ pageToken: nextPageToken })).harnesses.length).toBe(2);
  });
});

describe("observing a harness", () => {
  it("tells what it says of itself now, each time anew, and nothing unless asked", async () => {
    const { network, register, get } = await bench();
    await register("coder");
    network.serve(HERE, coder({ version: "1" }));
    expect((await get("coder")).observed).toBeUndefined();
    expect((await get("coder", true)).observed).toMatchObject({ id: "coder", version: "1" });
    network.serve(HERE, coder({ version: "2" }));
    expect(await get("coder", true)).toMatchObject({ observed: { version: "2" }, observeError: "", unservableReason: "" });
    expect((await get("echo", true)).observed).toMatchObject({ id: "test" });
  });

  it("tells why it could not, and tells nothing of an error that is not for callers", async () => {
    const { network, register, get } = await bench();
    await register("coder");
    expect(await get("coder", true)).toMatchObject({ observeError: "harness: it cannot be reached" });
    network.serve(HERE, { ...coder(), describe: () => Promise.reject(new Error("secret at /a/path")) });
    const registration = await get("coder", true);
    expect(registration.observed).toBeUndefined();
    expect(registration.observeError).toBe("an internal error; the server's log has the details");
    await register("actor", { placement: { case: "substrate", value: { atespace: "a", template: "t" } } });
    expect((await get("actor", true)).observeError).toBe("harness: this host has no substrate runtime");
  });

  it("waits for it for a time only, whether or not it listens to the signal", async () => {
    const { ports, network, register, get } = await bench({ limits: { observeTimeoutMs: 5_000 } });
    await register("coder");
    const asked = Promise.withResolvers<void>();
    const silent = (): Promise<never> => {
      asked.resolve();
      return new Promise<never>(() => undefined);
    };
    network.serve(HERE, { ...coder(), describe: silent });
    const observed = get("coder", true);
    await asked.promise;
    ports.clock.advance(5_000);
    expect((await observed).observeError).toBe("harness: it did not say what it is within 5000 ms");
    expect(ports.clock.pending).toBe(0);
  });

  it("ends with its caller, and asks a bounded number at once", async () => {
    const { network, register, service, get } = await bench({ limits: { observationsMax: 1 } });
    await register("coder");
    const asked = Promise.withResolvers<void>();
    const silent = (): Promise<never> => {
      asked.resolve();
      return new Promise<never>(() => undefined);
    };
    network.serve(HERE, { ...coder(), describe: silent });
    const caller = new AbortController();
    const request = create(GetHarnessRequestSchema, { name: "coder", observe: true });
    const observed = service.getHarness(request, { ...context, signal: caller.signal });
    await asked.promise;
    await expect(get("coder", true)).rejects.toMatchObject({ code: "resource_exhausted", field: "observe" });
    caller.abort(new HoldfastError("cancelled", "gone"));
    await expect(observed).rejects.toMatchObject({ code: "cancelled" });
    network.serve(HERE, coder());
    expect((await get("coder", true)).observed).toMatchObject({ id: "coder" });
  });

  it("says when the harness is another one, needs what there is not, or floods", async () => {
    const { network, register, get } = await bench({ limits: { descriptorBytesMax: 1_000 } });
    await register("coder", { placement: { case: "remote", value: { address: HERE } }, descriptorId: "coder" });
    network.serve(HERE, coder({ id: "painter" }));
    expect((await get("coder", true)).unservableReason).toContain("another descriptor id");
    const keepsMemory = describeHarness({
      id: "coder",
      version: "1",
      capabilities: { resumability: Resumability.REQUIRES_MEMORY_SNAPSHOT },
    });
    network.serve(HERE, { ...coder(), describe: async () => keepsMemory });
    expect(await get("coder", true)).toMatchObject({
      observed: { id: "coder" },
      unservableReason: expect.stringContaining("memory_snapshot") as string,
    });
    network.serve(HERE, coder({ models: ["m".repeat(1_000)] }));
    expect(await get("coder", true)).toMatchObject({ observeError: "harness: its descriptor must have at most 1000 bytes" });
  });
});
