import { describe, expect, it, onTestFinished } from "vitest";
import { SILENT_LOG } from "../../base/index.ts";
import { newKeyPair, nodeSignatures, signerOf } from "../../node/index.ts";
import { startServer } from "../../server/index.ts";
import { verdictOn } from "../../testing/archive-files.ts";
import { createClient, ImportedSession_Outcome as Outcome, type Client } from "../index.ts";
import { createNodeTransport } from "./index.ts";

/** Two whole servers, and sessions that go from one to the other. */

async function serving(signer = false): Promise<Client> {
  const server = await startServer(
    {
      listen: { host: "127.0.0.1", port: 0 },
      store: { kind: "memory" },
      signer: signer ? signerOf(newKeyPair().privatePem, "key") : undefined,
    },
    { log: SILENT_LOG },
  );
  const client = createClient({ transport: createNodeTransport({ address: server.url }) });
  onTestFinished(async () => {
    await client[Symbol.asyncDispose]();
    await server.shutdown({ graceMs: 0 });
  });
  return client;
}

async function turn(client: Client, session?: string): Promise<string> {
  const exec = client.sessions.exec({ inputs: "hello", ...(session === undefined ? {} : { session }) });
  for await (const item of exec) void item;
  return exec.sessionUid ?? "";
}

describe("a session that moves from one server to another", () => {
  it("is exported, verified, imported, and goes on there", async () => {
    const [from, to] = [await serving(true), await serving()];
    const session = await turn(from);
    const pieces = await Array.fromAsync(from.journal.export(session));
    expect(verdictOn(Buffer.concat(pieces), { signatures: nodeSignatures }).sessions[0]?.trust).toMatchObject({ kind: "signed" });
    const imported = await to.journal.import(from.session(session).export());
    expect(imported).toMatchObject({ recordsAdded: 6n, sessions: [{ uid: session, outcome: Outcome.CREATED, lastSeq: 6n }] });
    await turn(to, session);
    expect(await to.journal.verify(session)).toMatchObject({ intact: true, records: 12n });
    const replayed = async (client: Client) =>
      (await Array.fromAsync(client.sessions.replay(session, { toSeq: 6 }))).map(({ record }) => [record.contentHash, record.fence]);
    expect(await replayed(to)).toEqual(await replayed(from));
    await expect(from.journal.import(to.session(session).export())).resolves.toMatchObject({ sessions: [{ outcome: Outcome.CONTINUED }] });
  });

  it("takes its family with it", async () => {
    const [from, to] = [await serving(), await serving()];
    const session = await turn(from);
    const children = await from.sessions.fork(session, { atSeq: 2, count: 2 });
    const { sessions } = await to.journal.import(from.journal.export(children[0]?.metadata?.uid ?? "", { family: true }));
    expect(sessions.length).toBe(3);
    expect((await to.journal.lineage(session)).rows.length).toBe(3);
  });

  it("has a head that its server signs, and one without a key does not", async () => {
    const [signing, plain] = [await serving(true), await serving()];
    const session = await turn(signing);
    const head = await signing.session(session).signHead();
    expect([head.session, head.seq, head.keyId.length]).toEqual([session, 6n, 16]);
    await expect(plain.journal.signHead(await turn(plain))).rejects.toMatchObject({ code: "failed_precondition" });
  });

  it("is refused in the server's own words", async () => {
    const client = await serving();
    async function* nonsense(): AsyncGenerator<Uint8Array, void, undefined> {
      for (let index = 0; index < 100; index++) yield Buffer.from("no export\n".repeat(1_000));
    }
    await expect(client.journal.import(nonsense())).rejects.toMatchObject({
      code: "invalid_argument",
      message: "file: line 1 is no JSON",
      field: "file",
    });
  });
});
