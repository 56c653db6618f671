import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { HoldfastError } from "../../base/index.ts";
import {
  CreateEnvironmentRequestSchema,
  DeleteEnvironmentRequestSchema,
  EnvironmentSource,
  GetEnvironmentRequestSchema,
  ListEnvironmentsRequestSchema,
  UpdateEnvironmentRequestSchema,
  type EnvironmentSchema,
} from "../../gen/holdfast/v1/environments_pb.ts";
import type { Action, Authorizer, Environment, EnvironmentStore, StoredEnvironment } from "../../spi/index.ts";
import { createMemoryEnvironments } from "../../stores/environments/index.ts";
import { seededPorts } from "../../testing/index.ts";
import { ALLOW_ALL } from "../access.ts";
import type { CallContext } from "../contract.ts";
import type { ServiceLimits } from "../limits.ts";
import { createEnvironmentsService, openEnvironmentLibrary, plainEnvironment } from "./index.ts";

const context: CallContext = { caller: { identity: undefined }, signal: new AbortController().signal };
type Init = MessageInitShape<typeof EnvironmentSchema>;

/** What a server reads in full is here a description and nothing else. */
const described = (id: string, { description = "" }: { readonly description?: unknown }): Environment => ({
  ...plainEnvironment(id),
  description: String(description),
});

interface BenchOptions {
  readonly authorizer?: Authorizer;
  readonly limits?: Partial<ServiceLimits>;
  readonly store?: EnvironmentStore;
  readonly environmentsMax?: number;
}

async function bench({ authorizer = ALLOW_ALL, limits, store = createMemoryEnvironments(), environmentsMax }: BenchOptions = {}) {
  const ports = seededPorts(7);
  const restore = ({ id, definition }: StoredEnvironment) => described(id, JSON.parse(definition) as object);
  const configured = [plainEnvironment(), { ...plainEnvironment("lab"), description: "configured" }];
  const library = await openEnvironmentLibrary({ configured, store, restore, ports, environmentsMax });
  const service = createEnvironmentsService({ library, read: described, authorizer, digest: ports.digest, limits });
  return {
    library,
    service,
    store,
    get: (id: string) => service.getEnvironment(create(GetEnvironmentRequestSchema, { id }), context),
    make: (environment: Init) => service.createEnvironment(create(CreateEnvironmentRequestSchema, { environment }), context),
    update: (environment: Init, expectedVersion: bigint) =>
      service.updateEnvironment(create(UpdateEnvironmentRequestSchema, { environment, expectedVersion }), context),
    remove: (id: string, expectedVersion = 0n) =>
      service.deleteEnvironment(create(DeleteEnvironmentRequestSchema, { id, expectedVersion }), context),
    list: (init: MessageInitShape<typeof ListEnvironmentsRequestSchema> = {}) =>
      service.listEnvironments(create(ListEnvironmentsRequestSchema, init), context),
  };
}

async function refusal(call: Promise<unknown>): Promise<string> {
  try {
    await call;
  } catch (error) {
    if (error instanceof HoldfastError) return `${error.code} ${error.field ?? "-"}`;
    throw error;
  }
  return "";
}

