import { fromBinary } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { deeplyFrozen, seqOf, type Seq, type SessionUid } from "../base/index.ts";
import { inputHash } from "../canon/index.ts";
import { RequestSketchSchema } from "../gen/holdfast/v1/beside_pb.ts";
import { messageText, textMessage, type Message, type ModelRequest } from "../spi/index.ts";
import { SeededRandom, testDigest as digest } from "../testing/index.ts";
import { LastRequests } from "./last-requests.ts";
import { MessageOrigins } from "./request-sketch.ts";

const A = "a" as SessionUid;
const B = "b" as SessionUid;
const fixed = (text: string): Message => deeplyFrozen(textMessage("user", text));
const asks = (messages: readonly Message[], model = "m"): ModelRequest => ({ model, messages });

/** Last requests that count what they hash. */
function setup(limits: { readonly keysMax?: number; readonly bytesMax?: number } = {}) {
  let hashed = 0;
  const counted = {
    sha256Hex: (data: string | Uint8Array): string => {
      hashed += data.length;
      return digest.sha256Hex(data);
    },
    sha256: () => {
      const of = (running: ReturnType<typeof digest.sha256>): ReturnType<typeof digest.sha256> => ({
        update: (text) => {
          hashed += text.length;
          running.update(text);
        },
        copy: () => of(running.copy()),
        hex: () => running.hex(),
      });
      return of(digest.sha256());
    },
  };
  const origins = new MessageOrigins();
  const requests = new LastRequests({ origins, digest: counted, keysMax: 1_000, bytesMax: 1_000_000, ...limits });
  const hashedBy = (work: () => unknown): number => {
    hashed = 0;
    work();
    return hashed;
  };
  return { requests, origins, hashedBy };
}

describe("the last requests of sessions", () => {
  it("lead to the input hash of each request, whatever came before it in its session", () => {
    const { requests } = setup({ bytesMax: 3_000 });
    const random = new SeededRandom(3);
    const pool = Array.from({ length: 12 }, (_, index) => (index % 5 === 4 ? textMessage("user", `${index}`) : fixed(`${index}`)));
    for (let round = 0; round < 3_000; round++) {
      // Mostly a longer beginning of the same conversation, at times another order.
      const from = random.below(4) === 0 ? random.below(3) : 0;
      const request = asks(pool.slice(from, from + random.below(10)), random.below(6) === 0 ? "n" : "m");
      const mutable = pool[4]!;
      if (mutable.parts[0]?.part.case === "text") mutable.parts[0].part.value.text = `${round}`;
      const session = random.below(3) === 0 ? B : A;
      expect(requests.asked(session, request).inputHash).toBe(inputHash(request, digest));
      if (random.below(2) === 0) requests.asked(session, request).sketch((round + 3) as Seq);
    }
  });

  it("hash what is new, as long as what came before cannot change and is remembered", () => {
    const { requests, hashedBy } = setup();
    const messages = Array.from({ length: 100 }, (_, index) => fixed(`${index} ${"x".repeat(1_000)}`));
    requests.asked(A, asks(messages));
    expect(hashedBy(() => requests.asked(A, asks([...messages, fixed("new")])))).toBeLessThan(400);
    expect(hashedBy(() => requests.asked(B, asks(messages)))).toBeGreaterThan(100_000);
    expect(hashedBy(() => requests.asked(A, asks(messages.with(0, fixed("other")))))).toBeGreaterThan(99_000);
  });

  it("sketch what is new, and name the request that it goes on from", () => {
    const { requests, origins } = setup();
    const recorded = fixed("recorded");
    origins.note(recorded, A, 2 as Seq);
    const sketchOf = (seq: number, messages: readonly Message[]) =>
      fromBinary(RequestSketchSchema, requests.asked(A, asks(messages)).sketch(seq as Seq));
    const system = fixed("system");
    expect(sketchOf(3, [system, recorded]).added.map(({ source }) => source.case)).toEqual(["message", "seq"]);
    const loose = textMessage("assistant", "loose");
    const next = sketchOf(5, [system, recorded, loose]);
    expect([next.baseSeq, next.keptMessages, next.added.length]).toEqual([3n, 2, 1]);
    const cut = sketchOf(7, [system, loose, recorded]);
    expect([cut.baseSeq, cut.keptMessages, cut.added.length]).toEqual([5n, 1, 2]);
    // The same content in another object is the same message.
    const again = sketchOf(9, [fixed("system"), textMessage("assistant", "loose"), recorded, loose]);
    expect([again.baseSeq, again.keptMessages, again.added.length]).toEqual([7n, 3, 1]);
    // A commit that failed took no seq: what was remembered for it is no base.
    const retried = sketchOf(9, [system, recorded]);
    expect([retried.baseSeq, retried.keptMessages, seqOf(retried.baseSeq)]).toEqual([0n, 0, 0]);
  });

  it("hold for the next turn where that begins with what the last one ended with, and are forgotten otherwise", () => {
    const { requests } = setup();
    const messages = [fixed("a"), fixed("b")];
    const head = { seq: 9 as Seq, hash: "abc" };
    const keptBy = (seq: number) => fromBinary(RequestSketchSchema, requests.asked(A, asks(messages)).sketch(seq as Seq)).keptMessages;
    const next = [head, { ...head, hash: "def" }, { ...head, seq: 10 as Seq }, undefined];
    for (const [at, began] of next.entries()) {
      requests.began(A, undefined);
      expect(keptBy(3)).toBe(0);
      requests.ended(A, head);
      requests.began(A, began);
      expect(keptBy(12)).toBe(at === 0 ? 2 : 0);
    }
    requests.ended(A, undefined);
    requests.began(A, head);
    expect(keptBy(15)).toBe(0);
  });

  it("are forgotten, the oldest first, where they are too many or too large", () => {
    const messages = Array.from({ length: 10 }, (_, index) => fixed(`${index}`));
    const [one, two] = [messages.slice(0, 5), messages.slice(5)];
    const keptOf = (requests: LastRequests, session: SessionUid, of: readonly Message[]) =>
      fromBinary(RequestSketchSchema, requests.asked(session, asks(of)).sketch(9 as Seq)).keptMessages;
    const few = setup({ keysMax: 12 }).requests;
    few.asked(A, asks(one)).sketch(3 as Seq);
    few.asked(B, asks(two)).sketch(3 as Seq);
    expect([keptOf(few, B, two), keptOf(few, A, one)]).toEqual([5, 5]);
    const fewer = setup({ keysMax: 11 }).requests;
    fewer.asked(A, asks(one)).sketch(3 as Seq);
    fewer.asked(B, asks(two)).sketch(3 as Seq);
    expect([keptOf(fewer, B, two), keptOf(fewer, A, one)]).toEqual([5, 0]);
  });

  it("are hashed as a whole again where they are larger than what is remembered", () => {
    const messages = Array.from({ length: 10 }, (_, index) => fixed(`${index} ${"x".repeat(1_000)}`));
    const { requests, hashedBy } = setup({ bytesMax: 5_000 });
    requests.asked(A, asks(messages));
    const again = hashedBy(() => requests.asked(A, asks(messages)));
    expect(again).toBeGreaterThan(5_000);
    expect(again).toBeLessThan(8_000);
    expect(messageText(messages[0]!)).toHaveLength(1_002);
  });
});
