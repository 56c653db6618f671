/** A server as its users have it: `holdfast serve` as it was built, in a process that nobody looks into. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const COMMAND = fileURLToPath(new URL("../bin/holdfast.mjs", import.meta.url));
const READY = /holdfast is listening on (?<url>https?:\/\/\S+) /;

/** Memory of a process in bytes, as the kernel counts it. */
export interface ProcessMemory {
  /** Resident: what shared files it has in memory counts whole. */
  readonly rssBytes: number;
  /** Proportional: of what it shares, its part. */
  readonly pssBytes: number;
}

/** The server's process and where it answers. Disposing it shuts the server down and waits for its process to end. */
export interface ServedByCommand extends AsyncDisposable {
  readonly url: string;
  memory(): ProcessMemory;
}

/** Starts it over the journal in `folder`. Rejects when it ends before it serves. */
export async function serveByCommand(folder: string): Promise<ServedByCommand> {
  const child = spawn(process.execPath, [COMMAND, "serve", "--listen", "127.0.0.1:0", "--registry-listen", "off", "--data", folder], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  const exited = once(child, "exit");
  return {
    url: await urlSaidBy(child.stdout, exited),
    memory: () => memoryOf(child.pid ?? 0),
    [Symbol.asyncDispose]: async () => {
      child.kill("SIGTERM");
      await exited;
    },
  };
}

async function urlSaidBy(output: NodeJS.ReadableStream, exited: Promise<unknown>): Promise<string> {
  let said = "";
  const ready = new Promise<string>((resolve) => {
    output.setEncoding("utf8").on("data", (text: string) => {
      said += text;
      const url = READY.exec(said)?.groups?.["url"];
      if (url !== undefined) resolve(url);
    });
  });
  const failed = exited.then(() => Promise.reject(new Error("holdfast serve ended before it served; was it built?")));
  failed.catch(() => undefined);
  return Promise.race([ready, failed]);
}

function memoryOf(pid: number): ProcessMemory {
  const sums = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
  const bytesOf = (field: string): number => {
    const kibibytes = new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(sums)?.[1];
    if (kibibytes === undefined) throw new Error(`the kernel does not tell the ${field} of a process`);
    return Number(kibibytes) * 1_024;
  };
  return { rssBytes: bytesOf("Rss"), pssBytes: bytesOf("Pss") };
}
