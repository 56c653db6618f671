/**
 * `holdfast chat` on a real terminal, against a real server with a scripted model: what a person sees, and what is left of it when either side is
 * killed.
 */

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { chatBench, CTRL_C } from "./support/chat-bench.ts";
import { command } from "./support/command.ts";
import type { Terminal } from "./support/terminal.ts";

/** Resolves when the turn is over that is answered with `words`: the prompt stands at the end of the screen, and nothing runs. */
async function answered(terminal: Terminal, words: string): Promise<void> {
  await terminal.sees(new RegExp(`${words}(?![^]*; Ctrl-C)[^]*\\n›$`));
}

/** How often a text is on the screen. */
function times(terminal: Terminal, words: string): number {
  return terminal.screen.text.split(words).length - 1;
}

const SCRIPT = `
completions:
  - on: { user: look, step: 1 }
    reasoning: "First I see what is there."
    text: ["Let me ", "look."]
    calls: [{ tool: list, args: {} }, { tool: read, args: { path: a.txt } }]
  - on: { user: look, step: 2 }
    text: ["# Found\\n\\n", "- **one** file\\n", "- \`a.txt\`"]
  - on: { user: write, step: 1 }
    calls: [{ tool: write, args: { path: notes.txt, content: "one\\ntwo\\n" } }]
  - on: { user: write, step: 2 }
    text: ["Written."]
  - on: { user: refuse, step: 1 }
    calls: [{ tool: write, args: { path: no.txt, content: x } }]
  - on: { user: refuse, step: 2 }
    text: ["Then not."]
  - on: { user: count, step: 1 }
    calls: [{ tool: run, args: { command: "echo ran >> ran.txt; echo counted" } }]
  - on: { user: count, step: 2 }
    text: ["Counted."]
  - on: { user: slow }
    pieceDelayMs: 150
    text: ["One ", "two ", "three ", "four ", "five ", "six ", "seven ", "eight."]
  - on: { user: forever }
    pieceDelayMs: 200
    text: ["It begins. ", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x", "x"]
  - on: { user: hang, step: 1 }
    calls: [{ tool: run, args: { command: "echo began >> began.txt; sleep 60" } }]
  - on: { user: hang, step: 2 }
    text: ["Nobody knows."]
  - on: {}
    text: ["Hello ", "there."]
`;

