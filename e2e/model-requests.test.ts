/**
 * Model requests, counted where they arrive: at an HTTP server that keeps each of them (I1, I3).
 * - a replay as a check makes none, whichever harness it tries
 * - the recovery of a turn whose host was killed makes at most one more than the turn needs
 */

import { describe, expect, it } from "vitest";
import { createClient, type Client } from "../src/client/index.ts";
import { createNodeTransport } from "../src/client/node/index.ts";
import { startModelServer, type ModelServer } from "../src/testing/model-server.ts";
import { newDataFolder, serve, type ServerProcess } from "./support/server-process.ts";

const environmentOf = (models: ModelServer) => ({
  OPENAI_BASE_URL: models.openAiBaseUrl,
  OPENAI_API_KEY: "sk-test",
  HOLDFAST_HARNESS: "chat",
  HOLDFAST_MODEL: "gpt-x",
  HOLDFAST_LOG_LEVEL: "error",
});

const clientOf = ({ url }: ServerProcess): Client => createClient({ transport: createNodeTransport({ address: url }) });

/** Begins a turn whose model call will not be answered, and kills the server once the model was asked. */
async function killedInModelCall(folder: string, models: ModelServer): Promise<string> {
  const server = await serve(folder, { env: environmentOf(models) });
  await using client = clientOf(server);
  models.script({ kind: "silence" });
  const turn = client.sessions.exec({ inputs: "hello" }, { reconnect: false });
  const ended = turn.finish().catch((error: unknown) => error);
  await models.request(models.requests.length);
  await server.end("SIGKILL");
  expect(await ended).toMatchObject({ code: "unavailable" });
  return turn.sessionUid!;
}

describe("requests at the model", () => {
  it("are none for a replay as a check, of all turns and with any harness", async () => {
    await using models = await startModelServer();
    const server = await serve(newDataFolder(), { env: environmentOf(models) });
    await using client = clientOf(server);
    const { metadata } = await client.sessions.create();
    for (const inputs of ["a", "b", "c"]) await client.session(metadata!.uid).exec({ inputs }).finish();
    expect(models.requests).toHaveLength(3);
    for (const harness of [undefined, "echo", "chat"]) {
      expect(await Array.fromAsync(client.journal.checkReplay(metadata!.uid, { harness }))).toHaveLength(3);
    }
    expect(models.requests).toHaveLength(3);
  });

  it("are one more for a turn that lost its host during a model call, byte for byte the same, and none when it is checked", async () => {
    await using models = await startModelServer();
    const folder = newDataFolder();
    const uid = await killedInModelCall(folder, models);
    expect(models.requests).toHaveLength(1);
    const server = await serve(folder, { env: environmentOf(models) });
    await using client = clientOf(server);
    await expect.poll(async () => (await client.sessions.get(uid)).execState, { timeout: 30_000 }).toBe(3);
    expect((await client.sessions.resume(uid)).execState).toBe(4);
    expect(models.requests).toHaveLength(2);
    expect(Buffer.from(models.requests[1]!.body).equals(Buffer.from(models.requests[0]!.body))).toBe(true);
    const kinds = (await Array.fromAsync(client.sessions.replay(uid))).map(({ record }) => record.event?.body.case);
    expect(kinds).toEqual(["executionStart", "message", "model", "message", "usage", "end"]);
    expect(await Array.fromAsync(client.journal.checkReplay(uid))).toMatchObject([{ kind: "same" }]);
    expect((await client.journal.verify(uid)).intact).toBe(true);
    expect(models.requests).toHaveLength(2);
  });
});
