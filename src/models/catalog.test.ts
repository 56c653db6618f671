import { describe, expect, it } from "vitest";
import type { ModelProvider } from "../spi/index.ts";
import { createModelCatalog } from "./catalog.ts";
import { createEchoProvider } from "./echo.ts";

const named = (name: string): ModelProvider => ({ ...createEchoProvider(), name });
const [echo, claude, anthropic, opus, rest] = ["echo", "claude", "anthropic", "opus", "rest"].map(named) as [
  ModelProvider,
  ModelProvider,
  ModelProvider,
  ModelProvider,
  ModelProvider,
];
const routes = [
  { match: "claude-*", provider: claude },
  { match: "echo", provider: echo },
  { match: "anthropic/*", provider: anthropic },
  { match: "claude-opus-*", provider: opus },
  { match: "claude-opus-1", provider: rest },
];

describe("the model catalogue", () => {
  it.each([
    ["echo", "echo"],
    ["claude-haiku-5", "claude"],
    ["claude-opus-5", "opus"],
    ["claude-opus-1", "rest"],
    ["anthropic/claude-opus-5", "anthropic"],
  ])("finds the provider of %s: exact before prefix, the longer prefix first", (model, provider) => {
    expect(createModelCatalog({ routes }).providerOf(model)?.name).toBe(provider);
  });

  it("knows no other model without a fallback, and no model without a name with one", () => {
    expect(createModelCatalog({ routes }).providerOf("gpt-x")).toBeUndefined();
    expect(createModelCatalog({ routes, fallback: rest }).providerOf("gpt-x")?.name).toBe("rest");
    expect(createModelCatalog({ routes, fallback: rest }).providerOf("")).toBeUndefined();
  });

  it.each(["", "*", "a*b", "a**"])("refuses the match %j", (match) => {
    expect(() => createModelCatalog({ routes: [{ match, provider: echo }] })).toThrow("routes.match");
  });

  it("refuses a match that is there twice", () => {
    expect(() => createModelCatalog({ routes: [...routes, { match: "echo", provider: rest }] })).toThrow("once only");
  });
});
