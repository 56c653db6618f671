import { create, fromBinary } from "@bufbuild/protobuf";
import { Metadata } from "@grpc/grpc-js";
import { describe, expect, it } from "vitest";
import { executionIdOf, HoldfastError, seqOf, sessionUidOf } from "../../base/index.ts";
import { GetSessionRequestSchema, Sessions } from "../../gen/agentsessions/v1/session_pb.ts";
import { HarnessHost } from "../../gen/holdfast/v1/harness_host_pb.ts";
import { HistoryPageSchema, MintTokenRequestSchema, ReadHistoryRequestSchema } from "../../gen/holdfast/v1/harness_wire_pb.ts";
import { createHarnessHostService } from "../../service/index.ts";
import type { Start } from "../../spi/index.ts";
import { ask, collect, openDoor, session, stream } from "../../../e2e/support/grpc-door.ts";

const execution: Start = {
  executionId: executionIdOf("e"),
  sessionUid: sessionUidOf("s"),
  config: new Uint8Array(),
  history: { lastSeq: seqOf(0), read: async function* () {} },
  inputs: [],
  identity: { mintToken: async ([audience]) => `token for ${audience}` },
  resumeFromSeq: 0n,
  model: "",
};

const bearer = (secret: string) => {
  const metadata = new Metadata();
  metadata.set("authorization", `Bearer ${secret}`);
  return { metadata };
};

const mint = create(MintTokenRequestSchema, { audience: ["a"] });

const openHost = () =>
  openDoor({
    token: "client",
    sessions: { getSession: async () => session },
    harnessHost: createHarnessHostService(),
    authenticateHarness: (authorization) => {
      if (authorization !== "Bearer credential") throw new HoldfastError("unauthenticated", "credential: it is good for nothing");
      return { identity: undefined, execution };
    },
  });

describe("HarnessHost on the front door", () => {
  it("serves a harness by the credential of its execution", async () => {
    const { client } = await openHost();
    const minted = await ask(client, HarnessHost.method.mintToken, mint, bearer("credential"));
    expect(minted).toMatchObject({ token: "token for a" });
    const pages = await collect(stream(client, HarnessHost.method.readHistory, create(ReadHistoryRequestSchema), bearer("credential")));
    expect(pages.map((page) => fromBinary(HistoryPageSchema, page).last)).toEqual([true]);
  });

  it.each(["", "client", "credential2"])("refuses a harness with the credential %j", async (secret) => {
    const { client } = await openHost();
    await expect(ask(client, HarnessHost.method.mintToken, mint, bearer(secret))).rejects.toMatchObject({ code: "unauthenticated" });
  });

  it("lets no harness do what a client does", async () => {
    const { client } = await openHost();
    const get = create(GetSessionRequestSchema, { uid: "u" });
    await expect(ask(client, Sessions.method.getSession, get, bearer("credential"))).rejects.toMatchObject({ code: "unauthenticated" });
    expect(await ask(client, Sessions.method.getSession, get, bearer("client"))).toEqual(session);
  });

  it("lets nobody in where no harness can be elsewhere", async () => {
    const { client } = await openDoor({ harnessHost: createHarnessHostService() });
    await expect(ask(client, HarnessHost.method.mintToken, mint, bearer("credential"))).rejects.toMatchObject({ code: "unauthenticated" });
  });
});
