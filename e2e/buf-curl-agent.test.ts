/** `buf curl` on `roz.v1.AgentService`: a whole conversation in one call, and the team of the task that `docs/tasks.md` shows. */

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { call, type Json } from "./support/buf-curl.ts";
import { newDataFolder, serve, type ServerProcess } from "./support/server-process.ts";

const SERVICE = "roz.v1.AgentService";

/** The first block of a language in a page of the documents. */
function documented(page: string, language: string): string {
  const text = readFileSync(join(import.meta.dirname, "..", "docs", page), "utf8");
  return new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``).exec(text)?.[1] ?? "";
}

/** A server with the files of `docs/tasks.md`. */
async function serveTeam(): Promise<ServerProcess> {
  const folder = newDataFolder();
  mkdirSync(join(folder, "data"));
  const script = join(folder, "team.yaml");
  writeFileSync(script, documented("tasks.md", "yaml"));
  const config = join(folder, "holdfast.json");
  writeFileSync(config, documented("tasks.md", "json").replace("script:team.yaml", `script:${script}`));
  return serve(join(folder, "data"), { flags: ["--config", config] });
}

/** What a message is, by the name of its alternative. */
const kindOf = (message: Json): string => Object.keys(message)[0] ?? "";

describe("buf curl and the interactive door", () => {
  it("holds a conversation", async () => {
    const server = await serve(newDataFolder());
    const requests = [{ ping: {} }, { start: {} }, { userMessage: { content: "hello", messageId: "m1" } }];
    const { messages, error } = await call(server, `${SERVICE}/StreamSession`, requests);
    expect(error).toBeUndefined();
    const told = messages.filter((message) => !["activityUpdate", "presenceHint"].includes(kindOf(message)));
    const deltas = told.filter((message) => kindOf(message) === "textDelta");
    expect(told.map(kindOf)).toEqual(["pong", "sessionStarted", ...deltas.map(() => "textDelta"), "turnComplete"]);
    const said = deltas.map(({ textDelta }) => textDelta as { readonly messageId: string; readonly content: string });
    expect(said.map(({ content }) => content).join("")).toBe("echo:hello");
    expect(new Set(said.map(({ messageId }) => messageId))).toEqual(new Set(["m1"]));
    expect(told.at(-1)).toMatchObject({ turnComplete: { messageId: "m1", stopReason: "end_turn" } });
  });

  it("is told in the conversation what is wrong with it", async () => {
    const server = await serve(newDataFolder());
    const { messages, error } = await call(server, `${SERVICE}/StreamSession`, [
      { cancelTurn: {} },
      { start: { environmentId: "nowhere" } },
    ]);
    expect(error).toBeUndefined();
    expect(messages).toMatchObject([{ error: { code: "no_session" } }, { error: { code: "invalid_argument" } }]);
  });

  it("watches a task's team: what concerns each worker in its order, and then the end", async () => {
    const server = await serveTeam();
    const task = await call(server, "holdfast.v1.Tasks/CreateTask", { prompt: "Look around.", environmentId: "lab" });
    expect(task.error).toBeUndefined();
    const { messages, error } = await call(server, `${SERVICE}/WatchTeam`, { taskId: task.messages[0]!["id"] });
    expect(error).toBeUndefined();
    const workers = Map.groupBy(messages, (message) => (message[kindOf(message)] as { readonly workerId: string }).workerId);
    expect(workers.size).toBe(2);
    for (const events of workers.values()) {
      expect(events.map(kindOf)).toEqual(["workerStarted", "workerPhase", "workerCompleted", "workerExited"]);
      expect(events[1]).toMatchObject({ workerPhase: { phase: 1, mode: "react" } });
      expect(events[3]).toMatchObject({ workerExited: { parentTaskId: task.messages[0]!["id"] } });
    }
    const results = messages.flatMap(({ workerCompleted }) => (workerCompleted === undefined ? [] : [(workerCompleted as Json)["result"]]));
    expect(new Set(results)).toEqual(new Set(["echo:Look at the north.", "echo:Look at the south."]));
    expect((await call(server, "holdfast.v1.Tasks/GetTask", { id: task.messages[0]!["id"] })).messages[0]).toMatchObject({
      state: "STATE_COMPLETED",
      result: "Both have looked.",
    });
  });

  it("is told that there is no such task", async () => {
    const server = await serve(newDataFolder());
    const { messages, error } = await call(server, `${SERVICE}/WatchTeam`, { taskId: "nothing" });
    expect(messages).toEqual([]);
    expect(error).toMatchObject({ code: "not_found" });
  });
});