describe("a conversation", () => {
  it("streams, formats and shows what its tools did", async () => {
    const bench = chatBench(SCRIPT);
    await bench.serve();
    writeFileSync(join(bench.folder, "a.txt"), "what is in it\n");
    const terminal = await bench.chat();
    terminal.enter("look around");
    await answered(terminal, "one file");
    const { text } = terminal.screen;
    expect(text).toContain("› look around\n\nFirst I see what is there.\n\nLet me look.\n");
    expect(text).toContain("▸ list .\n  a.txt 14\n");
    expect(text).toContain("▸ read a.txt\n  what is in it\n");
    expect(text).toContain("\nFound\n\n• one file\n• a.txt\n");
    expect(terminal.raw).toContain("\u001b[1mone\u001b[22m");
    expect(terminal.raw).toContain("\u001b[2mFirst I see what is there.");
    terminal.enter("/usage");
    await terminal.sees(/1 turn of this chat +\d+ +\d+/);
    terminal.enter("/quit");
    expect(await terminal.ended).toBe(0);
    expect(terminal.screen.unknown).toEqual([]);
  });

  it("asks with one key before it writes or runs, and once for a tool that is allowed for the session", async () => {
    const bench = chatBench(SCRIPT);
    await bench.serve();
    const terminal = await bench.chat();
    terminal.enter("write it");
    await terminal.sees(/▸ write notes\.txt \(new, 8 bytes\)\n {2}\+ one\n {2}\+ two\n {2}allow it\? \[y\]es/);
    terminal.type("d");
    await terminal.sees(/(?: {2}\+ one\n {2}\+ two\n){2}/);
    expect(existsSync(join(bench.folder, "notes.txt"))).toBe(false);
    terminal.type("y");
    await answered(terminal, "Written\\.");
    expect(readFileSync(join(bench.folder, "notes.txt"), "utf8")).toBe("one\ntwo\n");
    terminal.enter("refuse it");
    await terminal.sees(/▸ write no\.txt[^]*\[y\]es/);
    terminal.type("n");
    await answered(terminal, "Then not\\.");
    expect(existsSync(join(bench.folder, "no.txt"))).toBe(false);
    terminal.enter("count");
    await terminal.sees(/▸ run echo ran[^]*\[y\]es/);
    terminal.type("a");
    await answered(terminal, "Counted\\.");
    terminal.enter("count again");
    await terminal.sees(/count again[^]*Counted\./);
    expect(readFileSync(join(bench.folder, "ran.txt"), "utf8")).toBe("ran\nran\n");
  });

  it("takes no word that is typed or pasted at a question for an answer", async () => {
    const bench = chatBench(SCRIPT);
    await bench.serve();
    const terminal = await bench.chat();
    terminal.enter("count");
    await terminal.sees(/▸ run echo ran[^]*\[y\]es/);
    for (const keys of ["break", "\u001b[200~a\u001b[201~"]) {
      const before = terminal.raw.length;
      terminal.type(keys);
      // The keys are shown anew once it is quiet.
      await expect.poll(() => terminal.raw.slice(before), { timeout: 10_000 }).toContain("[y]es");
    }
    terminal.type("n");
    await answered(terminal, "not allowed[^]*Counted\\.");
    expect(existsSync(join(bench.folder, "ran.txt"))).toBe(false);
  });

  it("asks once where the server's rules ask, too, and shows what it is about", async () => {
    const bench = chatBench(SCRIPT);
    const config = join(bench.folder, "..", "holdfast.json");
    const rule = { tool: "write", policy: "require_confirmation", reason: "files are looked at first" };
    writeFileSync(config, JSON.stringify({ environments: { careful: { permissions: [rule] } } }));
    await bench.serve(["--config", config]);
    const terminal = await bench.chat(["--environment", "careful"]);
    terminal.enter("write it");
    await terminal.sees(/▸ write notes\.txt \(new, 8 bytes\)\n {2}\+ one\n {2}\+ two\n {2}allow it\? \[y\]es/);
    terminal.type("y");
    await answered(terminal, "Written\\.");
    expect(times(terminal, "▸ write notes.txt")).toBe(1);
    expect(readFileSync(join(bench.folder, "notes.txt"), "utf8")).toBe("one\ntwo\n");
    terminal.enter("/tools");
    await terminal.sees(/write +require confirmation +files are looked at first/);
  });

  it("is cancelled by Ctrl-C, holds what is written meanwhile, and is left by another", async () => {
    const bench = chatBench(SCRIPT);
    await bench.serve();
    const terminal = await bench.chat();
    terminal.enter("forever");
    await terminal.sees("It begins.");
    terminal.enter("and this next");
    await terminal.sees("held until the turn is over: and this next");
    terminal.type(CTRL_C);
    await terminal.sees(/cancelled\n\n› and this next$/);
    terminal.type("\r");
    await answered(terminal, "Hello there\\.");
    terminal.type(CTRL_C);
    await terminal.sees("Ctrl-C once more leaves");
    terminal.type(CTRL_C);
    expect(await terminal.ended).toBe(0);
    expect(terminal.screen.text).toMatch(/come back with: holdfast chat --continue --server \S+$/);
  });

  it("ends the command that runs when its turn is cancelled", async () => {
    const bench = chatBench(SCRIPT);
    await bench.serve();
    const terminal = await bench.chat(["--allow", "run"]);
    terminal.enter("hang");
    await terminal.sees("running: run echo began");
    terminal.type(CTRL_C);
    await terminal.sees(/\n {2}cancelled\n/);
    terminal.enter("hello");
    await answered(terminal, "Hello there\\.");
  });

  it("takes several lines: pasted, after a backslash, after Alt-Enter", async () => {
    const bench = chatBench(SCRIPT);
    await bench.serve();
    const terminal = await bench.chat();
    terminal.type("\u001b[200~one\rtwo\u001b[201~\\\rthree\u001b\rfour\r");
    await answered(terminal, "Hello there\\.");
    expect(terminal.screen.text).toContain("› one\n  two\n  three\n  four\n");
  });

  it("goes back, forks and draws its family", async () => {
    const bench = chatBench(SCRIPT);
    await bench.serve();
    const terminal = await bench.chat();
    for (const [index, words] of ["first", "second", "third"].entries()) {
      terminal.enter(words);
      await answered(terminal, `(Hello there\\.[^]*){${index + 1}}`);
    }
    terminal.enter("/rewind 2");
    await terminal.sees("back to the end of turn 1");
    terminal.enter("other");
    await answered(terminal, "other[^]*Hello there\\.");
    terminal.enter("/fork 2");
    await terminal.sees("holdfast chat --session UID goes on in one");
    terminal.enter("/tree");
    const drawn = await terminal.sees(/└─ at \d+ {2}\S+ {2}completed {2}seq \d+ {2}\(here\)\n.*├─ at \d+.*\n.*└─ at \d+/);
    expect(drawn.split("\n").length).toBe(3);
    terminal.enter("/rewind 5");
    await terminal.sees("it goes 1 back at most");
    terminal.enter("/quit");
    await terminal.ended;
    const child = await bench.chat(["--continue"]);
    await child.sees(/› first[^]*› other/);
    expect(child.screen.text).not.toContain("third");
  });
});

