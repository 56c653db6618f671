/**
 * Webhooks: every receiver is told of every request that waits for a person, and of every decision, at least once.
 *
 * Invariants:
 * - The journal is the queue. What is beside it, in the file `webhooks.json`, is one time for each receiver: everything that was recorded
 *   before it needs not be sent. A start reads the journal from there on, and what a crash loses of the file is sent twice, not never.
 * - No turn waits for a receiver, and none knows of another.
 */

import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { HoldfastError, toHoldfastError, type Log, type Ports } from "../base/index.ts";
import { ownApprovals } from "../controller/index.ts";
import type { JournalStore, ListCursor } from "../journal/index.ts";
import { approvalNewsOf, approvalNewsSince, type ApprovalFeed, type ApprovalNews, type ApprovalNote } from "../service/index.ts";
import type { WebhookConfig } from "./webhook-config.ts";
import { webhookMessage } from "./webhook-message.ts";
import { WebhookSender, type WebhookLimits } from "./webhook-sender.ts";

/** What webhooks need. */
export interface WebhooksOptions {
  readonly webhooks: readonly WebhookConfig[];
  readonly journal: JournalStore;
  readonly feed: ApprovalFeed;
  /** Where the times of the receivers are kept; undefined keeps them nowhere. */
  readonly folder: string | undefined;
  readonly ports: Ports;
  readonly log: Log;
  readonly limits?: Partial<WebhookLimits> | undefined;
}

/** Webhooks at work. */
export interface Webhooks {
  /** Sends nothing more and keeps what is to be known next time. */
  stop(): Promise<void>;
}

/** Records are stamped a moment before they are durable: how far back a look goes beyond what is said to be done. */
const SLACK_MS = 60_000;
/** How often what is done is looked at. */
const LOOK_MS = 30_000;
/** Where nothing happens, the file is written no more often than this. */
const IDLE_SAVE_MS = 3_600_000;
/** Appends that were heard of and not told yet; more are found in the journal. */
const HEARD_MAX = 1_000;
const PAGE_ROWS = 200;
const FILE = "webhooks.json";

/** Begins to tell of what is recorded from now on, and of what earlier starts left. */
export function startWebhooks(options: WebhooksOptions): Webhooks {
  const running = new RunningWebhooks(options);
  return { stop: () => running.stop() };
}

interface Receiver {
  readonly config: WebhookConfig;
  /** Its name in the file, which tells nothing of its address. */
  readonly name: string;
  readonly sender: WebhookSender;
  /** What was recorded before it needs not be looked for. */
  doneMs: number;
  /** Nothing is known of it, so it is to be told of what waits already, however old. */
  isNew: boolean;
}

class RunningWebhooks {
  readonly #options: WebhooksOptions;
  readonly #receivers: readonly Receiver[];
  readonly #stopping = new AbortController();
  readonly #unlisten: () => void;
  readonly #looking: Promise<void>;
  /** Everything is told in the order in which it was heard of. */
  #telling: Promise<void> = Promise.resolve();
  #heard = 0;
  /** Something was told since the receivers' times were looked at. */
  #hasNews = false;
  /** Something may be in the journal that was not told. */
  #isBehind = true;
  #saved = "";

  constructor(options: WebhooksOptions) {
    this.#options = options;
    const known = timesIn(options.folder);
    this.#receivers = options.webhooks.map((config) => this.#receiverOf(config, known));
    this.#unlisten = options.feed.listen((note) => this.#hear(note));
    this.#looking = this.#lookForever();
  }

  async stop(): Promise<void> {
    this.#unlisten();
    this.#stopping.abort(new HoldfastError("cancelled", "webhooks: they were stopped"));
    await Promise.allSettled([this.#looking, this.#telling]);
    if (!this.#isBehind) this.#advance();
    await Promise.allSettled(this.#receivers.map(({ sender }) => sender.stop()));
    await this.#save();
  }

  #receiverOf(config: WebhookConfig, known: ReadonlyMap<string, number>): Receiver {
    const { ports, limits, log } = this.#options;
    const name = createHash("sha256").update(config.url).digest("hex").slice(0, 32);
    const { clock, random } = ports;
    const sender = new WebhookSender({ url: config.url, key: config.key, clock, random, log, limits });
    const doneMs = known.get(name);
    return { config, name, sender, doneMs: doneMs ?? clock.nowMs(), isNew: doneMs === undefined };
  }

  #hear(note: ApprovalNote): void {
    if (this.#heard >= HEARD_MAX) {
      this.#isBehind = true;
      return;
    }
    this.#heard += 1;
    this.#hasNews = true;
    this.#telling = this.#telling.then(async () => {
      await this.#tell(note);
      this.#heard -= 1;
    });
  }

