/**
 * One stream of one session: what it is told of the session's records, of what runs, and of what is asked of its client.
 *
 * Invariants:
 * - A request of a turn goes out once its call was passed in the records, so whatever the model said before it comes first.
 * - A slow reader holds up the reading of records, and nothing else: turns go on without it.
 * - While no turn is open no timer runs.
 * - A stream that has ended, for whatever reason, leaves nothing of itself behind.
 */

import { create } from "@bufbuild/protobuf";
import { toHoldfastError, type HoldfastError } from "../../base/errors.ts";
import type { Seq, SessionUid } from "../../base/ids.ts";
import type { Timer } from "../../base/ports.ts";
import { ownApprovals, type PartialCompletion, type RunningTurn } from "../../controller/index.ts";
import { KeepaliveSchema, ToolRequestSchema } from "../../gen/roz/v1/agent_pb.ts";
import type { SessionRow, StoredRecord } from "../../journal/index.ts";
import type { IdentityRef, PresencePolicy } from "../../spi/index.ts";
import type { Position } from "./attach-request.ts";
import type { ChannelPort, OpenRequest } from "./channels.ts";
import type { SessionNotes } from "./client-notes.ts";
import type { AgentHost } from "./host.ts";
import type { Outbox } from "./outbox.ts";
import { agentError, saidOf, sessionError, type Said } from "./session-error.ts";
import { Transcript } from "./transcript.ts";
import { isTold, transcriptRecordOf } from "./transcript-record.ts";
import type { TurnView } from "./turn-view.ts";
import { uint32 } from "./turn-usage.ts";
import { Updates } from "./updates.ts";

/** What a stream is attached with. */
export interface AttachOptions {
  readonly row: SessionRow;
  readonly notes: SessionNotes;
  readonly position: Position;
  readonly presence: PresencePolicy;
  readonly caller: IdentityRef | undefined;
  /** Whether the client has just made the session, and so knows that nothing runs. */
  readonly isNew: boolean;
  readonly outbox: Outbox;
}

/** The tokens of a request at most where a turn's config does not say, as the agent has it. */
const CONTEXT_TOKENS_DEFAULT = 100_000;
/** How soon a turn is looked at again that another host still has. */
const HELD_AGAIN_MS = 1_000;

export class AttachedSession implements ChannelPort {
  readonly session: SessionUid;
  readonly notes: SessionNotes;
  readonly #host: AgentHost;
  readonly #caller: IdentityRef | undefined;
  /** Where reading begins. */
  readonly #readFrom: Seq;
  readonly #outbox: Outbox;
  readonly #transcript: Transcript;
  readonly #updates: Updates;
  /** Requests whose call was not passed yet. */
  #early: readonly OpenRequest[] = [];
  /** Requests of the turn that have left, by their calls. */
  readonly #asked = new Map<string, OpenRequest>();
  /** The head when the stream was attached. */
  readonly #headSeq: Seq;
  /** The last record that was read. */
  #readSeq: Seq;
  #watched: RunningTurn | undefined;
  #interrupted: { readonly executionId: string; readonly lastSeq: Seq; readonly error: HoldfastError } | undefined;
  #endedTurn = "";
  #reviews: Promise<void> = Promise.resolve();
  #keepalive: Timer | undefined;
  #again: Timer | undefined;
  /** Fires when nothing more happens here. */
  readonly #closing = new AbortController();
  /** The client says nothing more. */
  #isLastWord = false;
  /** The stream ends once this was read. */
  #endAfter: Seq | undefined;

