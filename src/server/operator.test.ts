import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { Client, credentials, Metadata } from "@grpc/grpc-js";
import { describe, expect, it, onTestFinished } from "vitest";
import type { LogFields } from "../base/index.ts";
import {
  GetHarnessRequestSchema,
  HarnessRegistry,
  HarnessSource,
  ListHarnessesRequestSchema,
  RegisterHarnessRequestSchema,
  RegisterOutcome,
} from "../gen/agentsessions/v1/harness_registry_pb.ts";
import { Health, HealthCheckRequestSchema } from "../gen/grpc/health/v1/health_pb.ts";
import { TEST_CERT, TEST_KEY } from "../../e2e/support/certificate.ts";
import { ask } from "../../e2e/support/grpc-door.ts";
import type { ServerConfig } from "./config.ts";
import { operatorAddress } from "./operator.ts";
import { startServer, type RunningServer } from "./start.ts";

interface Line {
  readonly level: string;
  readonly message: string;
  readonly fields: LogFields | undefined;
}

async function start(
  config: Partial<ServerConfig> = {},
): Promise<{ server: RunningServer; operator: Client; client: Client; lines: Line[] }> {
  const lines: Line[] = [];
  const log = { log: (level: string, message: string, fields?: LogFields) => void lines.push({ level, message, fields }) };
  const listen = { host: "127.0.0.1", port: 0 };
  const server = await startServer({ listen, store: { kind: "memory" }, ...config }, { log });
  const dial = (url: string): Client => new Client(url.replace(/^https?:\/\//, ""), credentials.createInsecure());
  const [operator, client] = [dial(server.operatorUrl ?? "127.0.0.1:1"), dial(server.url)];
  onTestFinished(async () => {
    operator.close();
    client.close();
    await server.shutdown({ graceMs: 0 });
  });
  return { server, operator, client, lines };
}

function bearer(token: string): Metadata {
  const metadata = new Metadata();
  metadata.set("authorization", `Bearer ${token}`);
  return metadata;
}

const coder = create(RegisterHarnessRequestSchema, {
  name: "coder",
  spec: { placement: { case: "remote", value: { address: "127.0.0.1:7000" } } },
});
const list = create(ListHarnessesRequestSchema);

describe("the operator's port of a server", () => {
  it("is on loopback, apart from the server's own, which has no registry", async () => {
    const { server, operator, client, lines } = await start();
    expect(server.operatorUrl).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect(server.operatorUrl).not.toBe(server.url);
    expect(lines).toContainEqual(expect.objectContaining({ level: "info", message: "serving the operator" }));
    expect((await ask(operator, HarnessRegistry.method.registerHarness, coder)).outcome).toBe(RegisterOutcome.CREATED);
    await expect(ask(client, HarnessRegistry.method.registerHarness, coder)).rejects.toMatchObject({ code: "unimplemented" });
    for (const path of ["/v1/harnesses", "/agentsessions.v1.HarnessRegistry/ListHarnesses"]) {
      expect((await fetch(`${server.url}${path}`, { method: "POST", body: "{}" })).status).toBe(404);
    }
    await expect(fetch(`${server.operatorUrl}/`)).rejects.toThrow("fetch failed");
    const { harnesses } = await ask(operator, HarnessRegistry.method.listHarnesses, list);
    expect(harnesses.map(({ metadata, source }) => [metadata?.name, source])).toEqual([
      ["agent", HarnessSource.STATIC],
      ["chat", HarnessSource.STATIC],
      ["coder", HarnessSource.REGISTERED],
      ["echo", HarnessSource.STATIC],
      ["history", HarnessSource.STATIC],
    ]);
  });

  it("is the next one, where the server's own is known", () => {
    expect(operatorAddress("beside", 8080)).toEqual({ host: "127.0.0.1", port: 8081 });
    expect(operatorAddress("beside", 0)).toEqual({ host: "127.0.0.1", port: 0 });
    expect(operatorAddress("beside", 65_535)).toEqual({ host: "127.0.0.1", port: 0 });
    expect(operatorAddress({ host: "::1", port: 9 }, 8080)).toEqual({ host: "::1", port: 9 });
    expect(operatorAddress("off", 8080)).toBeUndefined();
  });

  it("has a token of its own: that of sessions does not open it, nor its own the sessions", async () => {
    const registry = { listen: "beside", token: "operator" } as const;
    const { operator, client } = await start({ token: "session", registry });
    const { listHarnesses } = HarnessRegistry.method;
    for (const metadata of [new Metadata(), bearer("session")]) {
      await expect(ask(operator, listHarnesses, list, { metadata })).rejects.toMatchObject({ code: "unauthenticated" });
    }
    expect((await ask(operator, listHarnesses, list, { metadata: bearer("operator") })).harnesses.length).toBe(4);
    await expect(ask(client, listHarnesses, list, { metadata: bearer("operator") })).rejects.toMatchObject({ code: "unimplemented" });
    await ask(operator, Health.method.check, create(HealthCheckRequestSchema, { service: HarnessRegistry.typeName }));
  });

  it("says that it asks for no token where the sessions need one", async () => {
    const warned = ({ lines }: { readonly lines: readonly Line[] }) => lines.filter(({ level }) => level === "warn");
    expect(warned(await start({ token: "session" }))).toMatchObject([
      { message: expect.stringContaining("HOLDFAST_OPERATOR_TOKEN") as string },
    ]);
    expect(warned(await start())).toEqual([]);
  });

  it("speaks cleartext on loopback, whatever the server's own speaks", async () => {
    const { operator, server } = await start({ tls: { key: TEST_KEY, cert: TEST_CERT } });
    expect(server.operatorUrl).toMatch(/^http:/);
    await ask(operator, HarnessRegistry.method.listHarnesses, list);
  });

  it("is not there when it is off, and is given back with the server's own where it cannot be had", async () => {
    const off = await start({ registry: { listen: "off", token: undefined } });
    expect(off.server.operatorUrl).toBeUndefined();
    const { server } = await start();
    const taken = { host: "127.0.0.1", port: server.port };
    await expect(start({ registry: { listen: taken, token: undefined } })).rejects.toMatchObject({
      code: "failed_precondition",
      field: "registry.listen",
      message: "registry.listen: another process uses this port; stop it or choose another port",
    });
    await expect(start({ registry: { listen: { host: "0.0.0.0", port: 0 }, token: undefined } })).rejects.toMatchObject({
      field: "registry.listen",
    });
  });
});

describe("a server with a data folder", () => {
  it("has its registrations after a restart, and may have a registered harness as its default", async () => {
    const folder = mkdtempSync(join(tmpdir(), "holdfast-operator-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const store = { kind: "sqlite", folder } as const;
    const first = await start({ store });
    const { harness } = await ask(first.operator, HarnessRegistry.method.registerHarness, coder);
    await first.server.shutdown({ graceMs: 0 });
    const second = await start({ store, defaults: { harness: "coder", model: "" } });
    expect(await ask(second.operator, HarnessRegistry.method.getHarness, create(GetHarnessRequestSchema, { name: "coder" }))).toEqual(
      harness,
    );
    await second.server.shutdown({ graceMs: 0 });
    await expect(start({ store, defaults: { harness: "nobody", model: "" } })).rejects.toMatchObject({ field: "harness" });
  });
});
