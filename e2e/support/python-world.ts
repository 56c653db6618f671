/** A server, a provider on a socket and a Python client, for all tests of a file. */

import { afterAll, beforeAll } from "vitest";
import { startModelServer, type ModelServer } from "../../src/testing/model-server.ts";
import { flowsHome, type FlowsHome } from "./agent-flows.ts";
import { PythonClient, type PythonStream, type Value } from "./python-client.ts";
import type { ServerProcess } from "./server-process.ts";

export class PythonWorld {
  provider!: ModelServer;
  home!: FlowsHome;
  server!: ServerProcess;
  python!: PythonClient;
  readonly #ends: (() => void)[] = [];

  private constructor() {}

  /** There for the tests of the file that this is called in. */
  static ofThisFile(): PythonWorld {
    const world = new PythonWorld();
    beforeAll(() => world.#start());
    afterAll(() => world.#end());
    return world;
  }

  /** Opens a stream. */
  open(metadata: Readonly<Record<string, string>> = {}): PythonStream {
    return this.python.open(this.server, metadata);
  }

  /** A stream whose session has started. */
  async started(start: Value = {}): Promise<PythonStream> {
    const stream = this.open();
    stream.say({ start });
    await stream.next("sessionStarted");
    return stream;
  }

  async #start(): Promise<void> {
    this.provider = await startModelServer();
    this.home = flowsHome({ providerUrl: this.provider.openAiBaseUrl, owner: (end) => void this.#ends.unshift(end) });
    [this.server, this.python] = await Promise.all([this.home.serve(), PythonClient.start()]);
  }

  async #end(): Promise<void> {
    this.python.kill();
    for (const end of this.#ends) end();
    await this.provider.close();
    if (this.python.errors !== "") throw new Error(`the Python client complained: ${this.python.errors}`);
  }
}

/** Says something and waits for the end of its turn. */
export async function turn(stream: PythonStream, message: Value): Promise<Value> {
  stream.say({ userMessage: message });
  return stream.next("turnComplete");
}

/** Answers the next ToolRequest, which is returned. */
export async function answer(stream: PythonStream, result: string): Promise<Value> {
  const request = await stream.next("toolRequest");
  stream.say({ toolResult: { toolCallId: request["toolCallId"], success: true, result } });
  return request;
}

/** The code of the next error, and whether it is worth trying again. */
export async function nextError(stream: PythonStream): Promise<readonly [string, boolean]> {
  const { code, retryable } = await stream.next("error");
  return [String(code), retryable === true];
}
