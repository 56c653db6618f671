import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { SILENT_LOG } from "../base/index.ts";
import { createClient } from "../client/index.ts";
import { createNodeTransport } from "../client/node/index.ts";
import { bundleProgram, type BundledProgram } from "../testing/harness-programs/bundle.ts";
import { storyOf } from "../testing/index.ts";
import { readConfig } from "./config.ts";
import { startServer } from "./index.ts";

const IS_CONFINABLE = spawnSync("bwrap", ["--unshare-all", "--ro-bind", "/", "/", "true"]).status === 0;

let work: BundledProgram;
beforeAll(async () => {
  work = await bundleProgram("program.ts");
});
afterAll(() => work[Symbol.dispose]());

/** What a harness of the config file reads of the config file's folder, which is its own working directory. */
async function readBy(harness: string, files: readonly string[]): Promise<unknown> {
  const program = { runtime: "process", command: [process.execPath, work.file] };
  const config = {
    listen: "127.0.0.1:0",
    data: ".holdfast",
    tokenFile: "token",
    registry: { listen: "off", tokenFile: "operator-token" },
    harnesses: {
      confined: { ...program, confine: true },
      open: program,
      other: { ...program, env: { A: { file: "others-secret" } } },
    },
    tools: { servers: { tracker: { url: "http://127.0.0.1:9/", headers: { authorization: { file: "tracker-secret" } } } } },
  };
  for (const name of ["token", "operator-token", "others-secret", "tracker-secret"]) writeFileSync(join(work.folder, name), `top-${name}`);
  const file = join(work.folder, "holdfast.json");
  writeFileSync(file, JSON.stringify(config));
  // Nobody answers at the tool server's address, which says nothing of where its secret is.
  const { tools: _unreached, ...served } = readConfig({ config: file }, {});
  await using server = await startServer(served, { log: SILENT_LOG });
  await using client = createClient({ transport: createNodeTransport({ address: server.url, token: "top-token" }) });
  let said = "";
  for await (const item of client.sessions.exec({
    inputs: `read ${JSON.stringify(files.map((name) => join(work.folder, name)))}`,
    harness,
  })) {
    const story = item.kind === "record" && item.record.event !== undefined ? storyOf(item.record.event) : "";
    if (story.startsWith("OUTPUT ")) said += story.slice("OUTPUT ".length);
  }
  const read = JSON.parse(said) as readonly string[];
  return Object.fromEntries(files.map((name, index) => [name, (read[index] ?? "").slice(0, 9)]));
}

describe.runIf(IS_CONFINABLE)("the secrets of a server, beside its config file", () => {
  const FILES = ["token", "operator-token", "others-secret", "tracker-secret", ".holdfast/journal.sqlite"];

  it("are not seen by a confined harness whose working directory is the config file's folder", async () => {
    expect(await readBy("confined", [...FILES, "holdfast.json"])).toEqual({
      token: "",
      "operator-token": "",
      "others-secret": "",
      "tracker-secret": "",
      ".holdfast/journal.sqlite": "ENOENT",
      "holdfast.json": "",
    });
  });

  it("are seen by one that is not confined, as by every program of the same user", async () => {
    expect(await readBy("open", FILES)).toEqual({
      token: "top-token",
      "operator-token": "top-opera",
      "others-secret": "top-other",
      "tracker-secret": "top-track",
      ".holdfast/journal.sqlite": "SQLite fo",
    });
  });
});
