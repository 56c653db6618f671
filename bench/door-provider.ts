/**
 * The process of a provider that speaks OpenAI's chat completions and takes its time: so many milliseconds before the first piece, given as its
 * argument. It ends with its parent. Asked with a message, it tells how long each of its answers so far took until their first piece left, by the
 * words of the user.
 */

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as pause } from "node:timers/promises";

const delayMs = Number(process.argv[2]);
if (process.send === undefined || !(delayMs >= 0)) throw new Error("this is started by the bench");

/** Pieces behind the first one, and the time between two. */
const PIECES = 10;
const PIECE_EVERY_MS = 20;

let tookMs: [string, number][] = [];

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const arrivedMs = performance.now();
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const { messages } = JSON.parse(Buffer.concat(chunks).toString()) as { readonly messages: readonly { readonly content: unknown }[] };
  response.writeHead(200, { "content-type": "text/event-stream" });
  await pause(delayMs - (performance.now() - arrivedMs));
  response.write(piece({ role: "assistant", content: "first" }));
  tookMs.push([String(messages.at(-1)?.content), performance.now() - arrivedMs]);
  for (let index = 0; index < PIECES; index++) {
    await pause(PIECE_EVERY_MS);
    response.write(piece({ content: " and more" }));
  }
  response.end(`${piece({}, "stop")}data: [DONE]\n\n`);
}

function piece(delta: object, reason: string | null = null): string {
  const choices = [{ index: 0, delta, finish_reason: reason }];
  return `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "slow", choices })}\n\n`;
}

const server = createServer((request, response) => void answer(request, response).catch(() => response.destroy()));
server.listen(0, "127.0.0.1", () => process.send?.({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1` }));
process.on("message", () => {
  process.send?.({ tookMs });
  tookMs = [];
});
process.once("disconnect", () => process.exit());
