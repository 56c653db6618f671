/**
 * The server that is killed: `host.ts DATA LEDGERS MCP_PID_FILE MODEL_URL leave|resume`. The built-in agent, a model behind HTTP, the journal in SQLite, tools that are
 * functions of this process and tools of an MCP server. It says where it listens on standard output.
 */

import { join } from "node:path";
import { createFunctionTools, startServer } from "../../../src/server/index.ts";
import { Ledgers } from "./ledgers.ts";

const [data = "", ledgerFolder = "", pidFile = "", modelUrl = "", recover] = process.argv.slice(2);
const ledgers = new Ledgers(ledgerFolder);
const MCP_SERVER = join(import.meta.dirname, "mcp-server.ts");

const inputSchema = { type: "object", properties: { mark: { type: "string" } }, required: ["mark"] };
const tool = (name: "once" | "always", idempotent: boolean) => ({
  description: `Writes to the ledger ${name}.`,
  inputSchema,
  idempotent,
  run: async ({ mark }: { readonly mark?: unknown }, run: { readonly session: string; readonly idempotencyKey: string }) => {
    await ledgers[name]({ mark: String(mark), key: `${run.session}/${run.idempotencyKey}` });
    return "written";
  },
});

const server = await startServer(
  {
    listen: { host: "127.0.0.1", port: 0 },
    store: { kind: "sqlite", folder: data },
    defaults: { harness: "worker", model: "ledger-model" },
    openai: { apiKey: "k", baseUrl: modelUrl, api: "chat" },
    agents: { worker: { tools: { free: ["once", "always", "ledger__*"], ask: ["asked"] } } },
    tools: {
      servers: {
        ledger: {
          reach: { kind: "stdio", command: [process.execPath, MCP_SERVER, ledgerFolder, pidFile], cwd: data, env: {} },
          idempotent: ["once"],
        },
      },
    },
    recover: recover === "resume" ? "resume" : "leave",
    registry: { listen: "off", token: undefined },
    logLevel: "error",
  },
  { tools: createFunctionTools({ once: tool("once", true), always: tool("always", false), asked: tool("always", false) }) },
);
process.stdout.write(`listening on ${server.url}\n`);
process.once("SIGTERM", () => void server.shutdown().then(() => process.exit()));
// Whoever started it holds its input open; without them it is nobody's.
process.stdin.resume().once("close", () => process.exit(1));
