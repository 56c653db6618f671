import { existsSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { HoldfastError, type Clock } from "../base/index.ts";
import { systemClock } from "../node/index.ts";
import { TemporaryFolder } from "../testing/temporary-folder.ts";
import { embeddingText, embedOrJoin, JOIN_TIMEOUT_MS, type Embedding } from "./embed-or-join.ts";

/** A clock on which a sleep is over at once, and has taken its time. */
function skippingClock(): Clock {
  let elapsedMs = 0;
  return { ...systemClock, monotonicMs: () => elapsedMs, sleep: async (ms) => void (elapsedMs += ms) };
}

const held = () => Promise.reject(new HoldfastError("unavailable", "data folder: another running process has it"));

function embedding(options: Partial<Embedding<string>>): Embedding<string> {
  return {
    choice: { kind: "embedded", found: "nobody" },
    folder: "./nowhere",
    onlyReads: false,
    start: () => Promise.resolve("own"),
    probe: () => Promise.resolve("nobody"),
    clock: skippingClock(),
    signal: new AbortController().signal,
    ...options,
  };
}

describe("a command that found no server", () => {
  it("has one of its own", async () => {
    expect(await embedOrJoin(embedding({}))).toEqual({ kind: "embedded", server: "own" });
  });

  it("joins the server that holds the folder once that answers, which may be a moment later", async () => {
    let probes = 0;
    const probe = async () => (++probes < 5 ? "nobody" : "holdfast");
    expect(await embedOrJoin(embedding({ start: held, probe }))).toEqual({ kind: "joined" });
    expect(probes).toBe(5);
  });

  it("gives up after a while, names the folder and says what to do", async () => {
    const clock = skippingClock();
    await expect(embedOrJoin(embedding({ start: held, clock }))).rejects.toMatchObject({
      code: "unavailable",
      message: "data folder: another running process has it",
      hint: expect.stringMatching(/^the folder is \.\/nowhere, and no server at 127\.0\.0\.1:8080; .*--server.*HOLDFAST_DATA$/) as string,
    });
    expect(clock.monotonicMs()).toBe(JOIN_TIMEOUT_MS);
  });

  it.each([undefined, "somebody-else"] as const)("waits for nobody when the default address has nobody to offer: %s", async (found) => {
    const probe = () => Promise.reject(new Error("the default port was probed"));
    const refused = embedOrJoin(embedding({ choice: { kind: "embedded", found }, start: held, probe }));
    await expect(refused).rejects.toMatchObject({ code: "unavailable" });
  });

  it("passes on what else is wrong as it is", async () => {
    const wrong = new HoldfastError("failed_precondition", "journal: is newer");
    await expect(embedOrJoin(embedding({ start: () => Promise.reject(wrong) }))).rejects.toBe(wrong);
  });

  it("reads no folder that is not there, and makes none", async () => {
    using parent = new TemporaryFolder();
    const folder = join(parent.path, "data");
    const start = () => Promise.reject(new Error("a server was started"));
    await expect(embedOrJoin(embedding({ folder, onlyReads: true, start }))).rejects.toMatchObject({
      code: "not_found",
      message: `there is no journal at ${folder}; no server at 127.0.0.1:8080`,
    });
    expect(existsSync(folder)).toBe(false);
    expect(await embedOrJoin(embedding({ folder: parent.path, onlyReads: true }))).toMatchObject({ kind: "embedded" });
    expect(await embedOrJoin(embedding({ folder: undefined, onlyReads: true }))).toMatchObject({ kind: "embedded" });
  });

  it("tells where the data goes", () => {
    const text = (found: "nobody" | "somebody-else") => embeddingText({ kind: "embedded", found }, "./.holdfast");
    expect(text("nobody")).toBe("no server at 127.0.0.1:8080; using ./.holdfast in this process");
    expect(text("somebody-else")).toBe("what answers at 127.0.0.1:8080 is not Holdfast; using ./.holdfast in this process");
    expect(embeddingText({ kind: "embedded", found: undefined }, undefined)).toBe("using a journal in memory in this process");
  });
});
