import { create } from "@bufbuild/protobuf";
import { Metadata } from "@grpc/grpc-js";
import { describe, expect, it } from "vitest";
import { ERROR_CODES, HoldfastError, type ErrorCode } from "../../base/index.ts";
import { GetSessionRequestSchema, Sessions } from "../../gen/agentsessions/v1/session_pb.ts";
import type { CallContext } from "../../service/contract.ts";
import { ask, openDoor, session, untilAborted } from "../../../e2e/support/grpc-door.ts";

const get = create(GetSessionRequestSchema, { uid: "u" });

describe("a unary call over gRPC", () => {
  it("is answered by its handler, with the request's fields and the caller", async () => {
    const seen: [string, CallContext][] = [];
    const { client } = await openDoor({
      sessions: {
        getSession: async (request, context) => {
          seen.push([request.uid, context]);
          return session;
        },
      },
    });
    expect(await ask(client, Sessions.method.getSession, get)).toEqual(session);
    expect(seen[0]?.[0]).toBe("u");
    expect(seen[0]?.[1].signal.aborted).toBe(false);
  });

  for (const code of Object.keys(ERROR_CODES) as ErrorCode[]) {
    it(`tells ${code} with the handler's message and field`, async () => {
      const { client } = await openDoor({
        sessions: {
          getSession: async () => {
            throw new HoldfastError(code, "uid: é is wrong, 100 % of it", { field: "uid" });
          },
        },
      });
      await expect(ask(client, Sessions.method.getSession, get)).rejects.toMatchObject({
        code,
        message: "uid: é is wrong, 100 % of it",
        field: "uid",
      });
    });
  }

  it("is answered whatever its handler throws, and tells nothing of it", async () => {
    const logged: unknown[] = [];
    const thrown: unknown[] = [new Error("a secret at /a/path"), "a secret", undefined, null, { code: 5 }];
    for (const what of thrown) {
      const { client } = await openDoor({
        sessions: {
          getSession: () => {
            throw what;
          },
        },
        onLog: (message, fields) => logged.push(message, fields),
      });
      const refused = await ask(client, Sessions.method.getSession, get).catch((error: unknown) => error);
      expect(refused).toMatchObject({ code: "internal" });
      expect(String(refused)).not.toContain("secret");
    }
    expect(logged.length).toBe(2 * thrown.length);
    expect(JSON.stringify(logged)).not.toContain("secret");
  });

  it("is INVALID_ARGUMENT for bytes that are no such request, by the field", async () => {
    const { client } = await openDoor();
    await expect(ask(client, Sessions.method.getSession, Uint8Array.of(0x08, 0x01))).rejects.toMatchObject({
      code: "invalid_argument",
      message: "uid: must be a string",
      field: "uid",
    });
  });

  it("is UNAUTHENTICATED without the token and served with it", async () => {
    const { client } = await openDoor({ token: "sesame", sessions: { getSession: async () => session } });
    const metadata = new Metadata();
    await expect(ask(client, Sessions.method.getSession, get)).rejects.toMatchObject({ code: "unauthenticated" });
    metadata.set("authorization", "Bearer wrong");
    await expect(ask(client, Sessions.method.getSession, get, { metadata })).rejects.toMatchObject({ code: "unauthenticated" });
    metadata.set("authorization", "Bearer sesame");
    expect(await ask(client, Sessions.method.getSession, get, { metadata })).toEqual(session);
  });

  it("is RESOURCE_EXHAUSTED for more metadata or a larger request than is allowed", async () => {
    const { client } = await openDoor({
      sessions: { getSession: async () => session },
      limits: { metadataBytesMax: 2_048, requestBytesMax: 1_000 },
    });
    const metadata = new Metadata();
    metadata.set("x-large", "x".repeat(1_700));
    await ask(client, Sessions.method.getSession, get, { metadata });
    metadata.add("x-large", "x".repeat(300));
    await expect(ask(client, Sessions.method.getSession, get, { metadata })).rejects.toMatchObject({
      code: "resource_exhausted",
      field: "metadata",
    });
    const sized = (bytes: number) => create(GetSessionRequestSchema, { uid: "x".repeat(bytes - 3) });
    await ask(client, Sessions.method.getSession, sized(1_000));
    await expect(ask(client, Sessions.method.getSession, sized(1_001))).rejects.toMatchObject({
      code: "resource_exhausted",
      field: "request",
      message: "request: must have at most 1000 bytes",
    });
  });

  it("is RESOURCE_EXHAUSTED for more fields than are allowed", async () => {
    const { client } = await openDoor({ sessions: { getSession: async () => session }, limits: { requestPartsMax: 3 } });
    const fields = (times: number) => new Uint8Array(2 * times).fill(0).map((_, index) => (index % 2 === 0 ? 0x0a : 0));
    await ask(client, Sessions.method.getSession, fields(3));
    await expect(ask(client, Sessions.method.getSession, fields(4))).rejects.toMatchObject({
      code: "resource_exhausted",
      field: "request",
      message: "request: must have at most 3 fields, nested ones included",
    });
  });

  it("ends at its deadline, and its handler is told", async () => {
    const told = Promise.withResolvers<unknown>();
    const { client, server } = await openDoor({
      sessions: {
        getSession: async (_request, { signal }) => {
          signal.addEventListener("abort", () => told.resolve(signal.reason));
          return untilAborted(signal);
        },
      },
    });
    await expect(ask(client, Sessions.method.getSession, get, { deadlineMs: 50 })).rejects.toMatchObject({ code: "deadline_exceeded" });
    expect(await told.promise).toMatchObject({ code: "cancelled" });
    await expect.poll(() => server.openCalls).toBe(0);
  });
});
