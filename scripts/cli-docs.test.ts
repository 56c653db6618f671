import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { examplesOf } from "../src/cli/define.ts";
import { createProgram, everyCommand, pathOf } from "../src/cli/program.ts";
import { cliPage, PAGE } from "./cli-docs.ts";

describe("docs/cli.md", () => {
  it("is what the definitions of the commands say; `node scripts/cli-docs.ts` writes it", () => {
    expect(readFileSync(PAGE, "utf8")).toBe(cliPage());
  });

  it("has every command with its options and an example", () => {
    const page = readFileSync(PAGE, "utf8");
    for (const command of everyCommand(createProgram()).slice(1)) {
      expect(page).toContain(`## ${pathOf(command).replace("holdfast ", "")}\n`);
      for (const option of command.options.filter(({ hidden }) => !hidden))
        expect(page).toContain(`\`${option.flags.replaceAll("|", "\\|")}\``);
      expect(examplesOf(command).length, command.name()).toBeGreaterThan(0);
    }
  });
});
