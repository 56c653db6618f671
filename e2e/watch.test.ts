/** `holdfast watch` over a task whose lead sends two scouts out. */

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { command } from "./support/command.ts";
import { newDataFolder, serve } from "./support/server-process.ts";

const CONFIG = {
  harness: "agent",
  agents: { scout: { model: "echo" } },
  spawn: { agents: ["scout"] },
  environments: { lab: { permissions: [{ tool: "spawn", policy: "allow" }] } },
};

const SCRIPT = `
completions:
  - on: { step: 1 }
    calls:
      - { tool: spawn, args: { prompt: "Look at the north." } }
      - { tool: spawn, args: { prompt: "Look at the south." } }
  - text: Both have looked.
`;

/** The task that `holdfast watch` is to watch, made over REST. */
async function newTask(url: string): Promise<string> {
  const response = await fetch(`${url}/api/v1/tasks`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ prompt: "Look around.", environment_id: "lab" }),
  });
  const text = await response.text();
  return /"(?:uid|id)":\s*"([^"]+)"/.exec(text)?.[1] ?? `no task in ${text}`;
}

it("prints what the workers do, each line once, and ends with the team", async () => {
  const folder = newDataFolder();
  writeFileSync(join(folder, "team.yaml"), SCRIPT);
  writeFileSync(join(folder, "holdfast.json"), JSON.stringify({ ...CONFIG, model: `script:${join(folder, "team.yaml")}` }));
  const { url } = await serve(folder, { flags: ["--config", join(folder, "holdfast.json"), "--log-level", "error"] });
  const task = await newTask(url);
  const watched = await command(["watch", task, "--server", url]);
  expect([watched.exitCode, watched.stderr]).toEqual([0, ""]);
  const lines = watched.stdout.trimEnd().split("\n");
  const workers = [...new Set(lines.map((line) => line.split("  ")[0] ?? ""))];
  expect(workers.length).toBe(2);
  const prompts = new Set<string>();
  for (const worker of workers) {
    const told = lines.filter((line) => line.startsWith(worker)).map((line) => line.slice(worker.length + 2));
    expect(told).toEqual([
      "started",
      "phase      1  react",
      expect.stringMatching(/^completed {2}echo:Look at the (north|south)\.$/),
      "exited",
    ]);
    prompts.add(told[2] ?? "");
  }
  expect(prompts.size).toBe(2);

  const asJson = await command(["watch", task, "--server", url, "--json"]);
  const events = asJson.stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(events.length).toBe(8);
  expect(events.filter((event) => "worker_completed" in event).length).toBe(2);

  const unknown = await command(["watch", "nobody", "--server", url]);
  expect(unknown.exitCode).toBe(3);
});
