/** Sessions whose harness is a child: a real controller, a real journal, real processes. */

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { SessionUid } from "../../base/index.ts";
import type { IdlePolicy } from "../../controller/index.ts";
import { sessionOf } from "../../journal/index.ts";
import { cryptoRandom, nodeDigest, systemClock } from "../../node/index.ts";
import { createPlacedHarness } from "../../placement/index.ts";
import { ComputeState } from "../../spi/index.ts";
import { openSqliteStore } from "../../stores/sqlite/index.ts";
import { bundleProgram, type BundledProgram } from "../../testing/harness-programs/bundle.ts";
import { stateOfProcess, until } from "../../testing/harness-programs/driving.ts";
import { TestHost, TestModel } from "../../testing/host.ts";
import { TemporaryFolder } from "../../testing/temporary-folder.ts";
import { createProcessRuntime, type ProcessRuntimeOptions } from "./index.ts";

let bundle: BundledProgram;

beforeAll(async () => {
  bundle = await bundleProgram("program.ts");
});

afterAll(() => bundle[Symbol.dispose]());

interface Setup {
  readonly idle?: IdlePolicy;
  readonly process?: Partial<ProcessRuntimeOptions>;
}

/** A host over a journal in a file; disposing of it ends its children. */
async function world({ idle, process: options }: Setup = {}) {
  const folder = new TemporaryFolder();
  const ports = { clock: systemClock, random: cryptoRandom, digest: nodeDigest };
  const journal = await openSqliteStore({ folder: folder.path, clock: ports.clock, digest: ports.digest });
  const runtime = createProcessRuntime({ command: process.execPath, args: [bundle.file], cwd: folder.path, ports, ...options });
  const entry = createPlacedHarness({ name: "test", source: "static", runtime, sandboxed: true });
  const model = new TestModel();
  const host = new TestHost({ journal, ports, harnesses: {}, placed: [entry], models: model, idle });
  const rowOf = async (session: SessionUid) => {
    const row = await journal.get(session);
    if (row === undefined) throw new Error("no such session");
    return row;
  };
  return {
    host,
    model,
    folder: folder.path,
    stateOf: async (session: SessionUid) => (await rowOf(session)).projection.computeState,
    pidOf: async (session: SessionUid) => Number(sessionOf(await rowOf(session)).compute?.worker),
    turn: async (session: SessionUid, text: string) => {
      const outcome = await (await host.begin(session, [text])).outcome;
      return { outcome, story: await host.story(session) };
    },
    [Symbol.asyncDispose]: async () => {
      await host[Symbol.asyncDispose]();
      await entry[Symbol.asyncDispose]();
      await journal[Symbol.asyncDispose]();
      folder[Symbol.dispose]();
    },
  };
}

