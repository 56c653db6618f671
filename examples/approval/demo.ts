/**
 * The demo: an agent with two MCP servers reads a folder, adds numbers up, and asks before it writes. While it waits, its server is killed. It is
 * approved after the restart, from another process; it writes once; and the journal of all this is verified by two programs.
 *
 * `npm run demo [-- --model gpt-x] [--folder DIR] [--by-hand]`
 *
 * What it says at its end it has looked up, in the folder and in the journal. The exit code is 1 where something of it is not so.
 */

import { readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { effectsIn, gatedCallsIn, type GatedCall } from "./journal.ts";
import { say, Stage } from "./stage.ts";

/** The exit code of a turn that waits for an approval. */
const WAITS = 7;
const TASK = "Enter March in the book.";

const { values } = parseArgs({
  options: {
    model: { type: "string", default: "script:script.yaml" },
    folder: { type: "string" },
    "by-hand": { type: "boolean", default: false },
  },
});

/** What one run of the demo knows so far. */
class Demo {
  readonly #stage: Stage;
  readonly #model: string;
  readonly #isByHand: boolean;
  readonly #faults: string[] = [];
  #step = 0;
  #decisions = 0;

  constructor(stage: Stage, { model, isByHand }: { readonly model: string; readonly isByHand: boolean }) {
    this.#stage = stage;
    this.#model = model;
    this.#isByHand = isByHand;
  }

  /** Plays it; the faults that were found. */
  async play(): Promise<readonly string[]> {
    const stage = this.#stage;
    say(`An agent that asks before it writes. Model ${this.#model}, folder ${stage.folder}`);

    this.#tell("The server starts, and with it two MCP servers: files (the folder shop) and sums.");
    await stage.serve(this.#model);
    const before = this.#book();

    this.#tell("The clerk is given its task. It looks around by itself, and asks before it writes.");
    const asked = await stage.holdfast(["exec", "--input", TASK]);
    const session = /^session (\S+)/.exec(asked.stdout)?.[1] ?? "";
    if (asked.exitCode !== WAITS) return [`the turn did not come to wait for an approval (exit code ${asked.exitCode})`];
    this.#check(this.#book().text === before.text, "nothing is written yet", "the book was written before anybody approved it");

    this.#tell("The server is killed while the turn waits.");
    await stage.end("SIGKILL");

    this.#tell("The server starts again. What waited still waits.");
    await stage.serve(this.#model);
    await this.#decideAndResume(session);
    const after = this.#book();

    this.#tell("Resumed once more: there is nothing left to do, and nothing is done.");
    await stage.holdfast(["resume", session]);
    const again = this.#book();
    this.#check(
      again.text === after.text && again.writtenAtNs === after.writtenAtNs,
      "the book was not touched again",
      "the second resume wrote",
    );

    await this.#verify(session);
    return this.#faults;
  }

  /** Answers what waits, from processes of their own, until the turn has ended. */
  async #decideAndResume(session: string): Promise<void> {
    const stage = this.#stage;
    for (let exitCode: number | null = WAITS; exitCode === WAITS;) {
      this.#decisions += 1;
      if (this.#isByHand) await this.#decidedByHand(session);
      else {
        this.#tell("From another process: what waits, and yes.");
        await stage.holdfast(["approvals"]);
        await stage.holdfast(["approve", session]);
      }
      this.#tell("The turn goes on: the tool runs.");
      ({ exitCode } = await stage.holdfast(["resume", session]));
      this.#check(exitCode === 0 || exitCode === WAITS, "", `the turn did not go on (exit code ${exitCode})`);
    }
    say(`   shop/book.txt is now:\n${indented(this.#book().text)}`);
  }

  /** Waits until a person has answered from another terminal. */
  async #decidedByHand(session: string): Promise<void> {
    this.#tell("Your turn. In another terminal, in this clone, one of:");
    const { url } = this.#stage;
    say(`     npx holdfast approvals --server ${url}`);
    say(`     npx holdfast approve ${session} --server ${url}`);
    say(`     npx holdfast deny ${session} --reason "not this month" --server ${url}`);
    await this.#stage.untilDecided(session, this.#decisions);
  }

  /** Reads the journal, and has it verified. */
  async #verify(session: string): Promise<void> {
    const stage = this.#stage;
    this.#tell("The journal: verified by the server, and run again without calling anything.");
    const verified = await stage.holdfast(["verify", session]);
    this.#check(verified.exitCode === 0, "", "the chain does not verify");
    const replayed = await stage.holdfast(["replay", session, "--check"]);
    this.#check(replayed.exitCode === 0, "", "the turn does not replay");

    this.#tell("The same from a file, by a program that shares no code with Holdfast.");
    const { stdout: journal } = await stage.holdfast(["replay", session, "--json"], { quiet: true });
    writeFileSync(join(stage.folder, "journal.jsonl"), journal);
    const { exitCode } = await stage.verifier("journal.jsonl");
    if (exitCode === null) say("   there is no python3 here, so this is left out");
    else this.#check(exitCode === 0, "", "the chain does not verify from the file");

    this.#tell("What the journal says about everything that was gated.");
    const calls = gatedCallsIn(journal);
    for (const call of calls) this.#checkCall(call);
    const lines = this.#book()
      .text.split("\n")
      .filter((line) => line.startsWith("March ")).length;
    const due = calls.some(({ approved }) => approved) ? 1 : 0;
    this.#check(lines === due, `March is in the book ${lines} ×`, `March is in the book ${lines} ×, and should be ${due} ×`);
    say(`   and about what was free: ${effectsIn(journal).join(", ")}`);
  }

  #checkCall({ id, tool, calls, decisions, results, approved }: GatedCall): void {
    const told = `${id} ${tool}: ${calls} call, ${decisions} decision (${approved ? "approved" : "denied"}), ${results} result`;
    this.#check(calls === 1 && decisions === 1 && results === 1, told, `${told}; there should be one of each`);
  }

  #book(): { readonly text: string; readonly writtenAtNs: bigint } {
    const path = join(this.#stage.folder, "shop", "book.txt");
    return { text: readFileSync(path, "utf8"), writtenAtNs: statSync(path, { bigint: true }).mtimeNs };
  }

  #tell(line: string): void {
    this.#step += 1;
    say(`\n${this.#step}. ${line}`);
  }

  #check(isSo: boolean, told: string, fault: string): void {
    if (!isSo) this.#faults.push(fault);
    else if (told !== "") say(`   ✓ ${told}`);
  }
}

function indented(text: string): string {
  return text.replace(/^(?=.)/gm, "   │ ").trimEnd();
}

const stage = new Stage(values.folder);
try {
  const faults = await new Demo(stage, { model: values.model, isByHand: values["by-hand"] }).play();
  for (const fault of faults) say(`\nNot as it should be: ${fault}.`);
  if (faults.length === 0)
    say(`\nKilled while it waited, decided afterwards, everything as it should be. What is left is in ${stage.folder}`);
  process.exitCode = faults.length === 0 ? 0 : 1;
} finally {
  await stage.end("SIGTERM");
}
