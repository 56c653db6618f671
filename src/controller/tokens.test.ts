import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { SILENT_LOG } from "../base/index.ts";
import { IdentityRefSchema } from "../gen/agentsessions/v1/common_pb.ts";
import { createHarnessCatalog } from "../placement/index.ts";
import type { TokenIssuer, TokenMinter, TokenRequest } from "../spi/index.ts";
import { createMemoryStore } from "../stores/memory/index.ts";
import { seededPorts, TestHost, testHarness } from "../testing/index.ts";
import { replaySession } from "./replay.ts";

const principal = create(IdentityRefSchema, { principal: "agent-7", subject: "sub" });

function setup(isIssuing: boolean) {
  const ports = seededPorts();
  const journal = createMemoryStore({ clock: ports.clock, digest: ports.digest, log: SILENT_LOG });
  const asked: TokenRequest[] = [];
  const minters: (TokenMinter | undefined)[] = [];
  const tokens: TokenIssuer = {
    mint: async (request) => {
      asked.push(request);
      return { token: `token ${asked.length}`, expiresUnix: 1 };
    },
  };
  const harness = testHarness(async ({ identity }, sink) => {
    minters.push(identity.mintToken);
    const token = await identity.mintToken?.(["https://api.example"]);
    await sink.output(`${identity.principal?.principal} has ${token === undefined ? "no token" : "a token"}`);
  });
  const host = new TestHost({ journal, ports, harnesses: { test: harness }, tokens: isIssuing ? tokens : undefined });
  return { ports, journal, host, harness, asked, minters };
}

describe("the identity of a turn", () => {
  it("is the session's principal, with a way to mint tokens for this execution where the host has a key", async () => {
    const { host, asked } = setup(true);
    const session = await host.createSession({ identity: principal });
    const turn = await host.begin(session, ["go"]);
    await turn.outcome;
    const { executionId } = turn;
    expect(asked).toEqual([{ sessionUid: session, executionId, harness: "test", principal, audience: ["https://api.example"] }]);
    expect(await host.story(session)).toContain("OUTPUT agent-7 has a token");
  });

  it("has no minter on a host without a key", async () => {
    const { host, minters } = setup(false);
    const session = await host.createSession({ identity: principal });
    await (
      await host.begin(session, ["go"])
    ).outcome;
    expect(minters).toEqual([undefined]);
    expect(await host.story(session)).toContain("OUTPUT agent-7 has no token");
  });

  it("mints nothing once the turn is over", async () => {
    const { host, minters, asked } = setup(true);
    const session = await host.createSession({ identity: principal });
    await (
      await host.begin(session, ["go"])
    ).outcome;
    await expect(minters[0]?.(["https://api.example"])).rejects.toThrow("turn: it has ended");
    expect(asked).toHaveLength(1);
  });

  it("mints nothing in a replay, and is as it was", async () => {
    const { host, harness, journal, ports, asked } = setup(true);
    const session = await host.createSession({ identity: principal });
    await (
      await host.begin(session, ["go"])
    ).outcome;
    const row = await journal.get(session);
    if (row === undefined) throw new Error("no such session");
    const context = { journal, ports, harnesses: createHarnessCatalog({ test: harness }), canMintTokens: true };
    const kinds: string[] = [];
    for await (const { outcome } of replaySession(context, { row })) kinds.push(outcome.kind);
    expect(kinds).toEqual(["same"]);
    expect(asked).toHaveLength(1);
  });
});