describe("a session whose harness is a child process", () => {
  it("has one child for all its turns, and tells of it", async () => {
    await using at = await world();
    const session = await at.host.createSession();
    expect((await at.turn(session, "count")).story.at(-2)).toBe("OUTPUT count 1");
    const pid = await at.pidOf(session);
    expect((await at.turn(session, "count")).story.at(-2)).toBe("OUTPUT count 2");
    expect(await at.pidOf(session)).toBe(pid);
    expect(await at.stateOf(session)).toBe(ComputeState.COMPUTE_LIVE);
    await at.host.controller.delete(session, undefined);
    expect(stateOfProcess(pid)).toBeUndefined();
  });

  it("is interrupted by a crash in the middle of a turn, and completes when it is resumed, without another call of the model", async () => {
    await using at = await world();
    const session = await at.host.createSession();
    const { outcome, story } = await at.turn(session, `exit-once ${at.folder}/left 3`);
    expect(outcome).toMatchObject({
      kind: "interrupted",
      error: { code: "unavailable", message: expect.stringContaining("exit code 3") as string },
    });
    expect(story.at(-1)).toBe("ERROR 14");
    expect(at.model.requests).toHaveLength(1);
    const { turn } = await at.host.controller.resume(session, undefined);
    expect(await turn?.outcome).toMatchObject({ kind: "ended", state: "COMPLETED" });
    expect((await at.host.story(session)).slice(-2)).toEqual(["OUTPUT done", "END COMPLETED"]);
    expect(at.model.requests).toHaveLength(1);
  });

  it("is cancelled though its child hangs, which is killed; the next turn has another", async () => {
    await using at = await world({ process: { limits: { cancelGraceMs: 200 }, stopGraceMs: 200 } });
    const session = await at.host.createSession();
    const running = await at.host.begin(session, ["spin"]);
    await until(async () => (await at.host.story(session)).includes("OUTPUT spinning"));
    const pid = await at.pidOf(session);
    await at.host.controller.cancel({ session, executionId: "", reason: "USER" });
    expect(await running.outcome).toMatchObject({ kind: "ended", state: "CANCELED" });
    await until(() => stateOfProcess(pid) === undefined);
    expect((await at.turn(session, "count")).story.at(-2)).toBe("OUTPUT count 1");
  });

  it("goes on in another child where the first died between two turns, and may be suspended instead", async () => {
    await using at = await world();
    const session = await at.host.createSession();
    for (const next of ["turn", "suspend"] as const) {
      await at.turn(session, "count");
      const pid = await at.pidOf(session);
      process.kill(pid, "SIGKILL");
      await until(() => stateOfProcess(pid) === undefined);
      if (next === "turn") expect((await at.turn(session, "count")).story.at(-2)).toBe("OUTPUT count 1");
      else expect((await at.host.controller.suspend(session, undefined)).projection.computeState).toBe(ComputeState.COMPUTE_COLD);
    }
  });

  it("begins with the program as it is by then, and its start tells the version; what was interrupted goes on with no other", async () => {
    await using at = await world({ process: { args: ["agent.mjs"] } });
    const program = readFileSync(bundle.file, "utf8");
    const write = (version: string) =>
      writeFileSync(join(at.folder, "agent.mjs"), program.replaceAll(/\bversion = "1"/g, `version = "${version}"`));
    const versions = async (session: SessionUid) =>
      (await at.host.records(session)).flatMap(({ event }) =>
        event?.body.case === "executionStart" ? [event.body.value.harnessVersion] : [],
      );
    write("1");
    const [one, two, cut] = [await at.host.createSession(), await at.host.createSession(), await at.host.createSession()];
    await at.turn(one, "count");
    expect((await at.turn(cut, `exit-once ${at.folder}/left 3`)).outcome.kind).toBe("interrupted");
    write("2");
    // Its first child: nobody has asked the new program what it is yet.
    expect(await at.turn(two, "count")).toMatchObject({ outcome: { kind: "ended", state: "COMPLETED" } });
    expect(await versions(two)).toEqual(["2"]);
    // It has a child already, which is what it was.
    expect((await at.turn(one, "count")).story.at(-2)).toBe("OUTPUT count 2");
    await at.host.controller.suspend(one, undefined);
    expect((await at.turn(one, "count")).story.at(-2)).toBe("OUTPUT count 1");
    expect(await versions(one)).toEqual(["1", "1", "2"]);
    await expect(at.host.controller.resume(cut, undefined)).rejects.toMatchObject({ code: "failed_precondition" });
    expect((await at.turn(cut, "count")).outcome).toMatchObject({ kind: "ended", state: "COMPLETED" });
    expect(await versions(cut)).toEqual(["1", "2"]);
  });

  it("goes warm when it is idle, then cold, and comes back from either", async () => {
    await using at = await world({ idle: { pauseAfterMs: 300, suspendAfterMs: 1_200 } });
    const session = await at.host.createSession();
    await at.turn(session, "count");
    const pid = await at.pidOf(session);
    await until(async () => (await at.stateOf(session)) === ComputeState.COMPUTE_WARM);
    // It stops when the system next looks at it.
    await until(() => stateOfProcess(pid) === "T");
    expect((await at.turn(session, "count")).story.at(-2)).toBe("OUTPUT count 2");
    expect(await at.pidOf(session)).toBe(pid);
    await until(async () => (await at.stateOf(session)) === ComputeState.COMPUTE_COLD);
    expect(stateOfProcess(pid)).toBeUndefined();
    expect((await at.turn(session, "count")).story.at(-2)).toBe("OUTPUT count 1");
  });
});
