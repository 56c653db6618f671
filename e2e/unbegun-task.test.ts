/**
 * `kill -9` of a real server between the creation of a task and its turn: while it waits for the harness, which takes its time. The next server
 * says that the task failed and why, deletes it, and gives its name to the next one.
 */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { SILENT_LOG, type Clock } from "../src/base/index.ts";
import { cryptoRandom, nodeDigest, systemClock } from "../src/node/index.ts";
import { startServer } from "../src/server/index.ts";
import { bundleProgram } from "../src/testing/harness-programs/bundle.ts";
import { newDataFolder, serve } from "./support/server-process.ts";

/** As long as a task may be beginning, and the lease of the server that was killed. */
const LATER_MS = 120_000;

/** The clock of a server that is started so much later. */
const later: Clock = {
  nowMs: () => systemClock.nowMs() + LATER_MS,
  monotonicMs: () => systemClock.monotonicMs(),
  sleep: (ms, options) => systemClock.sleep(ms, options),
  after: (ms, task) => systemClock.after(ms, task),
};

interface TaskSeen {
  readonly id: string;
  readonly state: string;
  readonly failure: string;
}

const asked = async (url: string, path: string, body?: object): Promise<unknown> => {
  const post = { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  return (await fetch(`${url}/api/v1/${path}`, body === undefined ? {} : post)).json();
};
const listed = async (url: string): Promise<readonly TaskSeen[]> =>
  ((await asked(url, "tasks")) as { tasks?: readonly TaskSeen[] }).tasks ?? [];

it("a task whose server was killed before its turn began has failed, with a reason, and its name is free again", async () => {
  using program = await bundleProgram("program.ts");
  const folder = newDataFolder();
  const data = join(folder, "data");
  // It says what it is once, for the plan. The sandbox of the task is never ready.
  const once = `if [ -e '${folder}/asked' ]; then exec sleep 600; fi; touch '${folder}/asked'; exec node '${program.file}'`;
  writeFileSync(
    join(folder, "holdfast.json"),
    JSON.stringify({
      harnesses: { slow: { runtime: "process", command: ["sh", "-c", once] } },
      environments: { lab: { harness: "slow" } },
      registry: { listen: "off" },
    }),
  );
  const killed = await serve(data, { flags: ["--config", join(folder, "holdfast.json"), "--log-level", "error"] });
  const creating = asked(killed.url, "tasks", { prompt: "do it", environment_id: "lab", name: "n" }).then(
    () => "answered",
    () => "cut off",
  );
  await expect.poll(() => listed(killed.url), { timeout: 20_000 }).toMatchObject([{ state: "STATE_RUNNING" }]);
  const [task] = await listed(killed.url);
  await killed.end("SIGKILL");
  expect(await creating).toBe("cut off");

  await using server = await startServer(
    { store: { kind: "sqlite", folder: data }, listen: { host: "127.0.0.1", port: 0 }, registry: { listen: "off", token: undefined } },
    { log: SILENT_LOG, ports: { clock: later, random: cryptoRandom, digest: nodeDigest } },
  );
  const failed = { state: "STATE_FAILED", failure: "its turn never began; create it again" };
  expect(await asked(server.url, `tasks/${task!.id}`)).toMatchObject(failed);
  await expect.poll(() => listed(server.url)).toEqual([]);
  expect(await asked(server.url, `tasks/${task!.id}`)).toMatchObject(failed);
  expect(await asked(server.url, "tasks", { prompt: "do it", name: "n" })).toMatchObject({ prompt: "do it" });
});
