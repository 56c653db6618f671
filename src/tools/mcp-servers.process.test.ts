import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { create } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { SILENT_LOG, type SessionUid } from "../base/index.ts";
import { ToolCallSchema } from "../gen/agentsessions/v1/common_pb.ts";
import { systemClock } from "../node/index.ts";
import type { ToolCall, ToolResult } from "../spi/index.ts";
import { TemporaryFolder } from "../testing/temporary-folder.ts";
import { openMcpTools, type McpServerOptions, type McpTools } from "./index.ts";

const entry = (name: string): string =>
  fileURLToPath(new URL(`../../node_modules/@modelcontextprotocol/${name}/dist/index.js`, import.meta.url));
const RUN = { session: "s1" as SessionUid, signal: new AbortController().signal };

let folder: TemporaryFolder;
let tools: McpTools | undefined;
beforeEach(() => {
  folder = new TemporaryFolder();
});
afterEach(async () => {
  await tools?.[Symbol.asyncDispose]();
  tools = undefined;
  folder[Symbol.dispose]();
});

async function open(name: string, options: McpServerOptions): Promise<McpTools> {
  tools = await openMcpTools({ servers: { [name]: options }, clock: systemClock, log: SILENT_LOG, version: "0" });
  return tools;
}

const program = (name: string, ...args: string[]) =>
  ({ kind: "stdio", command: [process.execPath, entry(name), ...args], cwd: process.cwd(), env: {} }) as const;

function run(of: McpTools, tool: string, args: ToolCall["args"] = {}, progress?: (detail: string) => void): Promise<ToolResult> {
  return of.execute(create(ToolCallSchema, { id: "c", tool, args: args ?? {}, idempotencyKey: "k" }), { ...RUN, progress });
}

const textOf = ({ content }: ToolResult): string =>
  content.map(({ part }) => (part.case === "text" ? part.value.text : `<${part.case}>`)).join("|");

describe("the official filesystem server", () => {
  it("reads, writes and refuses, as the host's tools", async () => {
    writeFileSync(join(folder.path, "in.txt"), "from a file");
    const files = await open("files", { reach: program("server-filesystem", folder.path), trustHints: true });
    expect(files.list().length).toBeGreaterThan(10);
    const readFile = files.find("files__read_text_file");
    expect(readFile?.definition.description).toContain("Read");
    expect(readFile?.idempotent).toBe(true);
    expect(files.find("files__move_file")?.idempotent).toBe(false);
    const argsFault = (args: ToolCall["args"]) => files.check(create(ToolCallSchema, { tool: "files__write_file", args: args ?? {} }));
    expect(argsFault({ path: "x" })).toContain("content");
    expect(argsFault({ path: "x", content: "y" })).toBeUndefined();

    const read = await run(files, "files__read_text_file", { path: join(folder.path, "in.txt") });
    expect(read.isError).toBe(false);
    expect(textOf(read) + JSON.stringify(read.output ?? {})).toContain("from a file");
    const path = join(folder.path, "out.txt");
    expect((await run(files, "files__write_file", { path, content: "once" })).isError).toBe(false);
    expect(readFileSync(path, "utf8")).toBe("once");
    const outside = await run(files, "files__read_text_file", { path: "/etc/hostname" });
    expect(outside.isError).toBe(true);
    expect(outside.error).toMatch(/denied|outside/i);
  });

  it("offers a part of its tools where the configuration says which", async () => {
    mkdirSync(join(folder.path, "sub"));
    const files = await open("files", { reach: program("server-filesystem", folder.path), allow: ["list_directory"] });
    expect(files.list().map(({ definition }) => definition.name)).toEqual(["files__list_directory"]);
    expect((await run(files, "files__list_directory", { path: folder.path })).content).not.toEqual([]);
  });
});

describe.each(["stdio", "streamableHttp"] as const)("the official everything server over %s", (transport) => {
  it("echoes, reports progress, and answers with images, resources, links and structure", async () => {
    await using reach = await everything(transport);
    const all = await open("everything", { reach: reach.reach });
    expect(textOf(await run(all, "everything__echo", { message: "hi" }))).toBe("Echo: hi");
    const image = await run(all, "everything__get-tiny-image");
    expect(
      image.content.some(({ part }) => part.case === "file" && part.value.mime === "image/png" && part.value.source.case === "bytes"),
    ).toBe(true);
    expect((await run(all, "everything__get-structured-content", { location: "New York" })).output).toMatchObject({
      temperature: expect.any(Number),
    });
    expect(textOf(await run(all, "everything__get-resource-links", { count: 1 }))).toContain("[link to the resource");
    const progress: string[] = [];
    await run(all, "everything__trigger-long-running-operation", { duration: 0.2, steps: 2 }, (detail) => void progress.push(detail));
    expect(progress[0]).toMatch(/^1\/2/);
  });
});

/** The everything server; over HTTP it listens at a free port. */
async function everything(transport: "stdio" | "streamableHttp"): Promise<{ readonly reach: McpServerOptions["reach"] } & AsyncDisposable> {
  if (transport === "stdio") return { reach: program("server-everything", "stdio"), [Symbol.asyncDispose]: () => Promise.resolve() };
  const port = await freePort();
  const child = spawn(process.execPath, [entry("server-everything"), transport], {
    env: { ...process.env, PORT: String(port) },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const exited = once(child, "exit");
  let said = "";
  for await (const chunk of child.stderr) if ((said += String(chunk)).includes(String(port))) break;
  return {
    reach: { kind: "http", url: `http://127.0.0.1:${port}/mcp`, headers: {} },
    [Symbol.asyncDispose]: async () => {
      child.kill("SIGKILL");
      await exited;
    },
  };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  return typeof address === "object" && address !== null ? address.port : 0;
}
