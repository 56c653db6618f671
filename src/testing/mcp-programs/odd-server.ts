/**
 * An MCP server that does what servers should not, one oddity a tool. It is written on the bare protocol, since no SDK would do these things.
 *
 * `odd-server.ts [--http] [--tools N] [--refuse]`: over standard streams, or over HTTP with its port as the first line of standard output.
 */

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createInterface } from "node:readline";

type Json = Record<string, unknown>;
type Send = (message: Json | string) => void;

const flag = (name: string): string | undefined => {
  const at = process.argv.indexOf(`--${name}`);
  return at < 0 ? undefined : (process.argv[at + 1] ?? "");
};

const extra = Number(flag("tools") ?? 0);
const PAGE = 1_000;
let effects = 0;
let cancelled = 0;
let isChanged = false;
let session = `session-${process.pid}`;

const text = (value: string): Json => ({ content: [{ type: "text", text: value }] });
const PIXEL = Buffer.from([0x89, 0x50, 0x4e, 0x47]).toString("base64");

const ODDITIES: Readonly<Record<string, (args: Json, reply: (result: unknown) => void, send: Send, params: Json) => void>> = {
  echo: (args, reply) => reply(text(JSON.stringify(args))),
  meta: (_args, reply, _send, params) => reply(text(JSON.stringify(params["_meta"]))),
  env: (_args, reply) => reply(text(JSON.stringify(process.env))),
  pid: (_args, reply) => reply(text(String(process.pid))),
  effect: (_args, reply) => reply(text(String(++effects))),
  die: () => process.exit(3),
  // The effect, and then no answer.
  effect_then_die: () => {
    effects += 1;
    process.exit(3);
  },
  hang: () => undefined,
  hint: () => undefined,
  cancelled: (_args, reply) => reply(text(String(cancelled))),
  twice: (_args, reply) => {
    reply(text("one"));
    reply(text("two"));
  },
  garbage: (_args, reply, send) => {
    send("no json at all");
    send("{}");
    send("[".repeat(50_000));
    send({ jsonrpc: "2.0", id: 999_999, result: text("for nobody") });
    reply(text("after the garbage"));
  },
  no_result: (_args, reply) => reply(42),
  flood: (_args, _reply, send) => {
    for (let count = 0; count < 50_000; count++)
      send({ jsonrpc: "2.0", method: "notifications/message", params: { level: "info", data: count } });
  },
  huge: (args, reply) => reply(text("x".repeat(Number(args["bytes"])))),
  endless: () => void process.stdout.write("y".repeat(20 * 1024 * 1024)),
  fails: (_args, reply) => reply({ isError: true, ...text("it cannot be done") }),
  refuses: (_args, _reply, send, params) => send({ jsonrpc: "2.0", id: params["id"], error: { code: -32_602, message: "not like this" } }),
  progress: (_args, reply, send, params) => {
    const { progressToken } = params["_meta"] as Json;
    send({ jsonrpc: "2.0", method: "notifications/progress", params: { progressToken, progress: 1, total: 2, message: "half" } });
    reply(text("done"));
  },
  change: (_args, reply, send) => {
    isChanged = true;
    for (let count = 0; count < 500; count++) send({ jsonrpc: "2.0", method: "notifications/tools/list_changed" });
    reply(text("changed"));
  },
  parts: (_args, reply) =>
    reply({
      content: [
        { type: "text", text: "a lone \ud800 surrogate" },
        { type: "image", mimeType: "image/png", data: PIXEL },
        { type: "audio", mimeType: "audio/wav", data: PIXEL },
        { type: "resource", resource: { uri: "file:///a.txt", mimeType: "text/plain", text: "the text" } },
        { type: "resource", resource: { uri: "file:///a.png", mimeType: "image/png", blob: PIXEL } },
        { type: "resource_link", uri: "https://example.com/x", name: "x", mimeType: "text/html", description: "about x" },
      ],
    }),
  structured: (_args, reply) => reply({ content: [{ type: "text", text: '{"b":[1],"a":2}' }], structuredContent: { a: 2, b: [1] } }),
  forget: (_args, reply) => {
    reply(text("forgotten"));
    session = `${session}+`;
  },
};

