/** A chat that runs: the core, with a session, tools and a surface around it. */

import { HoldfastError, toHoldfastError } from "../../base/errors.ts";
import type { Ports, Timer } from "../../base/index.ts";
import type { AgentSession, AgentSessionEvent, Client } from "../../client/index.ts";
import { isConnectionLost } from "../../client/reconnect.ts";
import { ChatCore } from "./chat-core.ts";
import { Ledger } from "./ledger.ts";
import { callInJournal, pastTurns, summaryOf } from "./past-turns.ts";
import type { Effect, Printed, ServerCommand } from "./printed.ts";
import { runServerCommand } from "./server-commands.ts";
import type { StateFolder } from "./state-folder.ts";
import type { Surface } from "./surface.ts";
import { toolSchema, type LocalTool, type ToolWorld } from "./tools/index.ts";
import { ToolDesk } from "./tool-desk.ts";

/** What a chat is made of. */
export interface ChatOptions {
  readonly client: Client;
  readonly surface: Surface;
  readonly state: StateFolder;
  readonly world: ToolWorld;
  readonly ports: Pick<Ports, "clock" | "random">;
  readonly tools: readonly LocalTool[];
  /** Tools that are allowed without a question. */
  readonly allow: readonly string[];
  readonly isPiped: boolean;
  readonly mode: string | undefined;
  /** What a new session begins with. */
  readonly start: {
    readonly environmentId: string;
    readonly model?: string | undefined;
    readonly hostId?: string | undefined;
    readonly projectContext: readonly string[];
  };
  readonly signal: AbortSignal;
}

/** A chat reconnects for as long as its person waits. */
const RECONNECT = { attemptsMax: Number.MAX_SAFE_INTEGER, delayMaxMs: 2_000 };
/** Records in which a call is looked for first. */
const LOOK_BACK = 1_000n;
/** From one attempt to look a call up to the next, while the server is gone. */
const LOOK_AGAIN_MS = 500;

/** Codes with which the server refuses a start and that say the same of the command. */
const START_FAILURES = ["invalid_argument", "unauthenticated", "permission_denied"] as const;

/** Why a chat ended. */
export type ChatEnd =
  | { readonly kind: "left"; readonly session: string | undefined; readonly isTurn: boolean; readonly hasFailed: boolean }
  | { readonly kind: "failed"; readonly error: unknown; readonly session: string | undefined };

export class Chat {
  readonly #options: ChatOptions;
  readonly #core: ChatCore;
  readonly #desk: ToolDesk;
  readonly #end = Promise.withResolvers<ChatEnd>();
  readonly #leaving = new AbortController();
  readonly #signal: AbortSignal;
  #session: AgentSession | undefined;
  #uid: string | undefined;
  #ledger: Ledger | undefined;
  /** The message whose turn runs, as far as this chat knows; "" for none. */
  #turn = "";
  /** Until no key came at the question for long enough. */
  #quiet: Timer | undefined;
  /** The cursor when the turn began. */
  #turnFromSeq = 0n;

