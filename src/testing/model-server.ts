/**
 * A model provider on a real local socket. It speaks OpenAI's chat completions and Responses, Anthropic's messages and Gemini's generateContent,
 * and does with each request what its script says: answer, stream slowly, fail, fall silent, cut the connection.
 *
 * Invariants:
 * - Every request is counted and kept, its body byte for byte, before anything is answered.
 * - A request that the real provider would refuse for its shape (see `model-rules.ts`) is answered with 400 and takes nothing
 *   from the script, so no test passes with a request that only this server accepts.
 */

import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { refusalOf, type ModelProtocol } from "./model-rules.ts";
import { replyText } from "./model-answers.ts";

/** One step of a streamed answer. After the last step the answer ends as it should. */
export type StreamStep =
  /** Sends these characters as they are. */
  | { readonly kind: "send"; readonly text: string }
  /** Goes on when the promise settles. */
  | { readonly kind: "wait"; readonly until: Promise<unknown> }
  /** Goes on after this time. */
  | { readonly kind: "pause"; readonly ms: number }
  /** Sends nothing more and keeps the connection open. */
  | { readonly kind: "silence" }
  /** Closes the socket in the middle of the answer. */
  | { readonly kind: "cut" };

/** What the server does with one request. */
export type ModelReply =
  | { readonly kind: "stream"; readonly steps: readonly StreamStep[]; readonly headers?: Readonly<Record<string, string>> }
  | {
      readonly kind: "status";
      readonly status: number;
      readonly headers?: Readonly<Record<string, string>>;
      readonly body?: string;
    }
  /** Takes the request and never answers. */
  | { readonly kind: "silence" }
  /** Closes the socket without an answer. */
  | { readonly kind: "cut" };

/** How the answer to a request ended: in full, cut by the script, or because the client closed the connection. */
export type ReplyEnd = "answered" | "cut" | "client-closed";

/** A request as it came in. */
export interface RecordedModelRequest {
  readonly protocol: ModelProtocol;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** The body, byte for byte. */
  readonly body: Uint8Array;
  /** The body as JSON. */
  readonly json: unknown;
  /** Why it was refused for its shape; undefined when it was not. */
  readonly refusal: string | undefined;
  /** Settles when the answer is over. */
  readonly ended: Promise<ReplyEnd>;
}

/** Options of a model server. */
export interface ModelServerOptions {
  /** What to do when the script is used up. Default: an answer `re: ` and the text of the last user message. */
  readonly fallback?: (request: RecordedModelRequest) => ModelReply;
}

/** A running model server. */
export interface ModelServer extends AsyncDisposable {
  /** The base URL for an OpenAI client, with `/v1`. */
  readonly openAiBaseUrl: string;
  /** The base URL for an Anthropic client. */
  readonly anthropicBaseUrl: string;
  /** The base URL for a Google client. */
  readonly googleBaseUrl: string;
  /** Every request so far, oldest first. */
  readonly requests: readonly RecordedModelRequest[];
  /** Adds replies to the script; each request takes one. */
  script(...replies: readonly ModelReply[]): void;
  /** The request with this number (0 is the first), as soon as it has come in. */
  request(index: number): Promise<RecordedModelRequest>;
  /** Closes every connection and stops listening. */
  close(): Promise<void>;
}

