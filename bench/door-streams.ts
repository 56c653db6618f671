/** Streams of the interactive door over several connections, and how figures of memory are told. */

import type { Row } from "./context.ts";
import { DoorConnection, type DoorStream } from "./door-clients.ts";

export const CONNECTIONS = 20;

/** Streams, each with a session that has started. */
export class Streams implements Disposable {
  readonly all: DoorStream[] = [];
  readonly #connections: readonly DoorConnection[];

  constructor(url: string) {
    this.#connections = Array.from({ length: CONNECTIONS }, () => new DoorConnection(url));
  }

  /** Opens streams, as many at a time as there are connections. */
  async open(count: number, model?: string): Promise<void> {
    for (let opened = 0; opened < count; opened += CONNECTIONS) {
      const streams = this.#connections.slice(0, count - opened).map((connection) => connection.open());
      await Promise.all(streams.map((stream) => stream.start(model)));
      this.all.push(...streams);
    }
  }

  [Symbol.dispose](): void {
    for (const stream of this.all) stream.cut();
    for (const connection of this.#connections) connection[Symbol.dispose]();
  }
}

export function megabytes(name: string, bytes: number): Row {
  return { group: "door", name, value: bytes / 1e6, unit: "MB" };
}
