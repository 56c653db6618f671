import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, expect, it, onTestFinished } from "vitest";
import { SILENT_LOG } from "../base/index.ts";
import { ENVIRONMENTS_FILE } from "../stores/environments/index.ts";
import { startServer, type ServerConfig } from "./index.ts";

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-environments-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

async function started(config: Partial<ServerConfig> = {}, environmentsMax?: number) {
  const fixed = { listen: { host: "127.0.0.1", port: 0 }, registry: { listen: "off", token: undefined } } as const;
  const server = await startServer({ store: { kind: "memory" }, ...fixed, ...config }, { log: SILENT_LOG, limits: { environmentsMax } });
  onTestFinished(() => server.shutdown({ graceMs: 0 }));
  return {
    server,
    async ask(method: string, path: string, body?: object): Promise<{ readonly status: number; readonly json: Json }> {
      const init = body === undefined ? {} : { body: JSON.stringify(body), headers: { "content-type": "application/json" } };
      const response = await fetch(`${server.url}/api/v1/environments${path}`, { method, ...init });
      return { status: response.status, json: (await response.json()) as Json };
    },
  };
}

type Json = Readonly<Record<string, unknown>>;

const refused = (config: Partial<ServerConfig>) =>
  started(config).then(
    () => undefined,
    (error: unknown) => String(error),
  );

describe("the environments of a server", () => {
  it("are made, read, listed, replaced and removed over REST", async () => {
    const { server, ask } = await started();
    const definition = {
      id: "lab",
      agent: { system_prompt: "You move arms.", max_steps: 9 },
      permissions: [{ tool: "arm__*", policy: "block", category: "physical" }],
      observation: { tool: "look" },
      hosts: { arm: { tools: ["arm__*"], labels: { site: "north" } } },
    };
    const made = await ask("POST", "", { environment: definition });
    expect(made.status).toBe(201);
    expect(made.json).toMatchObject({
      ...definition,
      source: "ENVIRONMENT_SOURCE_CREATED",
      harness: "agent",
      version: "1",
      observation: { tool: "look", max_age_ms: 30_000 },
      tools: { physical: ["*"] },
    });
    expect(await ask("GET", "/lab")).toEqual({ status: 200, json: made.json });
    const listed = await fetch(`${server.url}/api/v1/environments?page_size=1`);
    expect(await listed.json()).toMatchObject({ environments: [{ id: "default" }], next_page_token: expect.stringMatching(/./) as string });

    // What was read is what may be sent back.
    const changed = await ask("PUT", "/lab", { environment: { ...made.json, description: "New." }, expected_version: 1 });
    expect(changed).toMatchObject({ status: 200, json: { version: "2", description: "New.", permissions: definition.permissions } });
    expect(await ask("PUT", "/lab", { environment: {}, expected_version: 1 })).toMatchObject({ status: 409, json: { code: "aborted" } });
    expect(await ask("DELETE", "/lab?expected_version=1")).toMatchObject({ status: 409 });
    expect(await ask("DELETE", "/lab?expected_version=2")).toEqual({ status: 200, json: changed.json });
    expect(await ask("GET", "/lab")).toMatchObject({ status: 404, json: { code: "not_found", field: "id" } });
  });

  it("are refused by the field, in the words of the API", async () => {
    const { ask } = await started();
    const field = async (environment: object) => {
      const { status, json } = await ask("POST", "", { environment: { id: "a", ...environment } });
      return `${status} ${String(json["field"])}`;
    };
    expect(await field({ id: "A" })).toBe("400 environment.id");
    expect(await field({ max_context_tokens: 5 })).toBe("400 environment.max_context_tokens");
    expect(await field({ permissions: [{ tool: "*", policy: "perhaps" }] })).toBe("400 environment.permissions[0].policy");
    expect(await field({ agent: { max_steps: 0 } })).toBe("400 environment.agent.max_steps");
    expect(await field({ harness: "nobody" })).toBe("400 environment.harness");
    expect(await field({ hosts: { arm: { harness: "nobody" } } })).toBe("400 environment.hosts.arm.harness");
    expect(await field({ model: "nobody-has-this" })).toBe("400 environment.model");
    expect(await field({ models: { large: "nobody-has-this" } })).toBe("400 environment.models.large");
    expect(await field({ model: "large", models: { large: "echo" } })).toBe("201 undefined");
    expect(await ask("PUT", "/a", { environment: { id: "b" }, expected_version: 1 })).toMatchObject({
      status: 400,
      json: { field: "environment.id" },
    });
    expect(await ask("PATCH", "/a")).toMatchObject({ status: 405 });
  });

  it("of the config file are read and not changed; default is there without it, and is what it says with it", async () => {
    const { ask } = await started({ environments: { lab: { description: "from the file" } } });
    expect(await ask("GET", "/lab")).toMatchObject({
      status: 200,
      json: { description: "from the file", source: "ENVIRONMENT_SOURCE_CONFIGURED" },
    });
    expect(await ask("DELETE", "/lab")).toMatchObject({ status: 412, json: { code: "failed_precondition" } });
    expect(await ask("POST", "", { environment: { id: "default" } })).toMatchObject({ status: 412 });
    const other = await started({ environments: { default: { description: "mine" } } });
    expect(await other.ask("GET", "/default")).toMatchObject({ json: { description: "mine" } });
  });

  it("are so many at most as the server is told", async () => {
    const { ask } = await started({}, 1);
    expect(await ask("POST", "", { environment: { id: "a" } })).toMatchObject({ status: 201 });
    expect(await ask("POST", "", { environment: { id: "b" } })).toMatchObject({ status: 429, json: { code: "resource_exhausted" } });
  });

  it("that were made are there after a restart", async () => {
    const store = { kind: "sqlite", folder: newFolder() } as const;
    const first = await started({ store });
    const { json } = await first.ask("POST", "", { environment: { id: "lab", agent: { system_prompt: "Größe" } } });
    await first.server.shutdown({ graceMs: 0 });
    const second = await started({ store });
    expect(await second.ask("GET", "/lab")).toEqual({ status: 200, json });
    await second.server.shutdown({ graceMs: 0 });
    expect(await refused({ store, environments: { lab: {} } })).toMatch(/environments\.lab: was made over the API on this host/);

    new DatabaseSync(join(store.folder, ENVIRONMENTS_FILE)).exec("UPDATE environments SET definition = '{'");
    expect(await refused({ store })).toMatch(/environments: one cannot be read; restore the file from a copy/);
  });

  it("keep a server from starting by the path of what is wrong", async () => {
    expect(await refused({ environments: { lab: { harness: "nobody" } } })).toMatch(
      /environments\.lab\.harness: must be a harness that this server has: echo, chat, agent/,
    );
    expect(await refused({ environments: { lab: { models: { large: "nobody-has-this" } } } })).toMatch(
      /environments\.lab\.models\.large: must be a model that this host serves/,
    );
    expect(await refused({ environments: { Lab: {} } })).toMatch(/environments\.Lab: must be 1 to 64 lowercase letters/);
  });
});
