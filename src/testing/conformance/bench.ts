/** What a case works with: a transport, sessions of its own, and the few calls that most cases make. */

import { create, fromBinary, type DescMessage, type MessageInitShape, type MessageShape } from "@bufbuild/protobuf";
import { HoldfastError } from "../../base/index.ts";
import type { CallOptions, Method, Transport } from "../../client/index.ts";
import { LogRecordSchema, MessageSchema, type LogRecord, type Message } from "../../gen/agentsessions/v1/common_pb.ts";
import {
  DeleteSessionRequestSchema,
  ExecRequestSchema,
  ReplayRequestSchema,
  Sessions,
  type ExecUpdate,
  type Session,
  type SessionSchema,
} from "../../gen/agentsessions/v1/session_pb.ts";
import { NotServed, type Abilities, type Need } from "./contract.ts";
import { must, mustEqual } from "./expect.ts";

/** A turn as its stream told it. */
export interface Turn {
  readonly frames: readonly ExecUpdate[];
  /** The frames that are records. */
  readonly records: readonly LogRecord[];
  /** What the stream ended with; undefined when it ended OK. */
  readonly error: HoldfastError | undefined;
}

/** A turn that runs: its first record has come. */
export interface BegunTurn {
  readonly session: string;
  readonly executionId: string;
  /** Settles when the stream has ended; never rejects. */
  readonly ended: Promise<Turn>;
}

type ExecInit = Exclude<MessageInitShape<typeof ExecRequestSchema>, undefined>;
type SessionInit = Exclude<MessageInitShape<typeof SessionSchema>, undefined>;

/** How often something is looked at that is waited for. */
const LOOK_MS = 20;

/** Sessions that are deleted at once. */
const DELETED_AT_ONCE = 32;

/** A message of a user. */
export function said(text: string): Message {
  return create(MessageSchema, { role: "user", parts: [{ part: { case: "text", value: { text } } }] });
}

/** One case's workplace. Sessions that it makes are deleted when it is disposed of. */
export class Bench implements AsyncDisposable {
  readonly transport: Transport;
  /** A project that no other case uses. */
  readonly project: string;
  readonly #abilities: Abilities;
  readonly #signal: AbortSignal;
  readonly #made = new Set<string>();

  constructor(transport: Transport, options: { readonly project: string; readonly abilities: Abilities; readonly signal: AbortSignal }) {
    this.transport = transport;
    this.project = options.project;
    this.#abilities = options.abilities;
    this.#signal = options.signal;
  }

  /** The harness that meets a need. */
  harness(need: Need): string {
    return this.#abilities[need] ?? "";
  }