const SCHEMAS: Readonly<Record<string, Json>> = {
  huge: { type: "object", properties: { bytes: { type: "integer", minimum: 1 } }, required: ["bytes"], additionalProperties: false },
  echo: JSON.parse('{"type":"object","properties":{"__proto__":{"type":"string"},"n":{"maximum":1e999}}}') as Json,
};

function listed(): readonly Json[] {
  const names = [
    ...Object.keys(ODDITIES).reverse(),
    ...(isChanged ? ["late"] : []),
    ...Array.from({ length: extra }, (_, index) => `extra_${index}`),
  ];
  const good = names.map((name) => ({
    name,
    description: `does ${name}`,
    inputSchema: SCHEMAS[name] ?? { type: "object" },
    ...(name === "hint" ? { annotations: { idempotentHint: true } } : {}),
  }));
  const deep = JSON.parse(`${'{"a":'.repeat(100)}1${"}".repeat(100)}`) as Json;
  const bad = [
    7,
    { name: 3 },
    { name: "deep", inputSchema: deep },
    { name: "ünïcode name!", inputSchema: { type: "object" } },
    { name: "none" },
  ];
  return [...good, ...bad] as Json[];
}

function handle(message: Json, send: Send): void {
  const { id, method, params = {} } = message as { id?: unknown; method?: string; params?: Json };
  const reply = (result: unknown): void => send({ jsonrpc: "2.0", id, result });
  switch (method) {
    case "initialize":
      return reply({
        protocolVersion: params["protocolVersion"],
        capabilities: { tools: { listChanged: true }, logging: {} },
        serverInfo: { name: "odd", version: "1" },
      });
    case "ping":
      return reply({});
    case "tools/list": {
      const from = Number(params["cursor"] ?? 0);
      const all = listed();
      const next = from + PAGE;
      return reply({ tools: all.slice(from, next), ...(next < all.length ? { nextCursor: String(next) } : {}) });
    }
    case "tools/call": {
      const oddity = ODDITIES[String(params["name"])];
      if (oddity !== undefined) return oddity((params["arguments"] ?? {}) as Json, reply, send, { ...params, id });
      return reply(text("not odd"));
    }
    case "notifications/cancelled":
      cancelled += 1;
      return;
    default:
      if (id !== undefined) send({ jsonrpc: "2.0", id, error: { code: -32_601, message: "no such method" } });
  }
}

function serveStreams(): void {
  const send: Send = (message) => void process.stdout.write(`${typeof message === "string" ? message : JSON.stringify(message)}\n`);
  createInterface({ input: process.stdin }).on("line", (line) => handle(JSON.parse(line) as Json, send));
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.method !== "POST") return void response.writeHead(request.method === "DELETE" ? 200 : 405).end();
  let body = "";
  for await (const chunk of request) body += String(chunk);
  const message = JSON.parse(body) as Json;
  if (request.headers["authorization"] !== "Bearer odd") return void response.writeHead(401).end();
  if (message["method"] === "server/discover") return void response.writeHead(400).end();
  if (message["method"] !== "initialize" && request.headers["mcp-session-id"] !== session) return void response.writeHead(404).end();
  if (message["id"] === undefined) {
    handle(message, () => undefined);
    return void response.writeHead(202).end();
  }
  response.writeHead(200, { "content-type": "text/event-stream", "mcp-session-id": session });
  response.flushHeaders();
  handle(message, (each) => {
    response.write(`event: message\ndata: ${typeof each === "string" ? each : JSON.stringify(each)}\n\n`);
    if (typeof each === "object" && each["id"] === message["id"]) setImmediate(() => response.end());
  });
}

if (flag("refuse") !== undefined) {
  process.stderr.write("there is no configuration\n");
  process.exit(1);
}
if (flag("http") === undefined) serveStreams();
else {
  const server = createServer((request, response) => void answer(request, response));
  server.listen(Number(flag("port") ?? 0), "127.0.0.1", () => {
    const address = server.address();
    process.stdout.write(`${typeof address === "object" ? address?.port : ""}\n`);
  });
}
