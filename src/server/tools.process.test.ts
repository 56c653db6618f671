import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { SILENT_LOG } from "../base/index.ts";
import { createClient } from "../client/index.ts";
import { createNodeTransport } from "../client/node/index.ts";
import { TemporaryFolder } from "../testing/temporary-folder.ts";
import { storyOf, testHarness, toolCall } from "../testing/index.ts";
import { createFunctionTools, startServer, type RunningServer, type ServerConfig, type ServerOptions } from "./index.ts";

const FILES = fileURLToPath(new URL("../../node_modules/@modelcontextprotocol/server-filesystem/dist/index.js", import.meta.url));

let folder: TemporaryFolder;
beforeEach(() => {
  folder = new TemporaryFolder();
});
afterEach(() => folder[Symbol.dispose]());

const start = (tools: ServerConfig["tools"], options: ServerOptions): Promise<RunningServer> =>
  startServer(
    { store: { kind: "memory" }, listen: { host: "127.0.0.1", port: 0 }, registry: { listen: "off", token: undefined }, tools },
    { log: SILENT_LOG, ...options },
  );

/** Writes a file by the server's tool, and says what came of it and of the program's own tool. */
const writer = testHarness(
  async (_start, sink) => {
    const path = join(folder.path, "out.txt");
    const written = await sink.toolCall(toolCall("files__write_file", "c1", { args: { path, content: "once" } }));
    const own = await sink.toolCall(toolCall("own", "c2"));
    await sink.output(`${written.isError} ${own.content.map(({ part }) => (part.case === "text" ? part.value.text : "")).join()}`);
  },
  { id: "writer" },
);

describe("a host with an MCP server", () => {
  it("runs its tools beside the program's own, for a harness of its own", async () => {
    const reach = { kind: "stdio", command: [process.execPath, FILES, folder.path], cwd: folder.path, env: {} } as const;
    const tools = createFunctionTools({ own: { description: "", run: () => "mine" } });
    await using server = await start({ servers: { files: { reach } } }, { harnesses: { writer }, tools });
    await using client = createClient({ transport: createNodeTransport({ address: server.url }) });
    const said: string[] = [];
    for await (const item of client.sessions.exec({ inputs: "go", harness: "writer" })) {
      if (item.kind === "record" && item.record.event !== undefined) said.push(storyOf(item.record.event));
    }
    expect(said).toContain("OUTPUT false mine");
    expect(readFileSync(join(folder.path, "out.txt"), "utf8")).toBe("once");
  });
});
