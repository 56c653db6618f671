/**
 * An MCP server with the ledgers' tools, over standard streams: `mcp-server.ts LEDGERS PID_FILE`. It goes on with what it was asked for when its host is
 * killed, and ends with its input. Its process id stands in the file, for whoever kills it too.
 */

import { writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { Ledgers } from "./ledgers.ts";

interface McpRequest {
  readonly id?: number | string;
  readonly method?: string;
  readonly params?: {
    readonly protocolVersion?: string;
    readonly name?: string;
    readonly arguments?: { readonly mark?: string };
    readonly _meta?: { readonly "holdfast/idempotency-key"?: string };
  };
}

const [folder = "", pidFile = ""] = process.argv.slice(2);
const ledgers = new Ledgers(folder);
writeFileSync(pidFile, String(process.pid));

const inputSchema = { type: "object", properties: { mark: { type: "string" } }, required: ["mark"] };
const tools = ["once", "always"].map((name) => ({ name, description: `Writes to the ledger ${name}.`, inputSchema }));

async function answerTo({ method, params = {} }: McpRequest): Promise<object> {
  switch (method) {
    case "initialize":
      return { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "ledger", version: "1" } };
    case "tools/list":
      return { tools };
    case "tools/call": {
      const line = { mark: params.arguments?.mark ?? "", key: params["_meta"]?.["holdfast/idempotency-key"] ?? "" };
      if (params.name === "once") await ledgers.once(line);
      else await ledgers.always(line);
      return { content: [{ type: "text", text: "written" }] };
    }
    default:
      return {};
  }
}

createInterface({ input: process.stdin }).on("line", (text) => {
  const request = JSON.parse(text) as McpRequest;
  if (request.id === undefined) return;
  void answerTo(request).then((result) => {
    process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id: request.id, result })}\n`);
  });
});
// Nobody reads any more once the host was killed.
process.stdout.on("error", () => undefined);
