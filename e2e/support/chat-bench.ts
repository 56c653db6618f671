/** What the tests of `holdfast chat` share: a folder to chat in, a scripted model, a server and terminals. */

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { newDataFolder, serve, type ServerProcess } from "./server-process.ts";
import { Terminal } from "./terminal.ts";

/** The keys that have no letter. */
export const CTRL_C = "\u0003";

export interface ChatBench {
  /** The folder that the agent works in. */
  readonly folder: string;
  /** The file of the scripted model. */
  readonly script: string;
  /** Starts the server, or starts it again where it was. */
  serve(flags?: readonly string[]): Promise<ServerProcess>;
  /** Starts `holdfast chat` on a terminal; there when its session is. */
  chat(args?: readonly string[], env?: Readonly<Record<string, string>>): Promise<Terminal>;
  /** The environment of commands. */
  readonly env: Readonly<Record<string, string>>;
}

/** A bench whose model plays this script, as YAML. */
export function chatBench(script: string): ChatBench {
  const place = mkdtempSync(join(tmpdir(), "holdfast-chat-"));
  onTestFinished(() => rmSync(place, { recursive: true, force: true }));
  const folder = join(place, "project");
  const scriptPath = join(place, "model.yaml");
  mkdirSync(folder);
  writeFileSync(scriptPath, script);
  const data = newDataFolder();
  const env = { XDG_STATE_HOME: join(place, "state") };
  let address: string | undefined;
  return {
    folder,
    script: scriptPath,
    env,
    serve: async (flags = []) => {
      const listen = address === undefined ? [] : ["--listen", address];
      const server = await serve(data, { flags: ["--model", `script:${scriptPath}`, "--log-level", "error", ...listen, ...flags] });
      address = server.address;
      return server;
    },
    chat: async (args = [], more = {}) => {
      const terminal = new Terminal(["chat", ...args, ...(address === undefined ? [] : ["--server", address])], {
        cwd: folder,
        env: { ...env, ...more },
      });
      await terminal.sees("/help has the commands");
      return terminal;
    },
  };
}
