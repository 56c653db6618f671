import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { TemporaryFolder } from "../testing/temporary-folder.ts";
import { dataFolder } from "./embedded.ts";

describe("the data folder of an embedded server", () => {
  it("is what the environment says, else ./.holdfast, and none for a journal in memory", () => {
    expect(dataFolder({})).toBe("./.holdfast");
    expect(dataFolder({ HOLDFAST_DATA: " /data " })).toBe("/data");
    expect(dataFolder({ HOLDFAST_DATA: " " })).toBe("./.holdfast");
    expect(dataFolder({ HOLDFAST_STORE: "memory", HOLDFAST_DATA: "/data" })).toBeUndefined();
  });

  it("is what the config file says, where the environment says nothing", () => {
    using folder = new TemporaryFolder();
    const HOLDFAST_CONFIG = join(folder.path, "holdfast.json");
    writeFileSync(HOLDFAST_CONFIG, JSON.stringify({ data: "data" }));
    expect(dataFolder({ HOLDFAST_CONFIG })).toBe(join(folder.path, "data"));
    expect(dataFolder({ HOLDFAST_CONFIG, HOLDFAST_DATA: "/data" })).toBe("/data");
    writeFileSync(HOLDFAST_CONFIG, JSON.stringify({ store: "memory" }));
    expect(dataFolder({ HOLDFAST_CONFIG })).toBeUndefined();
    expect(dataFolder({ HOLDFAST_CONFIG, HOLDFAST_STORE: "sqlite" })).toBe("./.holdfast");
    expect(() => dataFolder({ HOLDFAST_CONFIG: join(folder.path, "nowhere") })).toThrow(
      "HOLDFAST_CONFIG: must name a file that can be read",
    );
  });
});
