import { create, fromBinary, type DescMessage } from "@bufbuild/protobuf";
import { Client, credentials, Metadata } from "@grpc/grpc-js";
import { describe, expect, it, onTestFinished } from "vitest";
import { HoldfastError, SILENT_LOG } from "../../base/index.ts";
import {
  GetHarnessRequestSchema,
  HarnessRegistrationSchema,
  HarnessRegistry,
  ListHarnessesResponseSchema,
  RegisterHarnessResponseSchema,
} from "../../gen/agentsessions/v1/harness_registry_pb.ts";
import { Sessions } from "../../gen/agentsessions/v1/session_pb.ts";
import {
  Health,
  HealthCheckRequestSchema,
  HealthCheckResponse_ServingStatus as ServingStatus,
} from "../../gen/grpc/health/v1/health_pb.ts";
import {
  ServerReflection,
  ServerReflectionRequestSchema,
  ServerReflectionResponseSchema,
} from "../../gen/grpc/reflection/v1/reflection_pb.ts";
import { Journal } from "../../gen/holdfast/v1/journal_pb.ts";
import { rawClientMethod, type MethodDesc } from "../../grpc/index.ts";
import { systemClock } from "../../node/index.ts";
import type { HarnessRegistryService } from "../../service/index.ts";
import { ask, collect, openDoor, stream, TestHealth } from "../../../e2e/support/grpc-door.ts";
import { listen } from "../listener.ts";
import { createOperatorServer } from "./operator.ts";

/** An operator's door on a port of its own, which answers each call by the name that it asks for. */
async function openOperatorDoor(token?: string) {
  const health = new TestHealth();
  const registry: HarnessRegistryService = {
    registerHarness: async () => create(RegisterHarnessResponseSchema),
    getHarness: async ({ name }) => create(HarnessRegistrationSchema, { metadata: { name } }),
    listHarnesses: async () => create(ListHarnessesResponseSchema),
    retireHarness: async () => create(HarnessRegistrationSchema),
  };
  const server = createOperatorServer({
    registry,
    health,
    authenticate: (authorization) => {
      if (token === undefined || authorization === `Bearer ${token}`) return { identity: undefined };
      throw new HoldfastError("unauthenticated", "authorization: must be the operator's token");
    },
    log: SILENT_LOG,
  });
  const listener = await listen({
    host: "127.0.0.1",
    port: 0,
    http1: (socket) => void socket.destroy(),
    http2: (socket) => server.accept(socket),
    clock: systemClock,
    log: SILENT_LOG,
  });
  const client = new Client(`127.0.0.1:${listener.port}`, credentials.createInsecure());
  onTestFinished(async () => {
    health.close();
    client.close();
    await server.close(200);
    await listener.close();
  });
  return { client, health, port: listener.port };
}

function bearer(token: string): Metadata {
  const metadata = new Metadata();
  metadata.set("authorization", `Bearer ${token}`);
  return metadata;
}

/** The services that reflection lists. */
async function servicesOf(client: Client): Promise<string[]> {
  const { path, requestSerialize, responseDeserialize } = rawClientMethod(ServerReflection.method.serverReflectionInfo);
  const call = client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize);
  call.write(create(ServerReflectionRequestSchema, { messageRequest: { case: "listServices", value: "" } }));
  call.end();
  const [answer = new Uint8Array()] = await collect(call);
  const { messageResponse } = fromBinary(ServerReflectionResponseSchema, answer);
  return messageResponse.case === "listServicesResponse" ? messageResponse.value.service.map(({ name }) => name) : [];
}

const get = create(GetHarnessRequestSchema, { name: "coder" });
const registryMethods: readonly MethodDesc<DescMessage, DescMessage>[] = HarnessRegistry.methods.map((method) => method as never);

describe("the operator's door", () => {
  it("serves the registry, health and reflection, and says so", async () => {
    const { client } = await openOperatorDoor();
    expect((await ask(client, HarnessRegistry.method.getHarness, get)).metadata?.name).toBe("coder");
    for (const method of registryMethods) await ask(client, method, new Uint8Array());
    expect(await servicesOf(client)).toEqual([
      "agentsessions.v1.HarnessRegistry",
      "grpc.health.v1.Health",
      "grpc.reflection.v1.ServerReflection",
      "grpc.reflection.v1alpha.ServerReflection",
    ]);
  });

  it("tells its health, by the name of its service too, and knows no session's", async () => {
    const { client, health } = await openOperatorDoor("sesame");
    const of = (service: string) => ask(client, Health.method.check, create(HealthCheckRequestSchema, { service }));
    expect((await of(HarnessRegistry.typeName)).status).toBe(ServingStatus.SERVING);
    await expect(of(Sessions.typeName)).rejects.toMatchObject({ code: "not_found" });
    health.become("draining");
    expect((await of("")).status).toBe(ServingStatus.NOT_SERVING);
  });

  it("lets nobody in without its token", async () => {
    const { client } = await openOperatorDoor("sesame");
    for (const method of registryMethods) {
      await expect(ask(client, method, new Uint8Array())).rejects.toMatchObject({ code: "unauthenticated" });
      await expect(ask(client, method, new Uint8Array(), { metadata: bearer("other") })).rejects.toMatchObject({ code: "unauthenticated" });
      await ask(client, method, new Uint8Array(), { metadata: bearer("sesame") });
    }
  });

  it("has no session, for whoever it lets in", async () => {
    const { client } = await openOperatorDoor();
    for (const service of [Sessions, Journal]) {
      for (const method of service.methods) {
        const call = collect(stream(client, method as never, new Uint8Array()));
        await expect(call, method.name).rejects.toMatchObject({ code: "unimplemented" });
      }
    }
  });

  it("speaks to no browser: HTTP/1.1 is closed without an answer", async () => {
    const { port } = await openOperatorDoor();
    await expect(fetch(`http://127.0.0.1:${port}/`)).rejects.toThrow("fetch failed");
  });
});

describe("the door of session clients", () => {
  it("has no registry, whatever token a caller has", async () => {
    const { client } = await openDoor({ token: "sesame" });
    for (const metadata of [new Metadata(), bearer("sesame"), bearer("other")]) {
      for (const method of registryMethods) {
        await expect(ask(client, method, new Uint8Array(), { metadata }), method.name).rejects.toMatchObject({ code: "unimplemented" });
      }
    }
    expect((await servicesOf(client)).filter((name) => name.includes("Registry"))).toEqual([]);
    const health = ask(client, Health.method.check, create(HealthCheckRequestSchema, { service: HarnessRegistry.typeName }));
    await expect(health).rejects.toMatchObject({ code: "not_found" });
  });
});
