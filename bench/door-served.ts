/**
 * The process behind `door-server.ts`: a server whose model says as much as its user asks for, and which tells what memory it holds. It ends with
 * its parent: however that goes, the channel between them closes.
 */

import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { setImmediate as nextTurn, setTimeout as pause } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { SILENT_LOG } from "../src/base/index.ts";
import { UsageSchema } from "../src/gen/agentsessions/v1/common_pb.ts";
import { startServer } from "../src/server/index.ts";
import { messageText, textMessage, type ModelChunk, type ModelProvider, type ModelRequest } from "../src/spi/index.ts";
import { textOfBytes } from "./events.ts";

const [folder, openaiBaseUrl] = process.argv.slice(2);
if (folder === undefined || process.send === undefined) throw new Error("this is started by the bench");

const PIECE = textOfBytes(4_096, 0);
/** Pieces between two turns of the event loop: as much as a socket gives at once. */
const PIECES_AT_ONCE = 16;
/** How often a turn goes on that was asked to hold. */
const HOLD_EVERY_MS = 250;
/** Pieces so far. */
let pieces = 0;

/** Says "ok"; asked to `hold N`, N pieces as fast as they are taken, and then one after the other until it is cancelled. */
const talking: ModelProvider = {
  name: "stub",
  complete: async function* (request: ModelRequest, { signal }): AsyncGenerator<ModelChunk> {
    const asked = /^hold (\d+)/.exec(messageText(request.messages.findLast(({ role }) => role === "user") ?? textMessage("user", "")))?.[1];
    if (asked === undefined) {
      yield answer(request.model);
      return;
    }
    for (let index = 0; ; index++) {
      if (index >= Number(asked)) await pause(HOLD_EVERY_MS, undefined, { signal });
      else if (index % PIECES_AT_ONCE === 0) await nextTurn();
      signal.throwIfAborted();
      pieces += 1;
      yield { kind: "text", partIndex: 0, text: PIECE };
    }
  },
};

function answer(model: string): ModelChunk {
  const usage = create(UsageSchema, { model, inputTokens: 10n, outputTokens: 1n });
  return { kind: "completed", response: { message: textMessage("assistant", "ok"), usage }, facts: { stopReason: "stop", attempts: 1 } };
}

const server = await startServer(
  {
    listen: { host: "127.0.0.1", port: 0 },
    registry: { listen: "off", token: undefined },
    store: { kind: "sqlite", folder },
    defaults: { harness: "agent", model: "stub" },
    openai: openaiBaseUrl === undefined ? undefined : { apiKey: "none", baseUrl: openaiBaseUrl },
  },
  { log: SILENT_LOG, models: [{ match: "stub", provider: talking }] },
);

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as (options: { readonly type: string; readonly flavor: string }) => void;

/** What the process holds once what it can give back is given back. */
async function settledMemory(): Promise<NodeJS.MemoryUsage> {
  for (let times = 0; times < 5; times++) {
    collectGarbage({ type: "major", flavor: "last-resort" });
    await pause(100);
  }
  return process.memoryUsage();
}

process.on("message", () => void settledMemory().then((memory) => process.send?.({ memory, pieces })));
process.once("disconnect", () => void server.shutdown({ graceMs: 0 }));
process.send({ url: server.url });
