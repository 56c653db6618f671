import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { SILENT_LOG } from "../base/index.ts";
import { createClient } from "../client/index.ts";
import { createNodeTransport } from "../client/node/index.ts";
import { TemporaryFolder } from "../testing/temporary-folder.ts";
import { testHarness, toolCall } from "../testing/index.ts";
import type { ToolResult } from "../spi/index.ts";
import { createFunctionTools, startServer } from "./index.ts";

const LARGE = "x".repeat(2 * 1024 * 1024);

it("what a function returns is cut in the record, and whole beside the journal, whatever its size", async () => {
  using folder = new TemporaryFolder();
  const caller = testHarness((_start, sink) => sink.toolCall(toolCall("large", "c1")).then(() => undefined), { id: "caller" });
  const tools = createFunctionTools({ large: { description: "", run: () => LARGE } });
  const config = { store: { kind: "sqlite", folder: folder.path }, listen: { host: "127.0.0.1", port: 0 } } as const;
  const options = { log: SILENT_LOG, harnesses: { caller }, tools };
  await using server = await startServer({ ...config, registry: { listen: "off", token: undefined } }, options);
  await using client = createClient({ transport: createNodeTransport({ address: server.url }) });
  const results: ToolResult[] = [];
  for await (const item of client.sessions.exec({ inputs: "go", harness: "caller" })) {
    if (item.kind === "record" && item.record.event?.body.case === "result") results.push(item.record.event.body.value);
  }
  expect(results).toMatchObject([{ isError: false, outputDigest: `sha256:${createHash("sha256").update(LARGE).digest("hex")}` }]);
  const files = readdirSync(join(folder.path, "blobs"), { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  expect(files.map(({ parentPath, name }) => readFileSync(join(parentPath, name), "utf8") === LARGE)).toEqual([true]);
});
