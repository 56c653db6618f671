/** A real server in a process of its own, for as long as a measurement needs it. */

import { fork } from "node:child_process";
import { once } from "node:events";

/** The server's process and where it answers. Disposing it shuts the server down and waits for its process to end. */
export interface ServerProcess extends AsyncDisposable {
  readonly url: string;
}

/** Starts a server over the journal in `folder`. Rejects when its process ends before it serves. */
export async function startServerProcess(folder: string): Promise<ServerProcess> {
  const child = fork(new URL("./served.ts", import.meta.url), [folder], { stdio: ["ignore", "ignore", "inherit", "ipc"] });
  const exited = once(child, "exit");
  const failed = exited.then(() => Promise.reject(new Error("the server's process ended before it served")));
  const messages: unknown[] = await Promise.race([once(child, "message"), failed]);
  failed.catch(() => undefined);
  return {
    url: urlOf(messages[0]),
    [Symbol.asyncDispose]: async () => {
      if (child.connected) child.disconnect();
      await exited;
    },
  };
}

function urlOf(message: unknown): string {
  if (typeof message === "object" && message !== null && "url" in message && typeof message.url === "string") return message.url;
  throw new Error("the server's process did not say where it answers");
}
