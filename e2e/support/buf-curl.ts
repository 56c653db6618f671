/** `buf curl`, a client that knows nothing of Holdfast: it learns every schema by reflection. */

import { execFile } from "node:child_process";
import { join } from "node:path";

export const BUF = join(import.meta.dirname, "..", "..", "node_modules", ".bin", "buf");
export const GRPC = ["curl", "--protocol", "grpc", "--http2-prior-knowledge"];
/** A proxy of the machine is none of ours, and nothing is fetched. */
export const ENVIRONMENT = { ...process.env, NO_PROXY: "*", no_proxy: "*" };

export type Json = Readonly<Record<string, unknown>>;

export interface Called {
  /** The JSON documents that came back. */
  readonly messages: readonly Json[];
  /** The error, as Connect's JSON writes it; undefined when the call succeeded. */
  readonly error: { readonly code: string; readonly message: string } | undefined;
}

/** Runs `buf` to its end. */
export function runBuf(args: readonly string[]): Promise<{ readonly stdout: string; readonly stderr: string }> {
  return new Promise((resolve) => {
    execFile(BUF, args, { env: ENVIRONMENT }, (_error, stdout, stderr) => resolve({ stdout, stderr }));
  });
}

/** Documents that stand one after the other, as buf prints a stream of messages. */
function documents(text: string): Json[] {
  return text.trim() === "" ? [] : (JSON.parse(`[${text.trim().replaceAll(/^\}\n\{/gm, "},\n{")}]`) as Json[]);
}

/** Calls a method with one request, or with several where it takes a stream of them. */
export async function call(
  server: { readonly url: string },
  method: string,
  requests: object | readonly object[] = {},
  more: readonly string[] = [],
): Promise<Called> {
  const data = [requests].flat().map((request) => JSON.stringify(request));
  const { stdout, stderr } = await runBuf([...GRPC, ...more, "-d", data.join("\n"), `${server.url}/${method}`]);
  return { messages: documents(stdout), error: stderr.trim() === "" ? undefined : (JSON.parse(stderr) as Called["error"]) };
}
