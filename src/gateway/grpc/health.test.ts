import { create } from "@bufbuild/protobuf";
import type { Client } from "@grpc/grpc-js";
import { describe, expect, it } from "vitest";
import {
  Health as HealthProtocol,
  HealthCheckRequestSchema,
  HealthCheckResponse_ServingStatus,
} from "../../gen/grpc/health/v1/health_pb.ts";
import { clientMethod, errorOfStatus } from "../../grpc/index.ts";
import { ask, openDoor, stream } from "../../../e2e/support/grpc-door.ts";
import { SERVICES } from "./server.ts";

describe("health", () => {
  const check = (client: Client, service: string) =>
    ask(client, HealthProtocol.method.check, create(HealthCheckRequestSchema, { service }));
  const { SERVING, NOT_SERVING, SERVICE_UNKNOWN } = HealthCheckResponse_ServingStatus;

  it("is asked without a token, for the server and each of its services", async () => {
    const { client, health } = await openDoor({ token: "sesame" });
    const names = ["", ...SERVICES.map((service) => service.typeName)];
    for (const name of names) expect((await check(client, name)).status).toBe(SERVING);
    await expect(check(client, "nobody.v1.Nothing")).rejects.toMatchObject({ code: "not_found", field: "service" });
    for (const state of ["draining", "starting"] as const) {
      health.become(state);
      for (const name of names) expect((await check(client, name)).status).toBe(NOT_SERVING);
    }
  });

  it("is watched: the state at once, then every change, once each", async () => {
    const { client, health } = await openDoor();
    const { path, requestSerialize, responseDeserialize } = clientMethod(HealthProtocol.method.watch);
    const watching = client.makeServerStreamRequest(path, requestSerialize, responseDeserialize, create(HealthCheckRequestSchema));
    watching.on("error", () => undefined);
    const states: number[] = [];
    watching.on("data", (response: { status: number }) => states.push(response.status));
    await expect.poll(() => states).toEqual([SERVING]);
    health.become("serving");
    health.become("draining");
    await expect.poll(() => states).toEqual([SERVING, NOT_SERVING]);
    health.become("serving");
    await expect.poll(() => states).toEqual([SERVING, NOT_SERVING, SERVING]);
    watching.cancel();
    await expect.poll(() => health.watchers).toBe(0);
  });

  it("is SERVICE_UNKNOWN to whoever watches a service that is not there, and says no more", async () => {
    const { client } = await openDoor();
    const watching = stream(client, HealthProtocol.method.watch, create(HealthCheckRequestSchema, { service: "nobody" }), {
      deadlineMs: 80,
    });
    const seen: Uint8Array[] = [];
    watching.on("data", (bytes: Uint8Array) => seen.push(bytes));
    const error = await new Promise((resolve) => watching.on("error", resolve));
    expect(errorOfStatus(error).code).toBe("deadline_exceeded");
    expect(seen).toEqual([Buffer.from([0x08, SERVICE_UNKNOWN])]);
  });
});
