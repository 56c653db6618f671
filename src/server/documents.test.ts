import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { GATEWAY_LIMITS } from "../gateway/limits.ts";
import { AGENT_LIMITS, SERVICE_LIMITS } from "../service/index.ts";
import { SETTINGS, type Setting } from "./settings.ts";

const page = (name: string): string => readFileSync(join(import.meta.dirname, "..", "..", "docs", name), "utf8");

describe("the documents", () => {
  it("have every setting as it is", () => {
    const text = page("configuration.md");
    for (const { flag, takes, env, file, what, ...setting } of Object.values<Setting>(SETTINGS)) {
      const cells = [
        what,
        flag === undefined ? "" : `\`--${flag} <${takes?.replaceAll("|", "\\|")}>\``,
        `\`${env}\``,
        file === undefined ? "" : `\`${file}\``,
        setting.default === undefined ? "" : `\`${setting.default}\``,
      ];
      expect(text).toContain(`| ${cells.join(" | ")} |`);
    }
  });

  it("have every limit of requests and connections", () => {
    const text = page("limits.md");
    for (const name of [SERVICE_LIMITS, GATEWAY_LIMITS, AGENT_LIMITS].flatMap((limits) => Object.keys(limits)))
      expect(text).toContain(`\`${name}\``);
  });
});
