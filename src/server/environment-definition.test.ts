import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { HoldfastError } from "../base/index.ts";
import { plainEnvironment } from "../service/index.ts";
import { environmentConfigs } from "./environment-config.ts";
import { API_WORDS, CONFIG_WORDS, ENVIRONMENT_BYTES_MAX, environmentOf } from "./environment-definition.ts";

const AT = "environments.lab";
const parse = (value: unknown, id = "lab") => environmentOf(id, { at: AT, value }, CONFIG_WORDS);

function refusal(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error;
    expect(error.code).toBe("invalid_argument");
    expect(error.message.startsWith(`${error.field}: `)).toBe(true);
    return error.message;
  }
  throw new Error("nothing was refused");
}

const WHOLE = {
  description: "Two arms and a camera.",
  agent: { system_prompt: "You move arms.", params: { temperature: 0 }, max_steps: 9, steering: true },
  model: "small",
  models: { small: "m-1", "large.v2": "m-9" },
  permissions: [
    { tool: "*__stop", policy: "allow", reason: "stopping is safe" },
    { tool: "arm*", policy: "block", category: "physical" },
  ],
  observation: { tool: "camera__shot", maxAgeMs: 500 },
  tools: { pure: ["camera__*"], physical: ["arm*"] },
  hosts: {
    "arm-1": { tools: ["arm1__*"], observation: { tool: "arm1__pose" }, labels: { "site/room": "lab:2" } },
    sim: { harness: "boxed" },
  },
  presence: { idle: "mini" },
  maxContextTokens: 50_000,
};

