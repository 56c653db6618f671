/** Sending a stream of requests to a call with one answer. */

import type { EventEmitter } from "node:events";

/** The part of grpc-js's calls that is needed here. */
export interface UploadCall<Request> extends EventEmitter {
  write(request: Request): boolean;
  end(): unknown;
}

/** Sends `requests` until they end or the answer is there, and resolves with the answer. Nothing is kept of a request that was sent. */
export async function answered<Request, Answer>(
  call: UploadCall<Request>,
  requests: AsyncIterable<Request>,
  answer: Promise<Answer>,
): Promise<Answer> {
  // The answer says what went wrong; the stream's own error says nothing more.
  call.on("error", () => undefined);
  const sending = new Sending(answer);
  const source = requests[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await sending.unlessOver(source.next());
      if (next === undefined) return await answer;
      if (next.done === true) break;
      if (!call.write(next.value)) await sending.unlessOver(new Promise<void>((resolve) => call.once("drain", resolve)));
    }
  } finally {
    source.return?.()?.catch(() => undefined);
  }
  call.end();
  return answer;
}

/** Waits that end with the answer. A race with the answer itself would keep what each of them came to until it is there. */
class Sending {
  #isOver = false;
  #giveUp: () => void = () => undefined;

  constructor(answer: Promise<unknown>) {
    const over = (): void => {
      this.#isOver = true;
      this.#giveUp();
    };
    answer.then(over, over);
  }

  /** What `step` comes to; undefined once the answer is there. */
  unlessOver<T>(step: Promise<T>): Promise<T | undefined> {
    return new Promise((resolve, reject) => {
      this.#giveUp = () => resolve(undefined);
      step.then(resolve, reject);
      if (this.#isOver) resolve(undefined);
    });
  }
}