  constructor(host: AgentHost, options: AttachOptions) {
    const { row, notes, position, outbox, presence, isNew } = options;
    const { limits, ports } = host;
    this.session = row.seed.uid;
    this.notes = notes;
    this.#host = host;
    this.#caller = options.caller;
    this.#outbox = outbox;
    const { deltaCharsMax } = limits;
    this.#transcript = new Transcript({ after: position.after, deltaCharsMax, messageIdOf: (startSeq) => messageIdAt(notes, startSeq) });
    const emit = (kind: string, said: Said): void => outbox.putLatest(kind, { said, seq: this.#transcript.seq });
    this.#updates = new Updates({ clock: ports.clock, limits, presence, isNew, emit });
    this.#headSeq = row.projection.lastSeq;
    this.#readFrom = position.readFrom;
    this.#readSeq = (position.readFrom - 1) as Seq;
  }

  /** Says something that is in no record. */
  say(said: Said): void {
    this.#outbox.put([{ said, seq: this.#transcript.seq }]);
  }

  get transcript(): Transcript {
    return this.#transcript;
  }

  /** The turn whose end was told last. */
  get endedTurn(): string {
    return this.#endedTurn;
  }

  /** Whether the stream has lost the session, or has ended. */
  get isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Reads the session's records and what is being said, until the stream ends. Never rejects. */
  async run(): Promise<void> {
    const { signal } = this.#closing;
    try {
      if (this.#readSeq >= this.#headSeq) this.#caughtUp();
      for await (const item of this.#host.controller.follow({ session: this.session, fromSeq: this.#readFrom, signal })) {
        if (this.isClosed) return;
        if (item.kind === "partial") await this.#partial(item.partial);
        else await this.#record(item.record);
        if (!this.#outbox.hasRoom) await this.#outbox.room();
      }
    } catch (error) {
      this.#fail(toHoldfastError(error));
    }
  }

  /** A turn of the session runs here. */
  watch(turn: RunningTurn): void {
    if (this.#watched?.executionId === turn.executionId && this.#watched.outcome === turn.outcome) return;
    this.#watched = turn;
    const { executionId } = turn;
    void turn.outcome.then((outcome) => {
      if (outcome.kind === "interrupted") this.#interrupted = { executionId, lastSeq: outcome.lastSeq, error: outcome.error };
      this.#review();
    });
  }

  ask(request: OpenRequest): void {
    if (this.#transcript.turn?.call(request.call.id) === undefined) this.#early = [...this.#early, request];
    else this.#send(request);
  }

  takenOver(): void {
    this.say(sessionError("taken_over", "session: another stream has taken it over"));
    this.end();
  }

  /** The client says nothing more: the stream ends once nothing is under way that it can be told. */
  lastWord(): void {
    this.#isLastWord = true;
    this.#leaveIfQuiet();
  }

  /** Ends the stream once everything up to a record was told. */
  endAfter(seq: Seq): void {
    this.#endAfter = seq;
    if (this.#readSeq >= seq) this.end();
  }

  /** Ends the stream; what waits still leaves. */
  end(): void {
    this.close();
    this.#outbox.end();
  }

  /** Nothing more happens here. */
  close(): void {
    this.#closing.abort();
    this.#keepalive?.cancel();
    this.#again?.cancel();
    this.#updates.stop();
    this.#early = [];
    this.#host.channels.detach(this.session, this);
  }

  /** What a slow reader was not told for long is much: no more of it waits than there is room for. */
  async #partial(partial: PartialCompletion): Promise<void> {
    for (let told = this.#transcript.partial(partial); told.length > 0 && !this.isClosed; told = this.#transcript.partial(partial)) {
      this.#outbox.put(told);
      if (!this.#outbox.hasRoom) await this.#outbox.room();
    }
  }

  async #record(record: StoredRecord): Promise<void> {
    const { journal, controller } = this.#host;
    if (isTold(record.kind)) {
      const item = await transcriptRecordOf(journal, this.session, record);
      if (this.isClosed) return;
      const turn = this.#transcript.turn;
      this.#outbox.put(this.#transcript.record(item));
      if (turn !== undefined && this.#transcript.turn !== turn) this.#turnOver(turn.executionId, record.seq < this.#headSeq);
      if (item.event.body.case === "tool") this.#release(item.event.body.value.id);
    } else {
      this.#transcript.pass(record.seq);
    }
    this.#readSeq = record.seq;
    if (record.seq === this.#headSeq) this.#caughtUp();
    const running = controller.running(this.session);
    if (running !== undefined) this.watch(running);
    if (record.seq < this.#headSeq) return;
    this.#update();
    if (running === undefined) this.#review();
    else this.#leaveIfQuiet();
    if (this.#endAfter !== undefined && record.seq >= this.#endAfter) this.end();
  }

  /** A turn is over; one that was over before may be told while another one waits for its client. */
  #turnOver(executionId: string, isPast: boolean): void {
    this.#endedTurn = executionId;
    this.#early = this.#early.filter(({ isOpen }) => isOpen);
    this.#asked.clear();
    if (!isPast) this.#host.channels.turnOver(this.session);
  }

  /** What was missed has come: the client knows where it is, and what is under way. */
  #caughtUp(): void {
    const { seq } = this.#transcript;
    if (this.#outbox.lastSeq < seq) this.#outbox.put([{ said: undefined, seq }]);
    const running = this.#host.controller.running(this.session);
    if (running !== undefined) this.watch(running);
    this.#update();
    this.#review();
  }

  /** What the agent does may have changed. */
  #update(): void {
    const { turn } = this.#transcript;
    this.#updates.tell(turn);
    if (turn === undefined || turn.isHidden) {
      this.#keepalive?.cancel();
      this.#keepalive = undefined;
    } else {
      this.#keepalive ??= this.#host.ports.clock.after(this.#host.limits.keepaliveIntervalMs, () => this.#keepAlive());
    }
  }

  #keepAlive(): void {
    this.#keepalive = undefined;
    const { turn } = this.#transcript;
    if (turn === undefined) return;
    const { contextTokens } = turn.usage;
    const tokensMax = turn.facts.contextTokensMax ?? CONTEXT_TOKENS_DEFAULT;
    const used = contextTokens === undefined ? {} : { tokensUsed: uint32(contextTokens) };
    const value = create(KeepaliveSchema, { ...used, tokensMax: uint32(tokensMax) });
    this.#outbox.putLatest("keepalive", { said: { case: "keepalive", value }, seq: this.#transcript.seq });
    this.#update();
  }

  #release(callId: string): void {
    const released = this.#early.filter(({ call: { id } }) => id === callId);
    this.#early = this.#early.filter((request) => !released.includes(request));
    for (const request of released) this.#send(request);
  }

  #send(request: OpenRequest): void {
    const { call, timeoutMs } = request;
    const value = create(ToolRequestSchema, { toolCallId: call.id, toolName: call.tool, parameters: call.args ?? {}, timeoutMs });
    this.#outbox.putIf({ said: { case: "toolRequest", value }, seq: this.#transcript.seq }, () => {
      if (!request.isOpen || this.isClosed) return false;
      request.sent();
      this.#asked.set(call.id, request);
      this.#leaveIfQuiet();
      return true;
    });
  }

  #review(): void {
    this.#reviews = this.#reviews.then(() => this.#look()).catch((error: unknown) => this.#fail(toHoldfastError(error)));
  }

  /** Looks whether a turn that does not run here is to go on, or is over without an END. */
  async #look(): Promise<void> {
    const { controller, journal } = this.#host;
    const { turn } = this.#transcript;
    if (this.isClosed) return;
    if (turn === undefined || controller.running(this.session) !== undefined) return this.#leaveIfQuiet();
    const row = await journal.get(this.session);
    const open = row?.projection.openTurn;
    if (row === undefined || open === undefined || open.executionId !== turn.executionId || row.projection.lastSeq > this.#readSeq) return;
    if (open.startSeq <= (row.parent?.forkSeq ?? 0)) {
      this.#transcript.leave();
      return this.#concluded(turn.executionId, []);
    }
    if (row.holder !== undefined) {
      this.#again ??= this.#host.ports.clock.after(HELD_AGAIN_MS, () => {
        this.#again = undefined;
        this.#review();
      });
      return;
    }
    const approvals = ownApprovals(row);
    if (approvals.some(({ decision }) => decision === undefined)) return this.#leaveIfQuiet();
    const { lastSeq } = row.projection;
    const interrupted = this.#interrupted?.executionId === turn.executionId ? this.#interrupted : undefined;
    if (interrupted !== undefined && interrupted.lastSeq >= lastSeq) {
      // A host that is closing, or that lost the turn to another one, has not ended it.
      if (turn.fault === undefined && (interrupted.error.code === "unavailable" || interrupted.error.code === "aborted")) return;
      return this.#concluded(
        turn.executionId,
        this.#transcript.conclude(lastSeq, turn.fault === undefined ? agentError(interrupted.error.code) : undefined),
      );
    }
    if (open.failed && approvals.length === 0) return this.#concluded(turn.executionId, this.#transcript.conclude(lastSeq));
    await this.#resume(lastSeq);
  }

  async #resume(lastSeq: Seq): Promise<void> {
    const { turn } = this.#transcript;
    try {
      const resumed = await this.#host.controller.resume(this.session, this.#caller);
      if (resumed.turn !== undefined) this.watch(resumed.turn);
    } catch (error) {
      const fault = toHoldfastError(error);
      // Somebody else takes it up, or this host is closing.
      if (fault.code === "aborted" || fault.code === "unavailable" || turn === undefined) return;
      this.#concluded(turn.executionId, this.#transcript.conclude(lastSeq, saidOf(fault)));
    }
  }

  #concluded(executionId: string, told: ReturnType<Transcript["conclude"]>): void {
    this.#outbox.put(told);
    this.#turnOver(executionId, false);
    this.#update();
    this.#leaveIfQuiet();
  }

  /** A client that says nothing more is told what is under way, up to where it would have to answer. */
  #leaveIfQuiet(): void {
    if (!this.#isLastWord || this.isClosed || this.#readSeq < this.#headSeq) return;
    const { turn } = this.#transcript;
    const isRunning = this.#host.controller.running(this.session) !== undefined;
    const isQuiet = isRunning ? this.#waitsForClient(turn) : turn === undefined || turn.question !== undefined;
    if (isQuiet) this.end();
  }

  /** Whether a turn waits for results of its client's and for nothing else, and the client was asked for all of them. */
  #waitsForClient(turn: TurnView | undefined): boolean {
    const running = turn?.running ?? [];
    return running.length > 0 && this.#early.length === 0 && running.every(({ id }) => this.#asked.get(id)?.isOpen);
  }

  #fail(fault: HoldfastError): void {
    if (this.isClosed) return;
    const { code, details } = fault;
    this.#host.log.log("error", "a conversation could not go on", { session: this.session, code, ...details });
    this.say(saidOf(fault));
    this.end();
  }
}

/** The message that the turn answers which started at `startSeq`, where its config cannot say it. */
function messageIdAt({ current }: SessionNotes, startSeq: Seq): string | undefined {
  const after = Number(current.messageAfterSeq);
  // A cold session is resumed in the same append.
  return current.messageId !== "" && startSeq > after && startSeq <= after + 2 ? current.messageId : undefined;
}
