import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { describe, expect, it, onTestFinished } from "vitest";
import { HoldfastError, SILENT_LOG } from "../base/index.ts";
import { HarnessSpecSchema } from "../gen/agentsessions/v1/harness_registry_pb.ts";
import { createLocalRuntime } from "../runtimes/local/index.ts";
import { seededPorts, testHarness } from "../testing/index.ts";
import type { Runtime } from "../spi/index.ts";
import { HostCaptures } from "./captures.ts";
import type { HarnessConfig } from "./harness-config.ts";
import { openHostHarnesses, type HostHarnesses, type HostHarnessesOptions } from "./host-harnesses.ts";
import { createRuntimes } from "./runtimes.ts";

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-harnesses-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

const parrot = testHarness(async (_start, sink) => sink.output("parrot"), { id: "parrot" });
const REMOTE = { runtime: "remote", address: "127.0.0.1:7000" } as const;

/** Runtimes that are one harness in this process each, and what became of them. */
class LocalRuntimes {
  readonly asked: HarnessConfig[] = [];
  disposed = 0;

  of = (config: HarnessConfig): Runtime => {
    this.asked.push(config);
    const runtime = createLocalRuntime({ harness: parrot });
    const dispose = runtime[Symbol.asyncDispose].bind(runtime);
    runtime[Symbol.asyncDispose] = async () => {
      this.disposed++;
      await dispose();
    };
    return runtime;
  };
}

async function open(
  options: Partial<HostHarnessesOptions["config"]> & Partial<Omit<HostHarnessesOptions, "config">> = {},
): Promise<HostHarnesses> {
  const { store = { kind: "memory" }, harnesses = {}, program = {}, ports = seededPorts(), ...rest } = options;
  const runtimeOf = rest.runtimeOf ?? new LocalRuntimes().of;
  const opened = await openHostHarnesses({ config: { store, harnesses }, program, ports, runtimeOf });
  onTestFinished(() => opened[Symbol.asyncDispose]());
  return opened;
}

const spec = (descriptorId = "") =>
  create(HarnessSpecSchema, { placement: { case: "remote", value: { address: "127.0.0.1:7000" } }, descriptorId });

describe("the harnesses of a host", () => {
  it("are the built-in ones, the program's, the config file's and the registered ones", async () => {
    const runtimes = new LocalRuntimes();
    const { catalog, registry } = await open({ program: { parrot }, harnesses: { coder: REMOTE }, runtimeOf: runtimes.of });
    await registry.register("writer", spec());
    expect(catalog.names().toSorted()).toEqual(["agent", "chat", "coder", "echo", "history", "parrot", "writer"]);
    expect(catalog.find("coder")).toMatchObject({ source: "static", open: true });
    expect(catalog.find("writer")).toMatchObject({ source: "registered", open: true });
    expect(await catalog.find("coder")?.describe()).toMatchObject({ id: "parrot" });
    expect(await catalog.find("writer")?.describe()).toMatchObject({ id: "parrot" });
    expect(runtimes.asked).toEqual([REMOTE, REMOTE]);
    expect(registry.find("coder")).toMatchObject({ kind: "static", harness: { spec: spec() } });
    await expect(registry.register("coder", spec())).rejects.toMatchObject({ code: "failed_precondition" });
  });

  it("have one entry for a registration, closed while it is retired, and hold it to its descriptor's id", async () => {
    const runtimes = new LocalRuntimes();
    const { catalog, registry } = await open({ runtimeOf: runtimes.of });
    await registry.register("coder", spec("coder"));
    const entry = catalog.find("coder");
    expect(catalog.find("coder")).toBe(entry);
    await expect(entry?.describe()).rejects.toMatchObject({ code: "failed_precondition", field: "harness" });
    await registry.retire("coder", "");
    expect(entry?.open).toBe(false);
    expect(catalog.names()).not.toContain("coder");
    await registry.register("coder", spec("coder"));
    expect(catalog.find("coder")).toBe(entry);
    expect(entry?.open).toBe(true);
    expect(runtimes.asked.length).toBe(1);
  });

  it("end with the host, and with a start that fails", async () => {
    const runtimes = new LocalRuntimes();
    const opened = await open({ harnesses: { coder: REMOTE }, runtimeOf: runtimes.of });
    await opened.registry.register("writer", spec());
    opened.catalog.find("writer");
    await opened[Symbol.asyncDispose]();
    expect(runtimes.disposed).toBe(2);
    const failing = (config: HarnessConfig): Runtime => {
      if (config.runtime === "quickjs") throw new HoldfastError("failed_precondition", "runtime quickjs is not here");
      return runtimes.of(config);
    };
    const harnesses = { coder: REMOTE, repl: { runtime: "quickjs", script: "/a.js" } } as const;
    await expect(open({ harnesses, runtimeOf: failing })).rejects.toMatchObject({
      code: "failed_precondition",
      message: "harnesses.repl: runtime quickjs is not here",
      field: "harnesses.repl",
    });
    expect(runtimes.disposed).toBe(3);
  });

  it("keep the meaning of each name", async () => {
    const { of } = new LocalRuntimes();
    await expect(open({ harnesses: { echo: REMOTE }, runtimeOf: of })).rejects.toMatchObject({
      code: "invalid_argument",
      field: "harnesses.echo",
    });
    const both = { program: { coder: parrot }, harnesses: { coder: REMOTE }, runtimeOf: of };
    await expect(open(both)).rejects.toMatchObject({ code: "invalid_argument", field: "harnesses.coder" });
    const store = { kind: "sqlite", folder: newFolder() } as const;
    const first = await open({ store, runtimeOf: of });
    await first.registry.register("coder", spec());
    await first.registry.retire("coder", "");
    await first[Symbol.asyncDispose]();
    for (const options of [{ harnesses: { coder: REMOTE } }, { program: { coder: parrot } }]) {
      await expect(open({ store, runtimeOf: of, ...options })).rejects.toMatchObject({
        code: "failed_precondition",
        field: "harnesses.coder",
        message: expect.stringContaining("is registered on this host") as string,
      });
    }
    expect((await open({ store, runtimeOf: of })).catalog.find("coder")).toMatchObject({ source: "registered", open: false });
  });

  it("keep registrations beside the journal, or in memory", async () => {
    const folder = newFolder();
    await open({ store: { kind: "sqlite", folder } });
    expect(existsSync(join(folder, "registry.sqlite"))).toBe(true);
  });
});

describe("a runtime that this host has not", () => {
  it("makes a registered harness one that cannot be served, and says so", async () => {
    const missing = (): Runtime => {
      throw new HoldfastError("failed_precondition", "runtime remote is not built into this host");
    };
    const { catalog, registry } = await open({ runtimeOf: missing });
    await registry.register("coder", spec());
    expect(catalog.find("coder")).toMatchObject({ open: false, source: "registered" });
    await expect(catalog.find("coder")?.describe()).rejects.toMatchObject({
      code: "failed_precondition",
      message: "harness: runtime remote is not built into this host",
    });
  });

  it("is refused, whatever of it is missing", async () => {
    const gvisor = { runtime: "gvisor", command: ["no-such-program"], cwd: "/usr", env: {} } as const;
    const host = { config: { store: { kind: "memory" } }, ports: seededPorts() } as const;
    const options = { ...host, captures: new HostCaptures(host), log: SILENT_LOG, grant: undefined };
    await expect(createRuntimes(options)(gvisor)).rejects.toMatchObject({
      code: "failed_precondition",
      message: expect.stringMatching(/^runtime: /),
    });
  });
});
