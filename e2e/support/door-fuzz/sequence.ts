/**
 * One sequence: a session whose streams say anything, in any order and in any frames, until each of them ends in some way. What comes of it is
 * complaints; a door that keeps its word gets none.
 */

import { gzipSync } from "node:zlib";
import type { Saying } from "../../../src/testing/door-client.ts";
import { Dice } from "../../../src/testing/dice.ts";
import { anySaying, anyTools } from "../door-sayings.ts";
import { askedOf, complaintsAbout, NO_PROTOBUF, type Asked } from "./expected.ts";
import { isExpected, LEAVINGS } from "./leavings.ts";
import { sayRaw } from "./raw-connection.ts";
import { DoorWire, framed, requestBytes, type WireStream } from "./wire-stream.ts";

/** Words that the server's model knows. */
export const WORDS = ["look", "push", "both", "fail", "slow", "long"] as const;

const STEPS_MAX = 12;
const STREAMS_MAX = 3;

export interface SequenceOptions {
  /** Host and port of the server. */
  readonly address: string;
  readonly seed: number;
  /** How long anything may take before it counts as a hang. */
  readonly patienceMs: number;
}

/** What came of a sequence. */
export interface SequenceOutcome {
  readonly complaints: readonly string[];
  /** The last session that it had; undefined where it had none. */
  readonly session: string | undefined;
}

export async function runSequence({ address, seed, patienceMs }: SequenceOptions): Promise<SequenceOutcome> {
  const dice = new Dice(seed);
  const complaints: string[] = [];
  let session: string | undefined;
  if (dice.below(8) === 0 && !(await sayRaw(address, dice, patienceMs))) complaints.push("a connection of raw frames was not let go of");
  for (let streams = 1 + dice.below(STREAMS_MAX); streams > 0; streams--) {
    using wire = new DoorWire(address, dice.below(2) === 0 ? dice : undefined);
    const life = new StreamLife(wire, { dice, session, patienceMs });
    complaints.push(...(await life.run()));
    session = life.session ?? session;
  }
  return { complaints, session };
}

interface StreamLifeOptions {
  readonly dice: Dice;
  /** The session that is there to go on with. */
  readonly session: string | undefined;
  readonly patienceMs: number;
}

/** A stream from its beginning to its end. */
class StreamLife {
  readonly #dice: Dice;
  readonly #wire: DoorWire;
  readonly #patienceMs: number;
  readonly #stream: WireStream;
  readonly #complaints: string[] = [];
  readonly #resumed: string | undefined;
  readonly #isCompressed: boolean;
  #asked: Asked[] = [];
  /** How much of what was heard has been looked at. */
  #seen = 0;
  #isStarted: boolean;
  #pings = 0;