  constructor(options: ChatOptions) {
    this.#options = options;
    const { tools, mode, isPiped } = options;
    this.#core = new ChatCore({ tools, always: options.allow, mode, isPiped });
    this.#signal = AbortSignal.any([options.signal, this.#leaving.signal]);
    this.#desk = new ToolDesk(
      options.world,
      () => this.#openLedger(),
      (callId, result) => this.#session?.answer(callId, result),
    );
  }

  /** Chats, in a new session or in the one of this uid, until the person leaves. */
  async run(session: string | undefined): Promise<ChatEnd> {
    const { surface } = this.#options;
    try {
      await this.#enter(session);
    } catch (error) {
      return { kind: "failed", error, session };
    }
    surface.start(this.#core, () => this.#settle());
    this.#settle();
    const onAbort = (): void => this.#leave();
    this.#options.signal.addEventListener("abort", onAbort, { once: true });
    try {
      return await this.#end.promise;
    } finally {
      this.#options.signal.removeEventListener("abort", onAbort);
      this.#leaving.abort();
      this.#quiet?.cancel();
      await this.#desk[Symbol.asyncDispose]();
      await this.#session?.[Symbol.asyncDispose]();
      this.#ledger?.[Symbol.dispose]();
      surface.close(this.#core);
    }
  }

  /** Begins a session, or goes on with one: what was said last is shown, and what is open comes over the stream. */
  async #enter(uid: string | undefined): Promise<void> {
    const { client, start, tools } = this.#options;
    const { environmentId, model, hostId, projectContext } = start;
    if (uid !== undefined) return this.#goOn(uid);
    const named = { ...(model === undefined ? {} : { model }), ...(hostId === undefined ? {} : { hostId }) };
    const init = { environmentId, ...named, tools: tools.map(toolSchema), projectContext: [...projectContext] };
    this.#listenTo(client.agent.session({ start: init, reconnect: RECONNECT, signal: this.#signal }));
  }

  async #goOn(uid: string): Promise<void> {
    const { client, surface } = this.#options;
    const past = await pastTurns(client, uid, this.#signal);
    const ledger = this.#enterLedger(uid);
    const { message } = ledger;
    if (message !== undefined && message.id !== past.openMessageId) {
      if (past.messageIds.has(message.id)) ledger.endTurn();
      else surface.fill(message.text);
    }
    this.#turn = past.openMessageId ?? "";
    this.#turnFromSeq = past.fromSeq;
    if (past.openMessageId !== undefined) this.#core.onOpenTurn();
    this.#show([...heading(uid, past.model), ...past.printed]);
    this.#listenTo(client.agent.session({ session: uid, fromSeq: past.fromSeq, reconnect: RECONNECT, signal: this.#signal }));
  }

  #listenTo(session: AgentSession): void {
    this.#session = session;
    void this.#listen(session);
  }

  async #listen(session: AgentSession): Promise<void> {
    let why = "session: the server has ended it";
    try {
      for await (const event of session) {
        if (event.kind === "error" && this.#uid === undefined) return this.#fail(startFailure(event.error));
        if (event.kind === "error") why = event.error.message;
        if (event.kind === "started") this.#started(event.started.sessionId, event.started.model);
        if (event.kind === "text" || event.kind === "thinking") this.#turn = event.delta.messageId;
        this.#core.onEvent(event);
        this.#settle();
      }
      if (session === this.#session) this.#fail(new HoldfastError("aborted", why));
    } catch (error) {
      if (session === this.#session) this.#fail(error);
    }
  }

  #started(uid: string, model: string): void {
    this.#options.state.keepLast({ session: uid });
    if (this.#uid === uid) return;
    this.#enterLedger(uid);
    this.#show(heading(uid, model));
  }

  #enterLedger(uid: string): Ledger {
    this.#ledger?.[Symbol.dispose]();
    this.#uid = uid;
    this.#ledger = Ledger.open(this.#options.state.ledgerPath(uid));
    this.#core.allowAlways(this.#ledger.always);
    return this.#ledger;
  }

  #openLedger(): Ledger {
    if (this.#ledger === undefined) throw new HoldfastError("internal", "chat: a call came before its session");
    return this.#ledger;
  }

  /** Writes something down. Where the disk does not take it, the chat goes on; what it does not know after a crash it does not run again. */
  #keep(write: (ledger: Ledger) => void): void {
    try {
      write(this.#openLedger());
    } catch {
      this.#core.problem("the chat cannot write down on this disk what it does: after a crash it would not know it");
    }
  }

  /** Does what the core wants done and shows it, until it wants nothing more. */
  #settle(): void {
    do {
      const printed: Printed[] = [];
      for (const effect of this.#core.takeEffects()) {
        if (effect.kind === "print") printed.push(effect.printed);
        else this.#try(effect);
      }
      this.#show(printed);
    } while (this.#core.hasEffects);
  }

  #try(effect: Exclude<Effect, { readonly kind: "print" }>): void {
    try {
      this.#do(effect);
    } catch (error) {
      this.#core.problem(toHoldfastError(error).message);
      if (effect.kind === "say") this.#core.onNotSent();
    }
  }

  #show(printed: readonly Printed[]): void {
    this.#options.surface.show(printed, this.#core);
  }

  #do(effect: Exclude<Effect, { readonly kind: "print" }>): void {
    switch (effect.kind) {
      case "say":
        return this.#say(effect.text);
      case "cancel-turn":
        return this.#session?.cancelTurn("the person at the terminal cancelled it");
      case "decide":
        return this.#session?.decide(effect.callId, effect.approved);
      case "look-up":
        return this.#background(this.#lookUp(effect.callId));
      case "prepare":
        return this.#background(this.#prepare(effect));
      case "run":
        return this.#background(this.#runCall(effect.callId));
      case "refuse": {
        const { summary, outcome } = this.#desk.refuse(effect.callId, effect.result);
        return this.#core.onOutcome(effect.callId, summary, outcome);
      }
      case "keep-allowed":
        return this.#keep((ledger) => ledger.allow(this.#turn, effect.callId));
      case "keep-always":
        return this.#keep((ledger) => ledger.allowAlways(effect.tool));
      case "stop-tools":
        return this.#desk.stop();
      case "end-turn":
        this.#turn = "";
        return this.#keep((ledger) => ledger.endTurn());
      case "await-quiet":
        this.#quiet?.cancel();
        this.#quiet = this.#options.ports.clock.after(effect.forMs, () => {
          this.#core.onQuiet(effect.callId);
          this.#settle();
        });
        return;
      case "command":
        return this.#background(this.#command(effect.command));
      case "redraw":
        return this.#options.surface.redraw(this.#core);
      case "suspend":
        return this.#options.surface.suspend();
      case "leave":
        return this.#leave();
    }
  }

  #say(content: string): void {
    const session = this.#session;
    if (session === undefined) return;
    const { ports, tools } = this.#options;
    const messageId = Buffer.from(ports.random.bytes(16)).toString("hex");
    // Before it is sent: a chat that is killed now still knows what was written.
    this.#keep((ledger) => ledger.giveMessage(messageId, content));
    this.#turn = messageId;
    this.#turnFromSeq = session.cursor ?? this.#turnFromSeq;
    const { mode } = this.#core;
    session.say({ content, messageId, tools: tools.map(toolSchema), ...(mode === undefined ? {} : { aiMode: mode }) });
  }

  async #lookUp(callId: string): Promise<void> {
    const session = this.#session;
    if (session?.uid === undefined) return;
    const asked = await this.#callOf(session, session.uid, callId);
    const [tool, args] = asked === undefined ? [callId, {}] : [asked.tool, asked.args];
    const seen = (await this.#desk.preview(tool, args)) ?? {
      summary: summaryOf(tool, args),
      details: JSON.stringify(args, null, 2),
      consent: "ask",
    };
    this.#core.onLookedUp(callId, tool, seen);
  }

  /** The call that a question is about. While the server is gone it is asked again. */
  async #callOf(session: AgentSession, uid: string, callId: string): ReturnType<typeof callInJournal> {
    const { client, ports } = this.#options;
    for (;;) {
      try {
        const near = (session.cursor ?? 0n) - LOOK_BACK;
        const found = await callInJournal(client, uid, callId, near > this.#turnFromSeq ? near : this.#turnFromSeq, this.#signal);
        return found ?? (near > this.#turnFromSeq ? await callInJournal(client, uid, callId, this.#turnFromSeq, this.#signal) : undefined);
      } catch (error) {
        if (!isConnectionLost(error)) throw error;
        await ports.clock.sleep(LOOK_AGAIN_MS, { signal: this.#signal });
      }
    }
  }

  async #prepare({ callId, tool, args, timeoutMs }: Extract<Effect, { readonly kind: "prepare" }>): Promise<void> {
    const look = await this.#desk.look({ callId, turn: this.#turn, tool, args, timeoutMs });
    if (look.kind === "prepared") this.#core.onPrepared(callId, look.seen, look.isAllowed);
    else this.#core.onOutcome(callId, look.summary, look.outcome);
  }

  async #runCall(callId: string): Promise<void> {
    const done = await this.#desk.run(callId);
    if (done !== undefined) this.#core.onOutcome(callId, done.summary, done.outcome);
  }

  async #command(command: ServerCommand): Promise<void> {
    if (this.#uid === undefined) return;
    try {
      const result = await runServerCommand(this.#options.client, this.#uid, command, this.#signal);
      if (result.kind === "problem") return this.#core.onCommandDone({ problem: result.problem });
      if (result.kind === "switch") await this.#switchTo(result.session, result.note);
      this.#core.onCommandDone({ lines: result.kind === "switch" ? [] : result.lines });
    } catch (error) {
      this.#core.onCommandDone({ problem: toHoldfastError(error).message });
    }
  }

  /** Leaves the session and goes on in another. */
  async #switchTo(uid: string, note: string): Promise<void> {
    const before = this.#session;
    this.#session = undefined;
    await before?.[Symbol.asyncDispose]();
    this.#core.onSwitched();
    this.#options.state.keepLast({ session: uid });
    this.#enterLedger(uid);
    this.#turn = "";
    const { client } = this.#options;
    const { lastSeq, model } = await client.sessions.get(uid, { signal: this.#signal });
    this.#show([{ kind: "note", text: note }, ...heading(uid, model)]);
    this.#listenTo(client.agent.session({ session: uid, fromSeq: lastSeq, reconnect: RECONNECT, signal: this.#signal }));
  }

  #background(work: Promise<void>): void {
    void work
      .catch((error: unknown) => {
        if (!this.#signal.aborted) this.#core.problem(toHoldfastError(error).message);
      })
      .then(() => this.#settle());
  }

  #leave(): void {
    const { hasFailed, status } = this.#core;
    this.#end.resolve({ kind: "left", session: this.#uid, isTurn: status.isTurn, hasFailed });
  }

  #fail(error: unknown): void {
    if (this.#signal.aborted) return this.#leave();
    this.#end.resolve({ kind: "failed", error, session: this.#uid });
  }
}

/** Why a session was not started: what the server says of it, as an error of the command. */
function startFailure({ code, message, retryable }: Extract<AgentSessionEvent, { readonly kind: "error" }>["error"]): HoldfastError {
  const known = START_FAILURES.find((one) => one === code);
  return new HoldfastError(known ?? (retryable ? "unavailable" : "failed_precondition"), message);
}

/** What a chat begins with on the screen. */
function heading(uid: string, model: string): readonly Printed[] {
  return [
    { kind: "note", text: `session ${uid}` },
    { kind: "note", text: `${model === "" ? "" : `model ${model}; `}/help has the commands` },
  ];
}
