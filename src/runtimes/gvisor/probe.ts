/** Whether sandboxes can run on this host at all: one is started for a program that does nothing. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { HoldfastError } from "../../base/errors.ts";
import { newUuid } from "../../base/ids.ts";
import { Container, type ContainerHost } from "./container.ts";
import { gvisorSettings, type GvisorRuntimeOptions } from "./options.ts";
import { findPrograms } from "./programs.ts";
import { Workspace } from "./workspace.ts";

const NOTHING = "/bin/true";
const PROBE_TIMEOUT_MS = 20_000;
const WORDS_MS = 500;

/** Why no sandbox can run with this runsc; undefined where one can. */
export async function unrunnable(host: ContainerHost): Promise<string | undefined> {
  const { ports } = host.settings;
  const nothing: ContainerHost = {
    ...host,
    settings: { ...host.settings, args: [], cwd: "/usr", readOnly: [] },
    programs: { ...host.programs, command: NOTHING, realCommand: NOTHING },
  };
  try {
    const container = await Container.start(nothing, `holdfast-probe-${newUuid(ports)}`, undefined);
    container.stdout.resume();
    container.stdin.end();
    const timer = ports.clock.after(PROBE_TIMEOUT_MS, () => container.kill());
    const exit = await container.ended;
    timer.cancel();
    const words = await container.lastWords(WORDS_MS);
    if (exit.kind === "code" && exit.code === 0) return undefined;
    return words.trim() === "" ? `it ended with ${exit.kind === "code" ? `code ${exit.code}` : exit.signal}` : words.trim();
  } catch (error) {
    return wordsOf(error);
  }
}

/** Why the `gvisor` runtime cannot be used on this host: a sentence for whoever starts it. Undefined where it can. */
export async function whyNoGvisor(
  options: Pick<GvisorRuntimeOptions, "ports" | "runsc" | "platform" | "blobs">,
): Promise<string | undefined> {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-gvisor-probe-"));
  try {
    const settings = gvisorSettings({ ...options, command: NOTHING, cwd: "/usr" }, process.env["PATH"]);
    const programs = await findPrograms(settings);
    using workspace = new Workspace(folder);
    const reason = await unrunnable({ settings, programs, workspace });
    return reason === undefined ? undefined : `runsc ${programs.runscVersion} cannot run a sandbox on this host: ${reason.slice(0, 300)}`;
  } catch (error) {
    return wordsOf(error);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function wordsOf(error: unknown): string {
  return error instanceof HoldfastError ? error.message : "it cannot be tried out";
}