  get options(): CallOptions {
    return { signal: this.#signal };
  }

  call<Input extends DescMessage, Output extends DescMessage>(
    method: Method<Input, Output>,
    request: MessageInitShape<Input>,
  ): Promise<MessageShape<Output>> {
    return this.transport.unary(method, create(method.input, request), this.options);
  }

  /** A streamed answer, read to its end. */
  async collect<Input extends DescMessage, Output extends DescMessage>(
    method: Method<Input, Output>,
    request: MessageInitShape<Input>,
  ): Promise<MessageShape<Output>[]> {
    return Array.fromAsync(this.transport.stream(method, create(method.input, request), this.options));
  }

  /** A call that servers of the contract need not have: UNIMPLEMENTED skips the case. */
  async optional<T>(what: string, call: Promise<T>): Promise<T> {
    try {
      return await call;
    } catch (error) {
      if (error instanceof HoldfastError && error.code === "unimplemented") throw new NotServed(`the server does not have ${what}`);
      throw error;
    }
  }

  /** A session of this case, on its plain harness unless `init` says otherwise. */
  async create(init: SessionInit = {}): Promise<Session> {
    const { metadata, ...rest } = init;
    const session = await this.call(Sessions.method.createSession, {
      session: { harness: this.#abilities.harness ?? "", ...rest, metadata: { project: this.project, ...metadata } } as SessionInit,
    });
    this.adopt(uidOf(session));
    return session;
  }

  /** Deletes the session when the case is over. */
  adopt(uid: string): void {
    this.#made.add(uid);
  }

  get(uid: string): Promise<Session> {
    return this.call(Sessions.method.getSession, { uid });
  }

  /** The last seq of a session. */
  async head(uid: string): Promise<bigint> {
    return (await this.get(uid)).lastSeq;
  }

  /** Runs a turn and reads its stream to the end, whatever that is. */
  async exec(request: ExecInit, onFrame: (frame: ExecUpdate) => void = () => undefined): Promise<Turn> {
    const frames: ExecUpdate[] = [];
    let error: HoldfastError | undefined;
    try {
      for await (const frame of this.transport.stream(Sessions.method.exec, create(ExecRequestSchema, request), this.options)) {
        if (frame.update.case === "session" && request.session === undefined) this.adopt(uidOf(frame.update.value));
        frames.push(frame);
        onFrame(frame);
      }
    } catch (thrown) {
      if (!(thrown instanceof HoldfastError)) throw thrown;
      error = thrown;
    }
    return { frames, records: frames.flatMap(({ update }) => (update.case === "record" ? [update.value] : [])), error };
  }

  /** Runs a turn that must end OK. */
  async turn(session: string, ...inputs: readonly string[]): Promise<Turn> {
    const turn = await this.exec({ session, inputs: inputs.map(said) });
    must(turn.error === undefined, `Exec of a text input: expected OK, got ${turn.error?.code.toUpperCase()} (${turn.error?.message})`);
    return turn;
  }

  /** A session with one turn for each of these inputs. */
  async withTurns(...inputs: readonly string[]): Promise<string> {
    const uid = uidOf(await this.create());
    for (const input of inputs) await this.turn(uid, input);
    return uid;
  }

  /** Begins a turn that goes on; resolves once its start has come. */
  async begin(request: ExecInit): Promise<BegunTurn> {
    const begun = Promise.withResolvers<LogRecord>();
    const ended = this.exec(request, ({ update }) => {
      if (update.case === "record") begun.resolve(update.value);
    });
    const over = ended.then(({ error }) => {
      must(false, `Exec on a harness that waits: expected a running turn, but its stream ended (${error?.code ?? "OK"})`);
    });
    const start = await Promise.race([begun.promise, over]);
    must(start !== undefined, "Exec on a harness that waits: expected a first record");
    return { session: request.session ?? "", executionId: start.event?.executionId ?? "", ended };
  }

  /** A turn on a new session of the waiting harness. */
  async waiting(more: ExecInit = {}): Promise<BegunTurn> {
    const session = uidOf(await this.create({ harness: this.harness("waitingHarness") }));
    return this.begin({ session, ...more });
  }

  /** The stored bytes of a session's records. */
  bytes(session: string, range: { readonly fromSeq?: bigint; readonly toSeq?: bigint } = {}): Promise<Uint8Array[]> {
    const request = create(ReplayRequestSchema, { session, ...range });
    return Array.fromAsync(this.transport.streamBytes(Sessions.method.replay, request, this.options));
  }

  async records(session: string): Promise<LogRecord[]> {
    return (await this.bytes(session)).map((bytes) => fromBinary(LogRecordSchema, bytes));
  }

  /** Throws unless the session's journal is what it was. */
  async mustBeUnchanged(what: string, session: string, before: readonly Uint8Array[]): Promise<void> {
    const after = await this.bytes(session);
    mustEqual(`${what} writes nothing: the number of records`, after.length, before.length);
    must(sameBytes(after, before), `${what} writes nothing, but the session's records are others now`);
    mustEqual(`${what} writes nothing: last_seq`, await this.head(session), BigInt(before.length));
  }

  /** Looks again and again until there is an answer. The case's time bounds it. */
  async eventually<T>(what: string, look: () => Promise<T | undefined>): Promise<T> {
    for (;;) {
      const found = await look();
      if (found !== undefined) return found;
      must(!this.#signal.aborted, `${what}: it did not happen in time`);
      await this.transport.ports.clock.sleep(LOOK_MS, { signal: this.#signal });
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const uids = [...this.#made];
    while (uids.length > 0) await Promise.all(uids.splice(0, DELETED_AT_ONCE).map((uid) => this.#delete(uid)));
  }

  /** A server that cannot even do this has failed where that was asked. */
  async #delete(uid: string): Promise<void> {
    const request = create(DeleteSessionRequestSchema, { uid });
    await this.transport.unary(Sessions.method.deleteSession, request, { timeoutMs: 5_000 }).catch(() => undefined);
  }
}

/** The uid of a session. */
export function uidOf(session: Session | undefined): string {
  const uid = session?.metadata?.uid ?? "";
  must(uid !== "", "a Session in an answer: expected metadata.uid, found none");
  return uid;
}

/** Whether two lists hold the same bytes in the same order. */
export function sameBytes(left: readonly Uint8Array[], right: readonly Uint8Array[]): boolean {
  return left.length === right.length && left.every((bytes, index) => Buffer.compare(bytes, right[index]!) === 0);
}
