import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { deeplyFrozen, seqOf, type Seq, type SessionUid } from "../../base/index.ts";
import { EventSchema } from "../../gen/agentsessions/v1/common_pb.ts";
import { EventKind, messageText, textMessage, type Event, type History } from "../../spi/index.ts";
import { HistoryFolds } from "./history-folds.ts";

const A = "a" as SessionUid;
const NEVER = new AbortController().signal;

const said = (text: string): Event =>
  create(EventSchema, { kind: EventKind.EVENT_INPUT, body: { case: "message", value: textMessage("user", text) } });
const frozen = (...texts: string[]): Event[] => texts.map((text) => deeplyFrozen(said(text)));

/** A history in pages of two events that tells from where it was read. */
class Told implements History {
  readonly reads: number[] = [];
  readonly #events: readonly Event[];

  constructor(events: readonly Event[]) {
    this.#events = events;
  }

  get lastSeq(): Seq {
    return seqOf(this.#events.length);
  }

  async *read({ fromSeq = seqOf(1), signal }: Parameters<History["read"]>[0] = {}) {
    this.reads.push(fromSeq);
    for (let seq: number = fromSeq; seq <= this.#events.length; seq += 2) {
      signal?.throwIfAborted();
      yield { firstSeq: seqOf(seq), events: this.#events.slice(seq - 1, seq + 1) };
    }
  }
}

async function textsOf(folds: HistoryFolds, history: History, { system = "", session = A, signal = NEVER } = {}): Promise<string[]> {
  const { context } = await folds.read({ sessionUid: session, history }, { system, signal });
  return context.messages.map(messageText);
}

describe("what was said before a turn", () => {
  it("is read from the last event on that an earlier turn has read", async () => {
    const folds = new HistoryFolds();
    const events = frozen("1", "2", "3", "4", "5");
    const [first, later] = [new Told(events.slice(0, 3)), new Told(events)];
    expect(await textsOf(folds, first)).toEqual(["1", "2", "3"]);
    expect(await textsOf(folds, later)).toEqual(["1", "2", "3", "4", "5"]);
    expect(await textsOf(folds, later)).toEqual(["1", "2", "3", "4", "5"]);
    expect([first.reads, later.reads]).toEqual([[1], [3, 5]]);
  });

  it("is read as a whole where that event is another one now, or is not there any more", async () => {
    const folds = new HistoryFolds();
    const events = frozen("1", "2", "3");
    await textsOf(folds, new Told(events));
    const imported = new Told([...events.slice(0, 2), ...frozen("another")]);
    expect(await textsOf(folds, imported)).toEqual(["1", "2", "another"]);
    expect(imported.reads).toEqual([3, 1]);
    const shorter = new Told(events.slice(0, 2));
    expect(await textsOf(folds, shorter)).toEqual(["1", "2"]);
    expect(shorter.reads).toEqual([1]);
  });

  it("is read as a whole for another session, though it begins with the same objects", async () => {
    const folds = new HistoryFolds();
    const events = frozen("1", "2");
    await textsOf(folds, new Told(events));
    const fork = new Told(events);
    expect(await textsOf(folds, fork, { session: "b" as SessionUid })).toEqual(["1", "2"]);
    expect(fork.reads).toEqual([1]);
  });

  it("is not kept where its events could change", async () => {
    const folds = new HistoryFolds();
    const events = ["1", "2"].map(said);
    await textsOf(folds, new Told(events));
    const [last] = events.slice(-1);
    if (last?.body.case === "message") Object.assign(last.body.value, textMessage("user", "changed"));
    const again = new Told(events);
    expect(await textsOf(folds, again)).toEqual(["1", "changed"]);
    expect(again.reads).toContain(1);
  });

  it("stands behind the words of each turn's own system", async () => {
    const folds = new HistoryFolds();
    const history = new Told(frozen("1"));
    expect(await textsOf(folds, history, { system: "Be brief." })).toEqual(["Be brief.", "1"]);
    expect(await textsOf(folds, history, { system: "Be kind." })).toEqual(["Be kind.", "1"]);
    expect(await textsOf(folds, history)).toEqual(["1"]);
    expect(history.reads).toEqual([1, 1, 1]);
  });

  it("is there for the next turn whatever becomes of one that was stopped while it read", async () => {
    const folds = new HistoryFolds();
    const events = frozen("1", "2", "3", "4", "5", "6");
    await textsOf(folds, new Told(events.slice(0, 2)));
    const stopped = new AbortController();
    const stopping = new Told(events);
    const read = stopping.read.bind(stopping);
    stopping.read = async function* (options) {
      for await (const page of read(options)) {
        yield page;
        stopped.abort();
      }
    };
    await expect(textsOf(folds, stopping, { signal: stopped.signal })).rejects.toThrow("aborted");
    expect(await textsOf(folds, new Told(events))).toEqual(["1", "2", "3", "4", "5", "6"]);
  });

  it("is sent in the same objects, turn after turn", async () => {
    const folds = new HistoryFolds();
    const events = frozen("1", "2", "3");
    const read = async (count: number) =>
      (await folds.read({ sessionUid: A, history: new Told(events.slice(0, count)) }, { system: "Be brief.", signal: NEVER })).context
        .messages;
    const [first, later] = [await read(2), await read(3)];
    expect(later.slice(0, 3).every((message, index) => message === first[index] && Object.isFrozen(message))).toBe(true);
  });
});
