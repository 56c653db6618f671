import { describe, expect, it } from "vitest";
import { HoldfastError } from "../base/index.ts";
import { approvalsConfig, NO_APPROVALS, policiesConfig } from "./policy-config.ts";

const around = { folder: "/", env: { HOOK: `whsec_${Buffer.alloc(24, 7).toString("base64")}`, SHORT: "x" } };
const policies = (value: unknown) => policiesConfig({ at: "policies", value });
const approvals = (value: unknown) => approvalsConfig({ at: "approvals", value }, around);

/** As it stands in a file: an object of a program's own is better off without the key `then`. */
const json = (text: string): unknown => JSON.parse(text);

function refusal(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    if (error instanceof HoldfastError && error.code === "invalid_argument") return error.message;
    throw error;
  }
  return "taken";
}

describe("the policies of a config file", () => {
  it("are rules in the file's order, whole, named by their place where they have no name", () => {
    const value = [
      { name: "reads", tool: "fs__read_*", args: { path: { under: "/srv" } }, do: "allow" },
      json('{"tool":"*","do":"ask","reason":"look at it","expireAfter":"90s","then":"allow"}'),
      { tool: "x", args: { n: { equals: 0 }, "/a/b": { prefix: "p", glob: "*q", equals: null } }, do: "ask", expireAfter: "never" },
    ];
    expect(policies(value)).toEqual([
      { name: "reads", tool: "fs__read_*", args: { path: { under: "/srv" } }, do: "allow", reason: "", expiry: undefined },
      { name: "policies[1]", tool: "*", args: {}, do: "ask", reason: "look at it", expiry: { afterMs: 90_000, answer: "allow" } },
      {
        name: "policies[2]",
        tool: "x",
        args: { n: { equals: 0 }, "/a/b": { prefix: "p", glob: "*q", equals: null } },
        do: "ask",
        reason: "",
        expiry: { afterMs: undefined, answer: "deny" },
      },
    ]);
    expect(policiesConfig(undefined)).toEqual([]);
  });

  it.each([
    [{}, "policies: must be a list"],
    [[{ tool: "x" }], "policies[0].do: must be allow, deny or ask"],
    [[{ do: "deny" }], "policies[0].tool: must be a text that is not empty"],
    [[{ tool: "x", do: "block" }], "policies[0].do: must be allow, deny or ask"],
    [[{ tool: "x", do: "deny", arg: {} }], "policies[0].arg: is no key here"],
    [[{ tool: "x", do: "deny", args: { p: {} } }], "policies[0].args.p: must have one of the keys"],
    [[{ tool: "x", do: "deny", args: { p: { regex: "." } } }], "policies[0].args.p.regex: is no key here"],
    [[{ tool: "x", do: "deny", args: { p: { equals: [] } } }], "policies[0].args.p.equals: must be a text, a number"],
    [[{ tool: "x", do: "deny", args: { p: { prefix: 1 } } }], "policies[0].args.p.prefix: must be a text"],
    [[{ tool: "x", do: "deny", args: { p: { under: "/a/../b" } } }], "policies[0].args.p.under: must be a folder without .."],
    [[{ tool: "x", do: "deny", expireAfter: "1d" }], "policies[0].expireAfter: is for rules that ask"],
    [[json('{"tool":"x","do":"ask","then":"deny"}')], "policies[0].then: must be given with expireAfter"],
    [[{ tool: "x", do: "ask", expireAfter: "1w" }], "policies[0].expireAfter: must be a number and a unit"],
    [[{ tool: "x", do: "ask", name: "a b" }], "policies[0].name: must have 1 to 64 letters"],
    [
      [
        { tool: "x", do: "ask", name: "a" },
        { tool: "y", do: "ask", name: "a" },
      ],
      "policies[1].name: must be a name of its own: policies[0] has it",
    ],
    [[{ tool: "x".repeat(1_025), do: "ask" }], "policies[0].tool: must have at most 1024 characters"],
  ])("are refused where %j is no rule", (value, message) => {
    expect(refusal(() => policies(value))).toContain(message);
  });
});

describe("what a config file says of approvals", () => {
  const hook = { url: "https://example.com/hook", secret: { env: "HOOK" } };

  it("is who is told, with the key that signs: whsec_ and base64, or a text", () => {
    const local = { url: "http://127.0.0.1:9/", secret: { env: "TEXT" }, projects: ["", "demo"], includeArgs: true };
    const env = { ...around.env, TEXT: "a text of 24 characters." };
    expect(approvalsConfig({ at: "approvals", value: { webhooks: [hook, local] } }, { folder: "/", env }).webhooks).toEqual([
      { url: hook.url, key: Buffer.alloc(24, 7), projects: undefined, includeArgs: false },
      { url: local.url, key: Buffer.from(env.TEXT), projects: ["", "demo"], includeArgs: true },
    ]);
  });

  it("is when requests expire, with which answer, and whether their turns go on", () => {
    expect(approvals({ expireAfter: "3d", resume: true })).toEqual({
      expiry: { afterMs: 3 * 86_400_000, answer: "deny" },
      resume: true,
      webhooks: [],
    });
    expect(approvals({})).toEqual(NO_APPROVALS);
    expect(approvals({ expireAfter: "never" })).toEqual(NO_APPROVALS);
  });

  it.each([
    [{ expireAfter: 3 }, "approvals.expireAfter: must be a number and a unit"],
    [{ expireAfter: "0s" }, "approvals.expireAfter: must be a number and a unit"],
    [json('{"expireAfter":"1d","then":"approve"}'), "approvals.then: must be allow or deny"],
    [{ resume: "yes" }, "approvals.resume: must be true or false"],
    [{ webhooks: [{ url: "http://example.com/", secret: { env: "HOOK" } }] }, "approvals.webhooks[0].url: must be an https address"],
    [{ webhooks: [{ url: "https://a:b@example.com/", secret: { env: "HOOK" } }] }, "approvals.webhooks[0].url: must be an https address"],
    [{ webhooks: [{ url: "https://example.com/", secret: "abc" }] }, 'approvals.webhooks[0].secret: must be {"env": NAME}'],
    [{ webhooks: [{ url: "https://example.com/", secret: { env: "SHORT" } }] }, "approvals.webhooks[0].secret: must hold a key of 24"],
    [{ webhooks: [{ url: "https://example.com/" }] }, "approvals.webhooks[0].secret: "],
    [{ webhooks: [hook, hook] }, "approvals.webhooks[1].url: must not be that of another webhook"],
    [{ webhooks: [{ ...hook, projects: [1] }] }, "approvals.webhooks[0].projects[0]: must be a project's name"],
    [{ webhooks: [{ ...hook, secretFile: "x" }] }, "approvals.webhooks[0].secretFile: is no key here"],
    [{ expires: "1d" }, "approvals.expires: is no key here"],
  ])("is refused where it says %j", (value, message) => expect(refusal(() => approvals(value))).toContain(message));
});