describe("an environment's definition", () => {
  it("is whole once it was read", () => {
    expect(parse({})).toEqual(plainEnvironment("lab"));
    expect(parse(WHOLE)).toEqual({
      ...WHOLE,
      id: "lab",
      harness: "agent",
      hosts: {
        "arm-1": { tools: ["arm1__*"], observation: { tool: "arm1__pose", maxAgeMs: 30_000 }, labels: { "site/room": "lab:2" } },
        sim: { harness: "boxed", labels: {} },
      },
      presence: { physical: "full", pure: "mini", idle: "mini" },
    });
  });

  it("is the same when it is read again, as a store gives it back", () => {
    for (const value of [{}, WHOLE, { harness: "chat" }]) {
      const environment = parse(value);
      expect(parse(JSON.parse(JSON.stringify({ ...environment, id: undefined })))).toEqual(environment);
    }
  });

  it.each([
    [[], "environments.lab: must be an object"],
    [{ modle: "x" }, /^environments\.lab\.modle: is no key here; there are: description, harness, agent, model, models/],
    [{ description: "x".repeat(1_025) }, "environments.lab.description: must be a text of at most 1024 characters"],
    [{ harness: "" }, "environments.lab.harness: must be a text that is not empty"],
    [{ agent: { max_steps: 0 } }, "environments.lab.agent.max_steps: must be a whole number from 1 to 1000"],
    [{ agent: { stream: 1 } }, /^environments\.lab\.agent\.stream: is not known/],
    [{ agent: { answer: { schema: {} } } }, /^environments\.lab\.agent\.answer: belongs to an agent that the host defines/],
    [{ agent: { tools: {} } }, /^environments\.lab\.agent\.tools: does not stand here; it stands as tools and permissions/],
    [{ agent: { model: "m" } }, /^environments\.lab\.agent\.model: does not stand here; it stands as model/],
    [{ models: { "": "m" } }, /^environments\.lab\.models\."": must have a name of at most 128 letters/],
    [{ models: { a: "" } }, "environments.lab.models.a: must be a text that is not empty"],
    [{ permissions: {} }, "environments.lab.permissions: must be a list"],
    [{ permissions: [{ policy: "allow" }] }, /^environments\.lab\.permissions\[0\]\.tool: must be a tool's name, in which \*/],
    [{ permissions: [{ tool: "*" }] }, "environments.lab.permissions[0].policy: must be allow, require_confirmation or block"],
    [
      {
        permissions: [
          { tool: "*", policy: "allow" },
          { tool: "*", policy: "ask" },
        ],
      },
      "environments.lab.permissions[1].policy: must be allow, require_confirmation or block",
    ],
    [{ permissions: [{ tool: "*", policy: "allow", category: "any" }] }, /\.permissions\[0\]\.category: must be physical or pure$/],
    [{ permissions: [{ tool: "a b", policy: "allow" }] }, /\.permissions\[0\]\.tool: must be a tool's name/],
    [{ observation: {} }, "environments.lab.observation.tool: must be a tool's name"],
    [{ observation: { tool: "look*" } }, "environments.lab.observation.tool: must be a tool's name"],
    [{ observation: { tool: "look", maxAgeMs: 0 } }, /^environments\.lab\.observation\.maxAgeMs: must be a whole number from 1 to 3600000/],
    [
      { observation: { tool: "look", max_age_ms: 5 } },
      /^environments\.lab\.observation\.max_age_ms: is no key here; there are: tool, maxAgeMs/,
    ],
    [{ tools: { free: [] } }, /^environments\.lab\.tools\.free: is no key here; there are: pure, physical/],
    [{ tools: { pure: ["a", 1] } }, /^environments\.lab\.tools\.pure\[1\]: must be a tool's name/],
    [{ hosts: { "a=b": {} } }, /^environments\.lab\.hosts\."a=b": must have a name/],
    [{ hosts: { arm: { tools: [] } } }, /^environments\.lab\.hosts\.arm\.tools: must have one pattern at least, or be left out/],
    [{ hosts: { arm: { labels: { site: "a,b" } } } }, /^environments\.lab\.hosts\.arm\.labels\.site: must have a value of at most 128/],
    [{ presence: { idle: "none" } }, "environments.lab.presence.idle: must be full, mini or hidden"],
    [{ maxContextTokens: 999 }, "environments.lab.maxContextTokens: must be a whole number from 1000 to 100000000"],
  ])("is refused by the path of what is wrong: %j", (value, message) => {
    expect(refusal(() => parse(value))).toMatch(message);
  });

  it.each(["", "Lab", "a.b", "x".repeat(65)])("does not have the id %j", (id) => {
    expect(refusal(() => parse({}, id))).toBe("environments.lab: must be 1 to 64 lowercase letters, digits, underscores and hyphens");
  });

  it.each([
    ["agent", { system_prompt: "x" }],
    ["permissions", [{ tool: "*", policy: "block" }]],
    ["observation", { tool: "look" }],
    ["tools", { pure: [], physical: [] }],
  ])("says nothing of %s where no agent would heed it", (key, value) => {
    expect(refusal(() => parse({ harness: "chat", [key]: value }))).toMatch(`environments.lab.${key}: is for the harness agent`);
    expect(parse({ harness: "chat", [key]: value, hosts: { here: { harness: "agent" } } }).harness).toBe("chat");
  });

  it("is in the API's words what it is in the file's, and its errors name these", () => {
    const { maxContextTokens, observation, ...rest } = WHOLE;
    const value = { ...rest, max_context_tokens: maxContextTokens, observation: { tool: observation.tool, max_age_ms: 500 } };
    expect(environmentOf("lab", { at: "environment", value }, API_WORDS)).toEqual(parse(WHOLE));
    const small = { at: "environment", value: { max_context_tokens: 1 } };
    expect(refusal(() => environmentOf("lab", small, API_WORDS))).toMatch(/^environment\.max_context_tokens: /);
    expect(refusal(() => environmentOf("LAB", { at: "environment", value }, API_WORDS))).toMatch(/^environment\.id: /);
  });

  it.each([
    ["models", 32, (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`t${index}`, "m"])), "tiers"],
    ["hosts", 64, (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`h${index}`, {}])), "hosts"],
    ["permissions", 256, (count: number) => Array.from({ length: count }, () => ({ tool: "a", policy: "allow" })), "entries"],
    ["tools", 256, (count: number) => ({ pure: Array.from({ length: count }, () => "a") }), "entries"],
  ])("has so many %s: %i", (key, max, make, what) => {
    expect(() => parse({ [key]: make(max) })).not.toThrow();
    expect(refusal(() => parse({ [key]: make(max + 1) }))).toMatch(new RegExp(`must have at most ${max} ${what}$`));
  });

  it("has so many labels of a host", () => {
    const labels = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, "v"]));
    expect(() => parse({ hosts: { a: { labels: labels(16) } } })).not.toThrow();
    expect(refusal(() => parse({ hosts: { a: { labels: labels(17) } } }))).toMatch(/hosts\.a\.labels: must have at most 16 labels$/);
  });

  it.each([
    ["description", 1_024, (text: string) => ({ description: text })],
    ["reason", 256, (text: string) => ({ permissions: [{ tool: "a", policy: "allow", reason: text }] })],
    ["harness", 256, (text: string) => ({ harness: text })],
    ["model", 256, (text: string) => ({ model: text })],
    ["pattern", 128, (text: string) => ({ tools: { physical: [text] } })],
    ["observation's tool", 64, (text: string) => ({ observation: { tool: text } })],
    ["tier", 128, (text: string) => ({ models: { [text]: "m" } })],
    ["host's id", 128, (text: string) => ({ hosts: { [text]: {} } })],
    ["label's value", 128, (text: string) => ({ hosts: { a: { labels: { k: text } } } })],
  ])("has so many characters of a %s: %i", (_what, max, make) => {
    expect(() => parse(make("x".repeat(max)))).not.toThrow();
    expect(() => parse(make("x".repeat(max + 1)))).toThrow(HoldfastError);
  });

  it("takes so many bytes", () => {
    const sized = (length: number) => ({ agent: { system_prompt: "x".repeat(length) } });
    const rest = JSON.stringify(parse(sized(0))).length;
    expect(() => parse(sized(ENVIRONMENT_BYTES_MAX - rest))).not.toThrow();
    expect(refusal(() => parse(sized(ENVIRONMENT_BYTES_MAX - rest + 1)))).toBe("environments.lab: must take at most 65536 bytes as JSON");
  });
});

describe("the environments of a config file", () => {
  const around = (folder: string) => ({ folder, env: {} });

  it("may be none, and are at most 256", () => {
    expect(environmentConfigs(undefined, around("/"))).toEqual({});
    const many = (count: number) => ({
      at: "environments",
      value: Object.fromEntries(Array.from({ length: count }, (_, index) => [`e${index}`, {}])),
    });
    expect(Object.keys(environmentConfigs(many(256), around("/")))).toHaveLength(256);
    expect(refusal(() => environmentConfigs(many(257), around("/")))).toBe("environments: must have at most 256 environments");
  });

  it("have agents in files of their own, beside the config file", () => {
    const folder = mkdtempSync(join(tmpdir(), "holdfast-environment-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    writeFileSync(join(folder, "lab.yaml"), "system_prompt: |\n  You look.\nmax_steps: 3\n");
    const read = (agent: string) => environmentConfigs({ at: "environments", value: { lab: { agent } } }, around(folder));
    expect(read("lab.yaml")).toEqual({ lab: { agent: { system_prompt: "You look.\n", max_steps: 3 } } });
    expect(refusal(() => read("nowhere.yaml"))).toBe("environments.lab.agent: must name a file that can be read");
  });
});
