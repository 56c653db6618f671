import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { executionIdOf, seqOf, sessionUidOf } from "../base/index.ts";
import { EventSchema } from "../gen/agentsessions/v1/common_pb.ts";
import { MintTokenRequestSchema, ReadHistoryRequestSchema } from "../gen/holdfast/v1/harness_wire_pb.ts";
import type { HistoryPage as SpiPage, Start } from "../spi/index.ts";
import { createHarnessHostService } from "./harness-host.ts";

const events = Array.from({ length: 5 }, (_, index) => create(EventSchema, { executionId: `e${index + 1}` }));

const start: Start = {
  executionId: executionIdOf("e"),
  sessionUid: sessionUidOf("s"),
  config: new Uint8Array(),
  history: {
    lastSeq: seqOf(events.length),
    async *read({ fromSeq = seqOf(1), toSeq = seqOf(events.length) } = {}): AsyncGenerator<SpiPage> {
      for (let seq = fromSeq; seq <= toSeq; seq++) yield { firstSeq: seqOf(seq), events: events.slice(seq - 1, seq) };
    },
  },
  inputs: [],
  identity: { mintToken: async (audience) => `x.${Buffer.from(JSON.stringify({ exp: 77, aud: audience })).toString("base64url")}.y` },
  resumeFromSeq: 0n,
  model: "",
};

const { signal } = new AbortController();
const harness = { caller: { identity: undefined, execution: start }, signal };
const stranger = { caller: { identity: undefined }, signal };
const service = createHarnessHostService();

const read = async (range: { fromSeq?: bigint; toSeq?: bigint }, context = harness) => {
  const seqs: number[] = [];
  let isWhole = false;
  for await (const page of service.readHistory(create(ReadHistoryRequestSchema, range), context)) {
    seqs.push(...page.events.map((_, index) => Number(page.firstSeq) + index));
    isWhole = page.last;
  }
  return { seqs, isWhole };
};

describe("a harness that reads the history of its execution", () => {
  it("gets the range that it asks for, and is told where it ends", async () => {
    expect(await read({})).toEqual({ seqs: [1, 2, 3, 4, 5], isWhole: true });
    expect(await read({ fromSeq: 2n, toSeq: 3n })).toEqual({ seqs: [2, 3], isWhole: true });
    expect(await read({ fromSeq: 6n })).toEqual({ seqs: [], isWhole: true });
  });

  it("gets nothing after the last event before its execution", async () => {
    await expect(read({ toSeq: 6n })).rejects.toMatchObject({ code: "invalid_argument", field: "to_seq" });
    await expect(read({ fromSeq: -1n })).rejects.toMatchObject({ code: "invalid_argument", field: "from_seq" });
  });

  it("gets a large page in messages of a bounded size", async () => {
    const large = Array.from({ length: 40 }, (_, index) => create(EventSchema, { executionId: `${index}`.padEnd(64 * 1024, "x") }));
    const history = {
      lastSeq: seqOf(large.length),
      async *read(): AsyncGenerator<SpiPage> {
        yield { firstSeq: seqOf(1), events: large };
      },
    };
    const reader = { ...harness, caller: { identity: undefined, execution: { ...start, history } } };
    const sizes: number[] = [];
    const ids: string[] = [];
    for await (const page of service.readHistory(create(ReadHistoryRequestSchema), reader)) {
      if (page.events.length > 0) expect(Number(page.firstSeq)).toBe(ids.length + 1);
      sizes.push(page.events.length);
      ids.push(...page.events.map(({ executionId }) => executionId));
    }
    expect(ids).toEqual(large.map(({ executionId }) => executionId));
    expect(Math.max(...sizes)).toBeLessThanOrEqual(4);
  });

  it("must have a credential", async () => {
    await expect(read({}, stranger as typeof harness)).rejects.toMatchObject({ code: "unauthenticated" });
    const minted = service.mintToken(create(MintTokenRequestSchema, { audience: ["a"] }), stranger);
    await expect(minted).rejects.toMatchObject({ code: "unauthenticated" });
  });
});

describe("a harness that mints a token", () => {
  it("is told when it ends", async () => {
    const minted = await service.mintToken(create(MintTokenRequestSchema, { audience: ["a"] }), harness);
    expect(minted.expiresUnix).toBe(77n);
  });

  it("gets none from a host without a key", async () => {
    const keyless = { ...harness, caller: { identity: undefined, execution: { ...start, identity: {} } } };
    const minted = service.mintToken(create(MintTokenRequestSchema, { audience: ["a"] }), keyless);
    await expect(minted).rejects.toMatchObject({ code: "failed_precondition" });
  });
});
