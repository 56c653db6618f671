import { build } from "esbuild";
import { afterEach, describe, expect, it } from "vitest";
import { createLineHarness } from "../harness-wire/index.ts";
import { systemClock } from "../node/index.ts";
import { memoryLine } from "../testing/harness-wire/memory-line.ts";
import { outcomeOf, ProbeSink, probeStart } from "../testing/harness-wire/probe-host.ts";
import { probeHarness } from "../testing/harness-wire/probe-harness.ts";
import { serveHarness, type HoldfastDoor } from "./index.ts";

/** What `holdfast/harness` is inside a sandbox. */

const globals = globalThis as { holdfastDoor?: HoldfastDoor };
afterEach(() => delete globals.holdfastDoor);

describe("serving at the door of a sandbox", () => {
  it("drives the harness by the frames that pass it", async () => {
    const { host, peer } = memoryLine();
    const door: HoldfastDoor = { receive: undefined, send: (frame) => peer.send(frame) };
    globals.holdfastDoor = door;
    peer.onFrame = (frame) => door.receive?.(frame);
    const served = await serveHarness(probeHarness());
    expect(served.address).toBe("door");
    await using remote = createLineHarness({ line: host, clock: systemClock });
    const sink = new ProbeSink();
    const running = remote.run(probeStart("a model call and its usage"), sink, { signal: new AbortController().signal });
    expect(await running.then(() => "completed", outcomeOf)).toBe("completed");
    expect(sink.asked.length).toBe(3);
    await served[Symbol.asyncDispose]();
    expect(door.receive).toBeUndefined();
  });

  it("needs a door, and has it for itself", async () => {
    await expect(serveHarness(probeHarness())).rejects.toMatchObject({ code: "failed_precondition" });
    globals.holdfastDoor = { receive: undefined, send: async () => undefined };
    await serveHarness(probeHarness());
    await expect(serveHarness(probeHarness())).rejects.toMatchObject({ message: expect.stringContaining("already") as string });
  });
});

describe("a harness as one script", () => {
  it("is small, and has nothing of the protobuf library or of Node in it", async () => {
    const entry = new URL("index.ts", import.meta.url).pathname;
    const contents = `import { defineHarness, serveHarness } from ${JSON.stringify(entry)};
      void serveHarness(defineHarness({ id: "x", version: "1", run: async (start, sink) => void (await sink.model({ messages: start.inputs })) }));`;
    const bundled = await build({
      stdin: { contents, resolveDir: import.meta.dirname },
      bundle: true,
      write: false,
      metafile: true,
      minify: true,
      format: "iife",
      platform: "neutral",
      target: "es2023",
    });
    const kept = Object.values(bundled.metafile.outputs).flatMap(({ inputs }) =>
      Object.entries(inputs).flatMap(([path, { bytesInOutput }]) => (bytesInOutput > 0 ? [path] : [])),
    );
    expect(kept.filter((path) => path.includes("node_modules"))).toEqual([]);
    expect(bundled.outputFiles[0]?.text).not.toMatch(/\brequire\(|node:|fileDesc/);
    expect(bundled.outputFiles[0]?.contents.length).toBeLessThan(20_000);
  });
});
