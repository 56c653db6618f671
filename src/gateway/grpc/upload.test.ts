import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { HoldfastError } from "../../base/index.ts";
import { createNodeTransport } from "../../client/node/index.ts";
import { ImportRequestSchema, ImportResponseSchema, type ImportRequest } from "../../gen/holdfast/v1/export_pb.ts";
import { Journal } from "../../gen/holdfast/v1/journal_pb.ts";
import type { CallContext } from "../../service/contract.ts";
import { openDoor } from "../../../e2e/support/grpc-door.ts";

type Requests = AsyncIterable<ImportRequest>;

/** A door with an import of the test's, and a client of it. */
async function open(handle: (requests: Requests, context: CallContext) => Promise<number>, options: object = {}) {
  const door = await openDoor({
    ...options,
    journal: {
      import: async (requests, context) => create(ImportResponseSchema, { recordsAdded: BigInt(await handle(requests, context)) }),
    },
  });
  const transport = createNodeTransport({ address: door.address });
  const upload = async (requests: Requests, call: { signal?: AbortSignal; timeoutMs?: number } = {}) =>
    (await transport.upload(Journal.method.import, requests, call)).recordsAdded;
  return { ...door, upload, [Symbol.asyncDispose]: () => transport[Symbol.asyncDispose]() };
}

async function* pieces(
  count: number,
  length = 10,
  onNext: (index: number) => void = () => undefined,
): AsyncGenerator<ImportRequest, void, undefined> {
  for (let index = 0; index < count; index++) {
    onNext(index);
    yield create(ImportRequestSchema, { data: new Uint8Array(length).fill(index % 256) });
  }
}

async function bytesIn(requests: Requests): Promise<number> {
  let bytes = 0;
  for await (const { data } of requests) bytes += data.length;
  return bytes;
}

describe("a client-streaming call over gRPC", () => {
  it("brings every request in order, and its one answer back", async () => {
    const seen: number[] = [];
    await using door = await open(async (requests) => {
      for await (const { data } of requests) seen.push(data[0] ?? -1);
      return seen.length;
    });
    expect(await door.upload(pieces(200))).toBe(200n);
    expect(seen).toEqual(Array.from({ length: 200 }, (_, index) => index));
    expect(await door.upload(pieces(0))).toBe(200n);
  });

  it("holds a sender up that is faster than the handler", async () => {
    const go = Promise.withResolvers<void>();
    let taken = 0;
    await using door = await open(async (requests) => {
      await go.promise;
      return bytesIn(requests);
    });
    const uploaded = door.upload(pieces(400, 100_000, (index) => (taken = index + 1)));
    // The sender stands still once what is on its way fills the windows: far from all of 40 MB.
    let before = -1;
    while (before !== taken) {
      before = taken;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    expect(taken).toBeLessThan(200);
    go.resolve();
    expect(await uploaded).toBe(40_000_000n);
  });

  it("gives an early answer to a sender that is not done, and takes no more from it", async () => {
    await using door = await open(async (requests) => {
      for await (const _ of requests) throw new HoldfastError("already_exists", "session a: it is here", { field: "file" });
      return 0;
    });
    let taken = 0;
    const refused = door.upload(pieces(100_000, 10_000, (index) => (taken = index)));
    await expect(refused).rejects.toMatchObject({ code: "already_exists", message: "session a: it is here", field: "file" });
    expect(taken).toBeLessThan(10_000);
    await expect.poll(() => door.server.openCalls).toBe(0);
  });

  it("refuses a caller before it reads anything", async () => {
    let isAsked = false;
    await using door = await open(
      async () => {
        isAsked = true;
        return 0;
      },
      { token: "sesame" },
    );
    await expect(door.upload(pieces(5))).rejects.toMatchObject({ code: "unauthenticated" });
    expect(isAsked).toBe(false);
  });

  it("tells the handler that its sender went away, and does not take that for the end", async () => {
    const begun = Promise.withResolvers<void>();
    const told = Promise.withResolvers<unknown>();
    await using door = await open(async (requests, { signal }) => {
      signal.addEventListener("abort", () => told.resolve(signal.reason), { once: true });
      for await (const _ of requests) begun.resolve();
      return 0;
    });
    const leaving = new AbortController();
    async function* endless(): AsyncGenerator<ImportRequest, void, undefined> {
      yield* pieces(3);
      await begun.promise;
      leaving.abort(new Error("enough"));
      await new Promise(() => undefined);
    }
    await expect(door.upload(endless(), { signal: leaving.signal })).rejects.toThrow("enough");
    expect(await told.promise).toMatchObject({ code: "cancelled" });
    await expect.poll(() => door.server.openCalls).toBe(0);
  });

  it("rejects with what the sender's own source throws", async () => {
    await using door = await open(bytesIn);
    async function* broken(): AsyncGenerator<ImportRequest, void, undefined> {
      yield* pieces(2);
      throw new HoldfastError("data_loss", "the disk");
    }
    await expect(door.upload(broken())).rejects.toMatchObject({ code: "data_loss", message: "the disk" });
    await expect.poll(() => door.server.openCalls).toBe(0);
  });

  it("ends at its deadline and when the server closes", async () => {
    await using door = await open(bytesIn);
    async function* endless(): AsyncGenerator<ImportRequest, void, undefined> {
      yield* pieces(1);
      await new Promise(() => undefined);
    }
    await expect(door.upload(endless(), { timeoutMs: 100 })).rejects.toMatchObject({ code: "deadline_exceeded" });
    const closed = door.upload(endless()).catch((error: unknown) => error);
    await expect.poll(() => door.server.openCalls).toBe(1);
    door.health.close();
    expect(await closed).toMatchObject({ code: "unavailable", message: "host: it is shutting down" });
  });

  it("refuses a piece that is no request, by the name of its field", async () => {
    await using door = await open(bytesIn);
    async function* wrong(): AsyncGenerator<ImportRequest, void, undefined> {
      yield Uint8Array.of(0x08, 0x01) as never;
    }
    await expect(door.upload(wrong())).rejects.toMatchObject({ code: "invalid_argument", field: "data" });
  });
});
