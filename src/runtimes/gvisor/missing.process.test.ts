import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { cryptoRandom, systemClock } from "../../node/index.ts";
import { createMemoryBlobStore } from "../../stores/blobs/index.ts";
import { spec } from "../../testing/runtime-conformance/fixtures.ts";
import { TemporaryFolder } from "../../testing/temporary-folder.ts";
import { createGvisorRuntime, whyNoGvisor, type GvisorRuntimeOptions } from "./index.ts";

const ports = { clock: systemClock, random: cryptoRandom };
const blobs = createMemoryBlobStore(ports);
const why = await whyNoGvisor({ ports, blobs });
if (why !== undefined) process.stderr.write(`skipped: a part of the tests of a host without gVisor, since ${why}\n`);

const create = (options: Partial<GvisorRuntimeOptions>) =>
  createGvisorRuntime({ command: "/bin/true", cwd: "/usr", blobs, ports, ...options });

const of = (options: Partial<GvisorRuntimeOptions>): Promise<unknown> =>
  create(options).then(
    () => undefined,
    (error: unknown) => error,
  );

describe("a host that cannot run gVisor", () => {
  it.runIf(process.getuid?.() === 0)("says what is missing", async () => {
    expect(await of({ runsc: "no-such-runsc" })).toMatchObject({
      code: "failed_precondition",
      message: expect.stringContaining("runsc is not installed"),
    });
    expect(await of({ runsc: "/bin/false" })).toMatchObject({ code: "failed_precondition", message: expect.stringContaining("runsc") });
  });

  it("says that it must be root", async () => {
    const uid = vi.spyOn(process, "getuid").mockReturnValue(1000);
    try {
      expect(await of({})).toMatchObject({
        code: "failed_precondition",
        message: "runtime: runsc needs root: start the host as root, or choose another runtime",
      });
    } finally {
      uid.mockRestore();
    }
  });

  it.runIf(why === undefined)("says that a command or a folder is wrong", async () => {
    expect(await of({ command: "no-such-program" })).toMatchObject({
      code: "failed_precondition",
      message: expect.stringContaining("command"),
    });
    expect(await of({ cwd: "/no/such/folder" })).toMatchObject({ code: "failed_precondition", message: expect.stringContaining("cwd") });
    expect(await of({ cwd: "/tmp" })).toMatchObject({ code: "invalid_argument", message: expect.stringContaining("cwd") });
    expect(await of({ env: { "A B": "" } })).toMatchObject({ code: "invalid_argument" });
  });

  it.runIf(why === undefined)("says so where runsc is there and no sandbox starts", async () => {
    using place = new TemporaryFolder("disk");
    const runsc = join(place.path, "runsc");
    writeFileSync(runsc, `#!/bin/sh\ncase " $* " in *" run "*) echo 'not permitted' >&2; exit 128 ;; esac\necho 'runsc version 1'\n`);
    chmodSync(runsc, 0o755);
    await using runtime = await create({ runsc });
    await expect(runtime.create(spec("session"))).rejects.toMatchObject({
      code: "failed_precondition",
      message: expect.stringContaining("cannot run a sandbox on this host"),
      details: { reason: "not permitted" },
    });
    expect(await whyNoGvisor({ ports, blobs, runsc })).toBe("runsc 1 cannot run a sandbox on this host: not permitted");
  });
});