  constructor(wire: DoorWire, { dice, session, patienceMs }: StreamLifeOptions) {
    this.#dice = dice;
    this.#wire = wire;
    this.#patienceMs = patienceMs;
    this.#resumed = session !== undefined && dice.below(4) > 0 ? session : undefined;
    this.#isCompressed = dice.below(6) === 0;
    this.#isStarted = this.#resumed !== undefined;
    this.#stream = wire.open({
      ...(this.#resumed === undefined ? {} : { "holdfast-session": this.#resumed }),
      ...(this.#resumed === undefined || dice.below(2) === 0 ? {} : { "holdfast-from-seq": "0" }),
      ...(this.#isCompressed ? { "grpc-encoding": "gzip" } : {}),
    });
  }

  get session(): string | undefined {
    return this.#stream.session;
  }

  async run(): Promise<string[]> {
    const dice = this.#dice;
    if (!this.#isStarted && dice.below(5) > 0)
      this.#say({ case: "start", value: { environmentId: dice.pick(["", "asking"]), tools: anyTools(dice) } });
    for (let steps = dice.below(STEPS_MAX); steps > 0 && this.#stream.end === undefined; steps--) {
      this.#step();
      if (dice.below(3) === 0) await this.#settled();
    }
    if (dice.below(2) === 0) await this.#settled();
    await this.#leave();
    for (const each of this.#stream.all("error")) if (each.code === "internal") this.#complaints.push(`internal: ${each.message}`);
    return this.#complaints;
  }

  #step(): void {
    const dice = this.#dice;
    switch (dice.below(8)) {
      case 0:
        this.#ask(undefined);
        return;
      case 1:
        this.#stream.write(framed(noProtobuf(dice)));
        this.#asked.push(NO_PROTOBUF);
        return;
      case 2:
        this.#say({ case: "userMessage", value: { content: dice.pick(WORDS), tools: anyTools(dice) } });
        return;
      default: {
        const saying = anySaying(dice, { ids: this.#ids(), words: WORDS });
        for (let times = dice.below(8) === 0 ? 3 : 1; times > 0; times--) this.#say(saying);
      }
    }
  }

  /** Ids of calls that were asked for, the newest first. */
  #ids(): string[] {
    const requests = this.#stream.all("toolRequest").map(({ toolCallId }) => toolCallId);
    const questions = this.#stream.all("activityUpdate").flatMap(({ state, detail }) => (state === "waiting_approval" ? [detail] : []));
    return [...requests, ...questions].toReversed().slice(0, 3);
  }

  #say(request: Saying): void {
    this.#ask(request);
    if (request.case === "start") this.#isStarted = true;
    if (request.case === "ping") this.#pings += 1;
  }

  #ask(request: Saying | undefined): void {
    this.#asked.push(askedOf(request, this.#isStarted));
    const bytes = requestBytes(request);
    this.#stream.write(this.#isCompressed && this.#dice.below(2) === 0 ? framed(gzipSync(bytes), { flag: 1 }) : framed(bytes));
  }

  /** Everything that was said so far is answered, or the stream is over. */
  async #settled(): Promise<void> {
    this.#say({ case: "ping", value: {} });
    const stream = this.#stream;
    const answered = await stream.until(() => stream.end !== undefined || stream.all("pong").length >= this.#pings, this.#patienceMs);
    if (!answered) this.#complaints.push(`a ping was not answered; ${this.#story()}`);
    if (stream.end !== undefined || !answered) return;
    this.#look(this.#asked);
    this.#asked = [];
  }

  /** What was asked and heard since it was looked at last. */
  #story(): string {
    const heard = this.#stream.heard.slice(this.#seen).map((each) => (each.case === "error" ? each.value.code : String(each.case)));
    return `asked ${this.#asked.map(({ what }) => what).join(", ")}; heard ${heard.slice(-50).join(", ")}`;
  }

  #look(asked: readonly Asked[]): void {
    this.#complaints.push(...complaintsAbout(asked, this.#stream.heard.slice(this.#seen)));
    this.#seen = this.#stream.heard.length;
  }

  async #leave(): Promise<void> {
    const dice = this.#dice;
    const stream = this.#stream;
    const leaving = dice.pick(LEAVINGS);
    if (leaving.lastWords !== undefined) this.#say(leaving.lastWords);
    leaving.leave(stream, { dice, wire: this.#wire, isCompressed: this.#isCompressed });
    if (!(await stream.until(() => stream.end !== undefined, this.#patienceMs))) {
      this.#complaints.push(`a stream that was to end by ${leaving.what} did not end; ${this.#story()}`);
      return;
    }
    // What was not settled may have been answered in part.
    this.#look(this.#asked.map((each) => ({ ...each, isWrong: false })));
    if (stream.end === undefined || isExpected(stream.end, leaving.ends)) return;
    this.#complaints.push(`a stream that was to end by ${leaving.what} ended with ${JSON.stringify(stream.end)}`);
  }
}

/** Bytes that are no SessionRequest, whatever follows them. */
function noProtobuf(dice: Dice): Uint8Array {
  return dice.pick([
    Uint8Array.of(0x0a, 0xff),
    Uint8Array.of(0x0a, 0x7f, 1, 2, 3),
    Uint8Array.of(0x12, 0x02, 0x0a, 0x10),
    Uint8Array.of(0x10, 0x01),
    Uint8Array.of(0x12, 0x03, 0x0a, 0x01, 0xe9),
    Uint8Array.of(0x07),
    new TextEncoder().encode('{"ping":{}}'),
    Buffer.concat([Uint8Array.of(0x0a, 0xff, 0xff, 0xff, 0x0f), dice.bytes(30)]),
  ]);
}
