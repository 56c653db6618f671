/**
 * The sessions that docs/chat.md shows are what a terminal shows: they are had here, and compared. HOLDFAST_RECORD=1 writes them into the page
 * instead.
 */

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { chatBench, CTRL_C } from "./support/chat-bench.ts";
import type { Terminal } from "./support/terminal.ts";

const PAGE = join(import.meta.dirname, "..", "docs", "chat.md");
const SCRIPT = join(import.meta.dirname, "support", "chat-page.yaml");

/** The session under this name on the page, between its fences. */
const blockOf = (name: string): RegExp => new RegExp(`(<!-- session: ${name} -->\\n\`\`\`text\\n)([^]*?)(\\n\`\`\`)`);

/** What a terminal shows, without what is of this run alone: uids, the script's folder, the server's port. */
function told(terminal: Terminal): string {
  const uids = new Map<string, string>();
  return terminal.screen.text
    .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}/g, (uid) => {
      const name = uids.get(uid) ?? `01a2${String(uids.size).padStart(4, "0")}-4c5e-7aaa-8bbb-0123456789ab`;
      uids.set(uid, name);
      return name;
    })
    .replaceAll(/script:\S+\/model\.yaml/g, "script:model.yaml")
    .replaceAll(/ --server \S+/g, "");
}

function check(name: string, session: string): void {
  const page = readFileSync(PAGE, "utf8");
  if (process.env["HOLDFAST_RECORD"] !== undefined) {
    writeFileSync(
      PAGE,
      page.replace(blockOf(name), (_, before: string, _old: string, after: string) => `${before}${session}${after}`),
    );
    return;
  }
  expect(session).toBe(blockOf(name).exec(page)?.[2]);
}

/** Resolves when these words are there and nothing runs any more. */
async function idle(terminal: Terminal, words: string): Promise<void> {
  await terminal.sees(new RegExp(`${words}(?![^]*; Ctrl-C)[^]*\\n›$`));
}

it("shows a session as it is", async () => {
  const bench = chatBench(readFileSync(SCRIPT, "utf8"));
  await bench.serve();
  writeFileSync(join(bench.folder, "names.txt"), "Grace\nAda\nEdsger\n");
  const terminal = await bench.chat();
  terminal.enter("What is here?");
  await idle(terminal, "not sorted\\.");
  terminal.enter("Sort them.");
  await terminal.sees(/\+ Grace[^]*\[d\]etails/);
  terminal.type("y");
  await idle(terminal, "by first name\\.");
  terminal.enter("Are you sure?");
  await terminal.sees(/▸ run[^]*\[d\]etails/);
  terminal.type("a");
  await idle(terminal, "says so\\.");
  terminal.enter("/usage");
  await terminal.sees("3 turns of this chat");
  terminal.enter("/rewind 2");
  await idle(terminal, "goes on in a child[^]*/help has");
  terminal.enter("/tree");
  await terminal.sees("(here)");
  terminal.enter("Tell me a story.");
  await terminal.sees("Once upon a time");
  terminal.type(CTRL_C);
  await idle(terminal, "cancelled");
  terminal.enter("/quit");
  await terminal.ended;
  check("whole", told(terminal));
});

it("shows how a killed chat goes on", async () => {
  const bench = chatBench(readFileSync(SCRIPT, "utf8"));
  await bench.serve();
  writeFileSync(join(bench.folder, "names.txt"), "Ada\nEdsger\nGrace\n");
  const killed = await bench.chat();
  killed.enter("Count the names.");
  await killed.sees("[d]etails");
  await killed.kill();
  const terminal = await bench.chat(["--continue"]);
  await terminal.sees("[d]etails");
  terminal.type("y");
  await idle(terminal, "Three\\.");
  terminal.enter("/quit");
  await terminal.ended;
  check("continued", told(terminal));
});