describe("the environments of a host", () => {
  it("are its own and those that were made, each found as it is now", async () => {
    const { library, make, update, remove, get } = await bench();
    expect(library.find("")).toEqual(plainEnvironment());
    expect(library.find("shop")).toBeUndefined();
    const made = await make({ id: "shop", description: "one" });
    expect(made).toMatchObject({ id: "shop", source: EnvironmentSource.CREATED, version: 1n, createTime: { nanos: 0 } });
    expect(library.find("shop")?.description).toBe("one");
    const changed = await update({ id: "shop", description: "two" }, 1n);
    expect(changed).toMatchObject({ version: 2n, uid: made.uid, createTime: made.createTime, description: "two" });
    expect(library.find("shop")?.description).toBe("two");
    expect(await get("shop")).toEqual(changed);
    expect(library.list().map(({ id }) => id)).toEqual(["default", "lab", "shop"]);
    expect(await remove("shop", 2n)).toEqual(changed);
    expect(library.find("shop")).toBeUndefined();
    expect(await refusal(get("shop"))).toBe("not_found id");
  });

  it("are told with their defaults", async () => {
    const { get } = await bench();
    expect(await get("default")).toMatchObject({
      harness: "agent",
      source: EnvironmentSource.CONFIGURED,
      version: 0n,
      uid: "",
      tools: { pure: [], physical: ["*"] },
      presence: { physical: "full", pure: "mini", idle: "hidden" },
    });
  });

  it("that the host has by itself are read and not changed", async () => {
    const { make, update, remove, get } = await bench();
    for (const id of ["default", "lab"]) {
      expect(await refusal(make({ id }))).toBe("failed_precondition id");
      expect(await refusal(update({ id }, 1n))).toBe("failed_precondition id");
      expect(await refusal(remove(id))).toBe("failed_precondition id");
    }
    expect((await get("lab")).description).toBe("configured");
  });

  it("are changed from what was read and from nothing else", async () => {
    const { make, update, remove } = await bench();
    const { uid } = await make({ id: "shop" });
    const rivals = await Promise.allSettled(["a", "b"].map((description) => update({ id: "shop", description }, 1n)));
    expect(rivals.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
    expect(await refusal(update({ id: "shop" }, 1n))).toBe("aborted expected_version");
    expect(await refusal(remove("shop", 1n))).toBe("aborted expected_version");
    await remove("shop");
    await make({ id: "shop" });
    expect(await refusal(update({ id: "shop", uid }, 1n))).toBe("aborted environment.uid");
    expect(await refusal(update({ id: "gone" }, 1n))).toBe("not_found id");
    expect(await refusal(remove("gone"))).toBe("not_found id");
    expect(await refusal(make({ id: "shop" }))).toBe("already_exists environment.id");
  });

  it("are refused by the field that is wrong", async () => {
    const { service, make, update, get, remove } = await bench();
    expect(await refusal(service.createEnvironment(create(CreateEnvironmentRequestSchema, {}), context))).toBe(
      "invalid_argument environment",
    );
    expect(await refusal(make({ id: "No" }))).toBe("invalid_argument environment.id");
    expect(await refusal(get(""))).toBe("invalid_argument id");
    expect(await refusal(update({ id: "shop" }, 0n))).toBe("invalid_argument expected_version");
    expect(await refusal(remove("shop", -1n))).toBe("invalid_argument expected_version");
  });

  it("are so many at most", async () => {
    const { make, remove } = await bench({ environmentsMax: 2 });
    await make({ id: "a" });
    await make({ id: "b" });
    expect(await refusal(make({ id: "c" }))).toBe("resource_exhausted environment");
    await remove("a");
    await make({ id: "c" });
  });

  it("are there when the host starts again, and keep their meaning", async () => {
    const store = createMemoryEnvironments();
    const first = await bench({ store });
    await first.make({ id: "shop", description: "one" });
    const second = await bench({ store });
    expect((await second.get("shop")).description).toBe("one");
    const configured = [plainEnvironment(), plainEnvironment("shop")];
    const restore = () => plainEnvironment("shop");
    await expect(openEnvironmentLibrary({ configured, store, restore, ports: seededPorts(1) })).rejects.toMatchObject({
      code: "failed_precondition",
      field: "environments.shop",
    });
  });

  it("are nobody's to read or to change who may not", async () => {
    const asked: Action[] = [];
    const authorizer: Authorizer = {
      async authorize(_caller, action) {
        asked.push(action);
        return { kind: "denied", reason: "no" };
      },
    };
    const { library, make, update, remove, list, get } = await bench({ authorizer });
    for (const call of [make({ id: "a" }), update({ id: "a" }, 1n), remove("a"), list(), get("lab")]) {
      expect(await refusal(call)).toBe("permission_denied -");
    }
    expect(asked).toEqual(["environment.write", "environment.write", "environment.write", "environment.read", "environment.read"]);
    expect(library.list()).toHaveLength(2);
  });
});

describe("a list of environments", () => {
  it("comes in pages, each after the one before", async () => {
    const { make, list } = await bench();
    for (const id of ["a", "z", "m"]) await make({ id });
    const seen: string[] = [];
    let pageToken = "";
    do {
      const page = await list({ pageSize: 2, pageToken });
      seen.push(page.environments.map(({ id }) => id).join("+"));
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    expect(seen).toEqual(["a+default", "lab+m", "z"]);
    expect((await list()).environments).toHaveLength(5);
  });

  it("ends a page early where environments are large, and never before the first", async () => {
    const { make, list } = await bench({ limits: { pageBytesSoftMax: 100 } });
    await make({ id: "a", description: "x".repeat(200) });
    const first = await list();
    expect(first.environments.map(({ id }) => id)).toEqual(["a"]);
    expect((await list({ pageToken: first.nextPageToken })).environments[0]?.id).toBe("default");
  });

  it("takes no token that it has not given out, and no negative size", async () => {
    const { list } = await bench();
    expect(await refusal(list({ pageToken: "x.y" }))).toBe("invalid_argument page_token");
    expect(await refusal(list({ pageSize: -1 }))).toBe("invalid_argument page_size");
  });
});
