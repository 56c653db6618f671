/** A model server with a provider in front of it, and what tests say of both: answers, failures, and what an error must not hold. */

import { inspect } from "node:util";
import { HoldfastError } from "../base/errors.ts";
import type { Clock } from "../base/ports.ts";
import { textMessage, type ModelProvider, type ModelRequest } from "../spi/index.ts";
import type { ModelProtocol } from "./model-rules.ts";
import { startModelServer, type ModelReply, type ModelServer, type StreamStep } from "./model-server.ts";
import { endingSteps, openingSteps } from "./model-answers.ts";
import { RecordingClock } from "./recording-clock.ts";
import { collectCompletion, type CollectedCompletion } from "./recording-sink.ts";

/** The key that the fixture's providers hold. */
export const FIXTURE_KEY = "sk-test-4f1c0ffee0123456789";
/** What the fixture's provider says in its errors; it repeats the key, as some do. */
export const PROVIDER_TEXT = `the provider says: tenant 8812, prompt 'hello', key ${FIXTURE_KEY}`;
/** A request that any provider answers. */
export const HELLO: ModelRequest = { model: "scripted", messages: [textMessage("user", "hello")] };
/** A signal that never fires. */
export const neverAborted = (): AbortSignal => new AbortController().signal;

/** Makes a provider for the fixture's server. Its random bytes are 0, so every backoff is the shortest of its range. */
export type MakeProvider<Limits> = (options: {
  readonly server: ModelServer;
  readonly apiKey: string;
  readonly clock: Clock;
  readonly random: { bytes(count: number): Uint8Array };
  readonly limits: Limits;
}) => ModelProvider;

/** One server, one clock, and providers of one protocol. */
export class ProviderFixture<Limits extends object> implements AsyncDisposable {
  readonly protocol: ModelProtocol;
  readonly server: ModelServer;
  readonly clock = new RecordingClock();
  readonly #make: MakeProvider<Limits>;

  private constructor(protocol: ModelProtocol, server: ModelServer, make: MakeProvider<Limits>) {
    this.protocol = protocol;
    this.server = server;
    this.#make = make;
  }

  /** Starts a server for `protocol`. */
  static async start<L extends object>(protocol: ModelProtocol, make: MakeProvider<L>): Promise<ProviderFixture<L>> {
    return new ProviderFixture(protocol, await startModelServer(), make);
  }

  /** A provider with these limits; the fixture's recording clock unless another is given. */
  provider(limits: Limits, clock: Clock = this.clock): ModelProvider {
    const random = { bytes: (count: number) => new Uint8Array(count) };
    return this.#make({ server: this.server, apiKey: FIXTURE_KEY, clock, random, limits });
  }

  /** A completion of HELLO, read to its end. */
  complete(limits: Limits): Promise<CollectedCompletion> {
    return collectCompletion(this.provider(limits).complete(HELLO, { signal: neverAborted() }));
  }

  /** The error that a completion of HELLO ends with. */
  async failure(limits: Limits): Promise<HoldfastError> {
    return await this.complete(limits).then(
      () => {
        throw new Error("the call did not fail");
      },
      (error: unknown) => {
        if (error instanceof HoldfastError) return error;
        throw error;
      },
    );
  }

  /** The steps of an answer up to these pieces of text. */
  opening(...pieces: readonly string[]): StreamStep[] {
    return openingSteps(this.protocol, pieces);
  }

  /** The steps that end an answer which `opening` began. */
  ending(): StreamStep[] {
    return endingSteps(this.protocol);
  }

  /** An error status with the provider's text in its body. */
  status(status: number, headers: Readonly<Record<string, string>> = {}): ModelReply {
    const body = JSON.stringify({ type: "error", error: { type: "some_error", message: PROVIDER_TEXT } });
    return { kind: "status", status, headers: { "content-type": "application/json", ...headers }, body };
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.server.close();
  }
}

/** Everything that can be seen of an error, hidden properties included, as one text. */
export function everythingOf(error: HoldfastError): string {
  return [
    error.message,
    String(error.stack),
    JSON.stringify(error),
    JSON.stringify(error.details ?? {}),
    inspect(error, { depth: Infinity, showHidden: true }),
  ].join("\n");
}