describe("a session", () => {
  it("that a second chat goes on with is left by the first, which says why", async () => {
    const bench = chatBench(SCRIPT);
    await bench.serve();
    const first = await bench.chat();
    first.enter("hello");
    await answered(first, "Hello there\\.");
    const second = await bench.chat(["--continue"]);
    await first.sees("holdfast: session: another stream has taken it over");
    expect(await first.ended).toBe(4);
    second.enter("and now?");
    await answered(second, "and now\\?[^]*Hello there\\.");
  });

  it("goes on after a message that the server refuses", async () => {
    const bench = chatBench(SCRIPT);
    await bench.serve();
    const terminal = await bench.chat();
    terminal.enter("/mode ooda_re_act");
    terminal.enter("look");
    await answered(terminal, "ai_mode: must be react[^]*\\(invalid_argument\\)");
    terminal.enter("/mode react");
    terminal.enter("hello");
    await answered(terminal, "Hello there\\.");
  });

  it("is picked up when its server was shut down and started again", async () => {
    const bench = chatBench(SCRIPT);
    const server = await bench.serve();
    const terminal = await bench.chat();
    await server.end("SIGTERM");
    await terminal.sees("the server is gone; reconnecting");
    await bench.serve();
    await answered(terminal, "is there again");
    terminal.enter("hello");
    await answered(terminal, "Hello there\\.");
  });
});

describe("kill -9", () => {
  it("of the server in the middle of an answer: the chat reconnects, and the answer is whole, once", async () => {
    const bench = chatBench(SCRIPT);
    const server = await bench.serve();
    const terminal = await bench.chat();
    terminal.enter("slow");
    await terminal.sees("One two three");
    await server.end("SIGKILL");
    await terminal.sees("the server is gone; reconnecting");
    await bench.serve();
    await answered(terminal, "eight\\.");
    expect(terminal.screen.text).toContain("the connection was lost and is there again\n");
    expect(terminal.screen.text).toContain("\nOne two three four five six seven eight.\n");
    expect(times(terminal, "eight.")).toBe(1);
    terminal.enter("hello");
    await answered(terminal, "Hello there\\.");
  });

  it("of the server while a command runs: its result is given when the server is back, and it ran once", async () => {
    const bench = chatBench(SCRIPT.replace("echo counted", "sleep 1; echo counted"));
    const server = await bench.serve();
    const terminal = await bench.chat(["--allow", "run"]);
    terminal.enter("count");
    await expect.poll(() => existsSync(join(bench.folder, "ran.txt")), { timeout: 10_000 }).toBe(true);
    await server.end("SIGKILL");
    await terminal.sees("  counted\n");
    await bench.serve();
    await answered(terminal, "Counted\\.");
    expect(readFileSync(join(bench.folder, "ran.txt"), "utf8")).toBe("ran\n");
  });

  it("of the chat at a question: it is asked again, and what was allowed is done once", async () => {
    const bench = chatBench(SCRIPT);
    await bench.serve();
    const killed = await bench.chat();
    killed.enter("write it");
    await killed.sees("[y]es");
    await killed.kill();
    expect(existsSync(join(bench.folder, "notes.txt"))).toBe(false);
    const terminal = await bench.chat(["--continue"]);
    await terminal.sees(/› write it[^]*▸ write notes\.txt[^]*\[y\]es/);
    terminal.type("y");
    await answered(terminal, "Written\\.");
    expect(readFileSync(join(bench.folder, "notes.txt"), "utf8")).toBe("one\ntwo\n");
  });

  it("of the chat while a command runs: the command is not run again, and the agent is told that nobody knows", async () => {
    const bench = chatBench(SCRIPT);
    await bench.serve();
    const killed = await bench.chat(["--allow", "run"]);
    killed.enter("hang");
    await expect.poll(() => existsSync(join(bench.folder, "began.txt")), { timeout: 10_000 }).toBe(true);
    await killed.kill();
    const terminal = await bench.chat(["--continue"]);
    await terminal.sees(/unknown outcome: the client was killed while `run` ran/);
    await answered(terminal, "Nobody knows\\.");
    expect(readFileSync(join(bench.folder, "began.txt"), "utf8")).toBe("began\n");
  });

  it("of the chat in the middle of an answer: the rest is there when it comes back, and the answer is whole", async () => {
    const bench = chatBench(SCRIPT);
    await bench.serve();
    const killed = await bench.chat();
    killed.enter("slow");
    await killed.sees("One two");
    await killed.kill();
    const terminal = await bench.chat(["--continue"]);
    await answered(terminal, "› slow\n\nOne two three four five six seven eight\\.");
  });

  it("of the chat before its message was taken: the message is in the line again", async () => {
    const bench = chatBench(SCRIPT);
    const server = await bench.serve();
    const killed = await bench.chat();
    killed.enter("hello");
    await answered(killed, "Hello there\\.");
    await server.end("SIGKILL");
    await killed.sees("the server is gone");
    killed.enter("what was not sent");
    await killed.sees("› what was not sent\n");
    await killed.kill();
    await bench.serve();
    const terminal = await bench.chat(["--continue"]);
    await terminal.sees(/Hello there\.[^]*\n› what was not sent$/);
  });

  it("of both at once, where the server is in the chat's own process", async () => {
    const bench = chatBench(SCRIPT);
    const start = (args: readonly string[]): Promise<Terminal> =>
      bench.chat([...args, "--server", "embedded"], { HOLDFAST_MODEL: `script:${bench.script}` });
    const killed = await start([]);
    killed.enter("slow");
    await killed.sees("One two three");
    await killed.kill();
    const terminal = await start(["--continue"]);
    await answered(terminal, "› slow\n\nOne two three four five six seven eight\\.");
    terminal.enter("/quit");
    expect(await terminal.ended).toBe(0);
  });
});