/** Starts a model server on a free port of the loopback interface. */
export async function startModelServer(options: ModelServerOptions = {}): Promise<ModelServer> {
  const requests: RecordedModelRequest[] = [];
  const script: ModelReply[] = [];
  const arrivals = new Map<number, PromiseWithResolvers<RecordedModelRequest>>();
  const fallback = options.fallback ?? ((request) => replyText(request.protocol, `re: ${lastUserText(request.json)}`));

  const handle = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    const protocol = protocolOf(incoming);
    if (protocol === undefined) {
      response.writeHead(404).end();
      return;
    }
    const ended = Promise.withResolvers<ReplyEnd>();
    const request = await record(incoming, protocol, ended.promise);
    const reply = request.refusal === undefined ? (script.shift() ?? fallback(request)) : refusalReply(protocol, request.refusal);
    requests.push(request);
    arrivals.get(requests.length - 1)?.resolve(request);
    ended.resolve(await play(reply, response));
  };

  const server = createServer((incoming, response) => {
    handle(incoming, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const close = async (): Promise<void> => {
    if (!server.listening) return;
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    server.closeAllConnections();
    await closed;
  };
  return {
    openAiBaseUrl: `http://127.0.0.1:${port}/v1`,
    anthropicBaseUrl: `http://127.0.0.1:${port}`,
    googleBaseUrl: `http://127.0.0.1:${port}`,
    requests,
    script: (...replies) => void script.push(...replies),
    request: (index) => {
      const known = requests[index];
      if (known !== undefined) return Promise.resolve(known);
      const arrival = arrivals.get(index) ?? Promise.withResolvers<RecordedModelRequest>();
      arrivals.set(index, arrival);
      return arrival.promise;
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

function protocolOf(incoming: IncomingMessage): ModelProtocol | undefined {
  if (incoming.method !== "POST") return undefined;
  if (incoming.url === "/v1/chat/completions") return "openai";
  if (incoming.url === "/v1/responses") return "responses";
  if (incoming.url === "/v1/messages") return "anthropic";
  if (/^\/v1beta\/models\/[^/]+:streamGenerateContent\?alt=sse$/.test(incoming.url ?? "")) return "google";
  return undefined;
}

async function record(incoming: IncomingMessage, protocol: ModelProtocol, ended: Promise<ReplyEnd>): Promise<RecordedModelRequest> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  const body = Buffer.concat(chunks);
  let json: unknown;
  let refusal: string | undefined;
  try {
    json = JSON.parse(body.toString("utf8"));
    refusal = refusalOf(protocol, json);
  } catch {
    refusal = "the body cannot be read as a request";
  }
  return { protocol, path: incoming.url ?? "", headers: incoming.headers, body, json, refusal, ended };
}

interface RefusalError {
  readonly type: string;
  readonly message: string;
}

const REFUSALS: Readonly<Record<ModelProtocol, (error: RefusalError) => object>> = {
  openai: (error) => ({ error: { ...error, code: null, param: null } }),
  responses: (error) => ({ error: { ...error, code: null, param: null } }),
  anthropic: (error) => ({ type: "error", error }),
  google: ({ message }) => ({ error: { code: 400, status: "INVALID_ARGUMENT", message } }),
};

function refusalReply(protocol: ModelProtocol, refusal: string): ModelReply {
  const error = { type: "invalid_request_error", message: refusal };
  const body = REFUSALS[protocol](error);
  return { kind: "status", status: 400, headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
}

async function play(reply: ModelReply, response: ServerResponse): Promise<ReplyEnd> {
  const closed = new Promise<"closed">((resolve) => response.once("close", () => resolve("closed")));
  switch (reply.kind) {
    case "status":
      response.writeHead(reply.status, { ...reply.headers });
      response.end(reply.body ?? "");
      await closed;
      return response.writableFinished ? "answered" : "client-closed";
    case "silence":
      await closed;
      return "client-closed";
    case "cut":
      response.socket?.destroy();
      return "cut";
    case "stream":
      return playStream(reply, response, closed);
  }
}

async function playStream(
  reply: Extract<ModelReply, { kind: "stream" }>,
  response: ServerResponse,
  closed: Promise<"closed">,
): Promise<ReplyEnd> {
  response.writeHead(200, { "content-type": "text/event-stream", ...reply.headers });
  response.flushHeaders();
  for (const step of reply.steps) {
    if (response.destroyed) return "client-closed";
    switch (step.kind) {
      case "send":
        await new Promise<void>((resolve) => response.write(step.text, () => resolve()));
        break;
      case "wait":
        await Promise.race([step.until, closed]);
        break;
      case "pause":
        await Promise.race([pause(step.ms), closed]);
        break;
      case "silence":
        await closed;
        return "client-closed";
      case "cut":
        response.socket?.destroy();
        return "cut";
    }
  }
  response.end();
  await closed;
  return response.writableFinished ? "answered" : "client-closed";
}

/** The text of the last user message of a request, in any of the protocols. */
export function lastUserText(json: unknown): string {
  const { messages, input, contents } = json as Readonly<Record<string, readonly SaidMessage[] | undefined>>;
  const last = (messages ?? input ?? contents ?? []).findLast((message) => message.role === "user");
  const content = last?.content ?? last?.parts ?? "";
  if (typeof content === "string") return content;
  return content.map((part) => part.text ?? "").join("");
}

interface SaidMessage {
  readonly role?: string;
  readonly content?: string | readonly { readonly text?: string }[];
  readonly parts?: readonly { readonly text?: string }[];
}
