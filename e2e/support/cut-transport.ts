/** A transport whose streams in both directions are cut where a test says, over a real one. */

import { HoldfastError } from "../../src/base/errors.ts";
import type { Duplex, Transport } from "../../src/client/index.ts";

/** Where the line is cut: at its n-th message in that direction, of all connections together; lost with it, or right after it. */
export interface Cut {
  readonly at: "request" | "response";
  readonly message: number;
  readonly isLost: boolean;
}

/** How many messages went each way. */
export interface Traffic {
  request: number;
  response: number;
}

/** `inner` with the cut; its traffic is counted either way. */
export function cutTransport(inner: Transport, cut: Cut | undefined): { readonly transport: Transport; readonly traffic: Traffic } {
  const traffic: Traffic = { request: 0, response: 0 };
  /** Whether this message is where the line is cut. */
  const isCut = (at: Cut["at"]): boolean => ++traffic[at] === cut?.message && at === cut.at;
  const open = inner.duplex?.bind(inner);
  if (open === undefined) throw new Error("the transport has no streams in both directions");
  const transport: Transport = {
    ports: inner.ports,
    unary: (...args) => inner.unary(...args),
    stream: (...args) => inner.stream(...args),
    streamBytes: (...args) => inner.streamBytes(...args),
    upload: (...args) => inner.upload(...args),
    duplex: (method, options) => cutDuplex(open(method, options), isCut, cut?.isLost === true),
    [Symbol.asyncDispose]: () => inner[Symbol.asyncDispose](),
  };
  return { transport, traffic };
}

/** What a client is told of a line that was cut. */
const LOST = new HoldfastError("unavailable", "the line was cut");

function cutDuplex<Request, Response>(
  call: Duplex<Request, Response>,
  isCut: (at: Cut["at"]) => boolean,
  isLost: boolean,
): Duplex<Request, Response> {
  let isOver = false;
  const headers = call.headers.catch(() => Promise.reject(LOST));
  headers.catch(() => undefined);
  const over = async (): Promise<void> => {
    isOver = true;
    await call[Symbol.asyncDispose]();
  };
  return {
    headers,
    send: async (request) => {
      if (isOver) return;
      const here = isCut("request");
      if (!here || !isLost) await call.send(request);
      if (here) await over();
    },
    end: () => call.end(),
    responses: responsesOf(call.responses, isCut, isLost, over),
    [Symbol.asyncDispose]: () => call[Symbol.asyncDispose](),
  };
}

async function* responsesOf<Response>(
  responses: AsyncIterable<Response>,
  isCut: (at: Cut["at"]) => boolean,
  isLost: boolean,
  over: () => Promise<void>,
): AsyncGenerator<Response, void, undefined> {
  try {
    for await (const response of responses) {
      const here = isCut("response");
      if (!here || !isLost) yield response;
      if (here) await over();
      if (here) throw new Error("cut");
    }
  } catch {
    throw LOST;
  }
}