describe("without a terminal", () => {
  it.each([
    [["--model", "gpt-x"], "holdfast: model: must be one that this server serves; others need their provider's key where it runs\n"],
    [["--environment", "none"], "holdfast: environment_id: must be an environment of this server, or empty; it has: default\n"],
  ])("a session that the server does not start is wrong usage, and said once: %j", async (args, stderr) => {
    const bench = chatBench(SCRIPT);
    const { url } = await bench.serve();
    const refused = await command(["chat", "--server", url, ...args], { cwd: bench.folder, env: bench.env, stdin: "hello\n" });
    expect([refused.exitCode, refused.stdout, refused.stderr]).toEqual([2, "", stderr]);
  });

  it("each line is a message, the answers alone go to standard output, and nothing is written that --allow does not name", async () => {
    const bench = chatBench(SCRIPT);
    const { url } = await bench.serve();
    const run = (args: readonly string[], stdin: string) =>
      command(["chat", "--server", url, ...args], { cwd: bench.folder, env: bench.env, stdin });
    const refused = await run([], "hello\nwrite it\n");
    expect([refused.exitCode, refused.stdout]).toEqual([0, "Hello there.\nWritten.\n"]);
    expect(refused.stderr).toContain(
      "nobody can be asked, so it is not allowed: write notes.txt (new, 8 bytes) (--allow write allows the tool)",
    );
    expect(existsSync(join(bench.folder, "notes.txt"))).toBe(false);
    const allowed = await run(["--continue", "--allow", "write"], "write it\n");
    expect([allowed.exitCode, allowed.stdout]).toEqual([0, "Written.\n"]);
    expect(readFileSync(join(bench.folder, "notes.txt"), "utf8")).toBe("one\ntwo\n");
  });

  it("says what is wrong before anything is sent", async () => {
    const bench = chatBench(SCRIPT);
    const { url } = await bench.serve();
    const run = async (...args: string[]) => {
      const { exitCode, stderr } = await command(["chat", ...args], { cwd: bench.folder, env: bench.env });
      return [exitCode, stderr.split("\n")[0]];
    };
    expect(await run("--server", url, "--continue")).toEqual([
      2,
      "holdfast: --continue: there was no chat in this folder yet; leave it out to begin one",
    ]);
    expect(await run("--server", url, "--allow", "all")).toEqual([
      2,
      expect.stringContaining("--allow: must be one of read, list, search, write, edit, run"),
    ]);
    expect((await run("--server", url, "--session", "nobody"))[0]).toBe(3);
    expect((await run("--server", url, "--environment", "nowhere"))[1]).toContain("environment_id");
    expect((await run("--server", "127.0.0.1:1"))[0]).toBe(5);
  });
});
