import { describe, expect, it } from "vitest";
import { HoldfastError } from "../../base/index.ts";
import type { Environment } from "../../spi/index.ts";
import { permissionFor, permissionRules, plainEnvironment, resolveContextTokens, resolveHost, resolveModel } from "./index.ts";

const environment = (changes: Partial<Environment> = {}): Environment => ({ ...plainEnvironment("lab"), ...changes });

function refusal(act: () => unknown): { readonly field: string | undefined; readonly message: string } {
  try {
    act();
  } catch (error) {
    if (error instanceof HoldfastError && error.code === "invalid_argument") return { field: error.field, message: error.message };
    throw error;
  }
  throw new Error("nothing was refused");
}

describe("permissions", () => {
  it("let tools run that only read, and ask for those that act on the world", () => {
    expect(permissionFor({ name: "look", category: "pure" }, environment())).toMatchObject({ policy: "allow" });
    expect(permissionFor({ name: "move", category: "physical" }, environment())).toMatchObject({ policy: "require_confirmation" });
  });

  it("are as the environment's first rule says that fits the name and the category", () => {
    const rules = environment({
      permissions: [
        { tool: "*__stop", policy: "allow", reason: "stopping is always safe" },
        { tool: "arm__*", policy: "require_confirmation", category: "pure" },
        { tool: "arm__m*ve", policy: "block", reason: "the arm is being repaired" },
        { tool: "arm__*", policy: "allow" },
      ],
    });
    const policyOf = (name: string, category: "pure" | "physical") => permissionFor({ name, category }, rules).policy;
    expect(permissionFor({ name: "arm__stop", category: "physical" }, rules)).toEqual({
      policy: "allow",
      reason: "stopping is always safe",
    });
    expect(policyOf("arm__move", "pure")).toBe("require_confirmation");
    expect(policyOf("arm__move", "physical")).toBe("block");
    expect(policyOf("arm__grip", "physical")).toBe("allow");
    expect(policyOf("leg__grip", "physical")).toBe("require_confirmation");
  });

  it("are shown to a client in the order in which they decide, with what holds everywhere at the end", () => {
    const shown = permissionRules(environment({ permissions: [{ tool: "rm", policy: "block", reason: "no" }] }));
    expect(shown.map(({ toolPattern, policy, category, reason }) => [toolPattern, policy, category, reason])).toEqual([
      ["rm", "block", undefined, "no"],
      ["*", "allow", "pure", "it only reads or computes"],
      ["*", "require_confirmation", "physical", "it acts on the world"],
    ]);
  });
});

describe("the model", () => {
  const tiers = environment({ model: "small", models: { small: "m-1", large: "m-9" } });

  it("is the environment's where the client asks for none, and the server's where neither says", () => {
    expect(resolveModel(environment(), "")).toBe("");
    expect(resolveModel(environment({ model: "m-3" }), "")).toBe("m-3");
    expect(resolveModel(tiers, "")).toBe("m-1");
  });

  it("is any that a client asks for where the environment has no tiers", () => {
    expect(resolveModel(environment({ model: "m-3" }), "anything")).toBe("anything");
  });

  it("is a tier's or one of theirs where it has some, or the environment's own", () => {
    expect(resolveModel(tiers, "large")).toBe("m-9");
    expect(resolveModel(tiers, "m-9")).toBe("m-9");
    expect(resolveModel({ ...tiers, model: "m-3" }, "m-3")).toBe("m-3");
    expect(refusal(() => resolveModel(tiers, "m-3"))).toEqual({
      field: "model",
      message: "model: must be one that the environment has, or be empty; it has: large, small",
    });
    expect(refusal(() => resolveModel(tiers, "constructor")).field).toBe("model");
  });

  it("names some of many tiers in its error", () => {
    const models = Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`t${index}`, `m${index}`]));
    expect(refusal(() => resolveModel(environment({ models }), "x")).message).toMatch(/, 10 more$/);
  });
});

describe("the context", () => {
  it("is the smaller of what the client asks for and what the environment has", () => {
    expect(resolveContextTokens(environment(), undefined)).toBeUndefined();
    expect(resolveContextTokens(environment({ maxContextTokens: 5_000 }), undefined)).toBe(5_000);
    expect(resolveContextTokens(environment({ maxContextTokens: 5_000 }), 9_000)).toBe(5_000);
    expect(resolveContextTokens(environment({ maxContextTokens: 5_000 }), 1_000)).toBe(1_000);
    expect(resolveContextTokens(environment(), 4_294_967_295)).toBe(100_000_000);
  });

  it("is not so small that nothing fits", () => {
    expect(refusal(() => resolveContextTokens(environment(), 999)).field).toBe("max_context_tokens");
  });
});

describe("the host", () => {
  const look = { tool: "camera__shot", maxAgeMs: 500 };
  const fleet = environment({
    observation: look,
    hosts: {
      "arm-2": { tools: ["arm2__*"], labels: { site: "lab", kind: "arm" } },
      "arm-1": { tools: ["arm1__*"], observation: { tool: "arm1__pose", maxAgeMs: 50 }, labels: { site: "lab", kind: "arm" } },
      sandbox: { harness: "boxed", labels: { kind: "sim" } },
    },
  });

  it("is the environment itself where the client chooses none", () => {
    expect(resolveHost(fleet, "")).toEqual({ hostId: "", harness: "agent", tools: ["*"], observation: look });
  });

  it("brings its harness, its tools and what it looks at", () => {
    expect(resolveHost(fleet, "sandbox")).toEqual({ hostId: "sandbox", harness: "boxed", tools: ["*"], observation: look });
    expect(resolveHost(fleet, "arm-1")).toMatchObject({ tools: ["arm1__*"], observation: { tool: "arm1__pose" } });
  });

  it("is found by its labels: the first that has a tool within reach", () => {
    expect(resolveHost(fleet, "site=lab, kind=arm").hostId).toBe("arm-1");
    expect(resolveHost(fleet, "site=lab", ["arm2__grip"]).hostId).toBe("arm-2");
    expect(resolveHost(fleet, "kind=sim", ["arm2__grip"]).hostId).toBe("sandbox");
  });

  it.each(["arm-3", "site=lab,kind=leg", "site=lab,", "=lab", "constructor", "toString=x"])("is not %s", (asked) => {
    expect(refusal(() => resolveHost(fleet, asked))).toEqual({
      field: "host_id",
      message: "host_id: must be a host of the environment, or labels of one as key=value; it has: arm-1, arm-2, sandbox",
    });
  });

  it("is nothing that a client can choose where the environment has none", () => {
    expect(refusal(() => resolveHost(environment(), "arm-1")).message).toBe("host_id: must be empty: the environment has no hosts");
  });
});
