/** Lines of every kind to a harness, for tests: in memory, over a socket, over the contract's own calls, to a child's standard streams. */

import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Clock } from "../../base/index.ts";
import {
  createLineHarness,
  type HarnessEndOptions,
  type HostLine,
  type LineHarness,
  type LineHarnessOptions,
  type WireLimits,
} from "../../harness-wire/index.ts";
import { dialHarness, hostLineOver, serveGrpc } from "../../harness-wire/node/index.ts";
import type { Harness } from "../../spi/index.ts";
import { memoryLineTo } from "./memory-line.ts";

/** A line, and what is at its other end. */
export interface OpenLine extends AsyncDisposable {
  readonly remote: LineHarness;
}

/** What every line takes. */
export interface LineOptions extends HarnessEndOptions {
  readonly clock: Clock;
  readonly limits?: Partial<WireLimits> | undefined;
  /** Opens services of the host to a harness that speaks the contract alone. */
  readonly grant?: LineHarnessOptions["grant"];
}

/** A line in memory to a harness. */
export async function openMemoryLine(harness: Harness, options: LineOptions): Promise<OpenLine> {
  return openLine(memoryLineTo(harness, options).host, options, async () => undefined);
}

/** A line to a served harness, on a unix socket or a port: on a connection of its own, within gRPC, or by the contract. */
export async function openGrpcLine(
  harness: Harness,
  options: LineOptions & { readonly over: "unix" | "tcp"; readonly wire: boolean; readonly stream?: boolean },
): Promise<OpenLine> {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-line-"));
  const address = options.over === "unix" ? `unix://${join(folder, "harness.sock")}` : "127.0.0.1:0";
  const served = await serveGrpc(harness, { ...options, address });
  const { line } = await dialHarness(served.address, {
    wire: options.wire,
    stream: options.stream,
    offersHost: options.grant !== undefined,
  });
  return openLine(line, options, async () => {
    await served[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  });
}

/** A line to the standard streams of a program that serves there. */
export async function openChildLine(
  program: readonly string[],
  options: LineOptions & {
    /** What runs the program. Default: this Node. */
    readonly command?: string | undefined;
    readonly cwd?: string | undefined;
    readonly env?: Readonly<Record<string, string>> | undefined;
  },
): Promise<OpenLine & { readonly pid: number }> {
  const child = spawn(options.command ?? process.execPath, [...program], {
    cwd: options.cwd,
    env: { PATH: process.env["PATH"] ?? "", HOLDFAST_HARNESS_LISTEN: "stdio", ...options.env },
    stdio: ["pipe", "pipe", "ignore"],
  });
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  const line = hostLineOver({ readable: child.stdout, writable: child.stdin });
  const open = openLine(line, options, async () => {
    const late = setTimeout(() => child.kill("SIGKILL"), 5_000);
    await exited;
    clearTimeout(late);
  });
  return { ...open, pid: child.pid ?? 0 };
}

function openLine(line: HostLine, options: LineOptions, close: () => Promise<void>): OpenLine {
  const remote = createLineHarness({ line, clock: options.clock, limits: options.limits, grant: options.grant });
  return {
    remote,
    [Symbol.asyncDispose]: async () => {
      await remote[Symbol.asyncDispose]();
      await close();
    },
  };
}