  async #tell({ session, records }: ApprovalNote): Promise<void> {
    const { journal } = this.#options;
    try {
      const row = await journal.get(session);
      if (row === undefined) return;
      for (const record of records) this.#send(await approvalNewsOf(journal, row, record), this.#receivers);
    } catch {
      this.#isBehind = true;
    }
  }

  #send(news: ApprovalNews | undefined, receivers: readonly Receiver[]): void {
    if (news === undefined) return;
    for (const { config, sender } of receivers) {
      if (config.projects?.includes(news.row.seed.project) ?? true) sender.send(webhookMessage(news, config));
    }
  }

  async #lookForever(): Promise<void> {
    const { clock } = this.#options.ports;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      for (const { sender } of this.#receivers) if (sender.takeDropped() > 0) this.#isBehind = true;
      if (this.#isBehind) await this.#lookThrough();
      else this.#advance();
      await this.#save();
      await clock.sleep(LOOK_MS, { signal }).catch(() => undefined);
    }
  }

  /** Finds in the journal what was not told. */
  async #lookThrough(): Promise<void> {
    const { journal, log } = this.#options;
    const { signal } = this.#stopping;
    this.#isBehind = false;
    try {
      const fresh = this.#receivers.filter(({ isNew }) => isNew);
      if (fresh.length > 0) await this.#tellWaiting(fresh);
      for (const receiver of fresh) receiver.isNew = false;
      const sinceMs = Math.min(...this.#receivers.map(({ doneMs }) => doneMs)) - SLACK_MS;
      for await (const news of approvalNewsSince(journal, sinceMs, signal)) {
        this.#hasNews = true;
        const late = this.#receivers.filter(({ doneMs }) => news.timeMs >= doneMs - SLACK_MS);
        this.#send(news, late);
      }
      if (signal.aborted) this.#isBehind = true;
    } catch (error) {
      this.#isBehind = true;
      if (!signal.aborted) log.log("warn", "webhook: the journal could not be looked through", { code: toHoldfastError(error).code });
    }
  }

  /** Tells of every request that waits now. */
  async #tellWaiting(receivers: readonly Receiver[]): Promise<void> {
    const { journal } = this.#options;
    const { signal } = this.#stopping;
    let after: ListCursor | undefined;
    do {
      const page = await journal.list({ openApproval: true, after, limit: PAGE_ROWS, signal });
      for (const row of page.rows) {
        for (const { decision, requestSeq: seq } of ownApprovals(row)) {
          if (decision !== undefined) continue;
          for await (const [record] of journal.read({ session: row.seed.uid, fromSeq: seq, toSeq: seq, signal })) {
            if (record !== undefined) this.#send(await approvalNewsOf(journal, row, record), receivers);
          }
        }
      }
      after = page.next;
    } while (after !== undefined);
  }

  /** Everything up to now was told, but for what a sender still holds. */
  #advance(): void {
    const nowMs = this.#options.ports.clock.nowMs();
    if (this.#heard > 0) return;
    for (const receiver of this.#receivers) {
      const { floorMs } = receiver.sender;
      if (floorMs !== undefined) receiver.doneMs = floorMs;
      else if (this.#hasNews || nowMs - receiver.doneMs > IDLE_SAVE_MS) receiver.doneMs = nowMs;
    }
    this.#hasNews = this.#receivers.some(({ sender }) => sender.held > 0);
  }

  async #save(): Promise<void> {
    const { folder, log } = this.#options;
    // A receiver that was not told of what waits is new to the next start as well.
    const known = this.#receivers.filter(({ isNew }) => !isNew);
    const text = JSON.stringify(Object.fromEntries(known.map(({ name, doneMs }) => [name, doneMs])));
    if (folder === undefined || text === this.#saved) return;
    try {
      const path = join(folder, FILE);
      await writeFile(`${path}.new`, `${text}\n`, { mode: 0o600 });
      await rename(`${path}.new`, path);
      this.#saved = text;
    } catch (error) {
      log.log("warn", "webhook: what was sent could not be noted; it is sent again after a restart", { code: toHoldfastError(error).code });
    }
  }
}

/** The times of the receivers; none where there is no file, or one that nobody can read: then they are new. */
function timesIn(folder: string | undefined): ReadonlyMap<string, number> {
  const times = new Map<string, number>();
  if (folder === undefined) return times;
  try {
    const value: unknown = JSON.parse(readFileSync(join(folder, FILE), "utf8"));
    for (const [name, time] of Object.entries(value ?? {})) if (Number.isSafeInteger(time)) times.set(name, Number(time));
  } catch {
    // No file, or none that holds this.
  }
  return times;
}
