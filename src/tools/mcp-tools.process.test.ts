import { spawn, type ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { create } from "@bufbuild/protobuf";
import { afterEach, describe, expect, it } from "vitest";
import type { Log, SessionUid } from "../base/index.ts";
import { ToolCallSchema } from "../gen/agentsessions/v1/common_pb.ts";
import { systemClock } from "../node/index.ts";
import { isUnknownOutcome, type ToolCall, type ToolResult, type ToolRun } from "../spi/index.ts";
import { createMemoryBlobStore } from "../stores/blobs/index.ts";
import { openMcpTools, type HttpReach, type McpServerOptions, type McpTools, type StdioReach } from "./index.ts";

const ODD = fileURLToPath(new URL("../testing/mcp-programs/odd-server.ts", import.meta.url));
const RUN = { session: "s1" as SessionUid, signal: new AbortController().signal };

interface Line {
  readonly level: string;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** A log that can be waited on. */
class WatchedLog implements Log {
  readonly lines: Line[] = [];
  #waiting: (() => void)[] = [];

  log(level: string, message: string, fields: Readonly<Record<string, unknown>> = {}): void {
    this.lines.push({ level, message, fields });
    for (const wake of this.#waiting.splice(0)) wake();
  }

  async until(message: string, count = 1): Promise<Line> {
    for (;;) {
      const found = this.lines.filter((line) => line.message === message);
      if (found.length >= count) return found[count - 1]!;
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }
}

const opened: AsyncDisposable[] = [];
const children: ChildProcess[] = [];
afterEach(async () => {
  for (const each of opened.splice(0)) await each[Symbol.asyncDispose]();
  for (const child of children.splice(0)) child.kill("SIGKILL");
});

const stdio = (...args: string[]): StdioReach => ({
  kind: "stdio",
  command: [process.execPath, ODD, ...args],
  cwd: process.cwd(),
  env: {},
});
const blobs = createMemoryBlobStore({ clock: systemClock });

async function open(options: McpServerOptions, log: Log = new WatchedLog()): Promise<McpTools> {
  const tools = await openMcpTools({ servers: { odd: options }, clock: systemClock, log, version: "0" });
  opened.push(tools);
  return tools;
}

/** The odd server over HTTP; it listens on a free port, or on `port`. */
async function listening(port = "0"): Promise<{ readonly reach: HttpReach; readonly child: ChildProcess; readonly port: string }> {
  const child = spawn(process.execPath, [ODD, "--http", "--port", port], { stdio: ["ignore", "pipe", "inherit"] });
  children.push(child);
  const bound = await new Promise<string>((resolve) => createInterface({ input: child.stdout }).once("line", resolve));
  return {
    reach: { kind: "http", url: `http://127.0.0.1:${bound}/mcp`, headers: { authorization: "Bearer odd" } },
    child,
    port: bound,
  };
}

const call = (tool: string, args: ToolCall["args"] = {}, key = "k1"): ToolCall =>
  create(ToolCallSchema, { id: "c1", tool: `odd__${tool}`, args: args ?? {}, idempotencyKey: key });
const textOf = ({ content }: ToolResult): string =>
  content.map(({ part }) => (part.case === "text" ? part.value.text : `<${part.case}>`)).join("|");
const run = (tools: McpTools, tool: string, args?: ToolCall["args"], more: Partial<ToolRun> = {}) =>
  tools.execute(call(tool, args), { ...RUN, blobs, ...more });

describe.each([
  ["a child process", async () => stdio()],
  ["streamable HTTP", async () => (await listening()).reach],
] as [string, () => Promise<StdioReach | HttpReach>][])("a server over %s", (_kind, reach) => {
  it("lists its tools by the host's names, in order, without those that cannot be offered", async () => {
    const log = new WatchedLog();
    const tools = await open({ reach: await reach() }, log);
    const names = tools.list().map(({ definition }) => definition.name);
    expect(names).toContain("odd__echo");
    expect(names).toEqual(names.toSorted());
    expect(names.filter((name) => name.startsWith("odd___n_"))).toEqual([expect.stringMatching(/^odd___n_code_name__[0-9a-f]{8}$/)]);
    expect(names.every((name) => /^[A-Za-z0-9_-]{1,64}$/.test(name))).toBe(true);
    expect(tools.find("odd__huge")?.definition).toMatchObject({
      description: "does huge",
      inputSchema: { properties: { bytes: { type: "integer", minimum: 1 } }, additionalProperties: false },
    });
    expect(tools.find("odd__deep")).toBeUndefined();
    expect(log.lines).toContainEqual(
      expect.objectContaining({ message: "mcp: tools are left out", fields: expect.objectContaining({ count: 4 }) }),
    );
  });

  it("runs a call whose arguments fit, and tells it what names the effect", async () => {
    const tools = await open({ reach: await reach() });
    expect(tools.check(call("huge", { bytes: 0 }))).toBe("do not fit the tool's schema: bytes must be >= 1");
    expect(tools.check(call("huge", { bytes: 1 }))).toBeUndefined();
    const result = await run(tools, "echo", { text: "hällo" });
    expect(result).toMatchObject({ id: "c1", isError: false });
    expect(textOf(result)).toBe('{"text":"hällo"}');
    const keyOf = async (key: string, session = "s1") =>
      textOf(await tools.execute(call("meta", {}, key), { ...RUN, session: session as SessionUid }));
    const first = await keyOf("k1");
    expect(first).toMatch(/"holdfast\/idempotency-key":"[0-9a-f]{64}"/);
    expect(await keyOf("k1")).toBe(first);
    expect(await keyOf("k2")).not.toBe(first);
    expect(await keyOf("k1", "s2")).not.toBe(first);
  });

  it("maps every kind of content", async () => {
    const tools = await open({ reach: await reach() });
    const { content } = await run(tools, "parts");
    expect(
      content.map(({ part }) => (part.case === "file" ? [part.value.mime, part.value.name, part.value.source.case] : part.value)),
    ).toMatchObject([
      { text: "a lone \ufffd surrogate" },
      ["image/png", "", "bytes"],
      ["audio/wav", "", "bytes"],
      { text: "[resource file:///a.txt]" },
      { text: "the text" },
      ["image/png", "file:///a.png", "bytes"],
      { text: "[link to the resource x (text/html) at https://example.com/x: about x]" },
    ]);
    // The text that repeats the structure is not told twice.
    expect(await run(tools, "structured")).toMatchObject({ output: { a: 2, b: [1] }, content: [] });
  });

  it("hands on the failures of a tool and the refusals of its server, in their words", async () => {
    const tools = await open({ reach: await reach() });
    expect(await run(tools, "fails")).toMatchObject({ isError: true, error: "it cannot be done" });
    const refused = await run(tools, "refuses");
    expect(refused.isError).toBe(true);
    expect(refused.error).toContain("not like this");
    expect(isUnknownOutcome(refused)).toBe(false);
  });

  it("keeps a large output by its digest and cuts it here", async () => {
    const tools = await open({ reach: await reach(), outputBytesMax: 1_000 });
    const result = await run(tools, "huge", { bytes: 3_000_000 });
    expect(textOf(result)).toContain(`${"x".repeat(1_000)}|[the tool's output takes 3000000 bytes and was cut; the whole is kept as blob:`);
    const whole = await blobs.get({ uri: result.outputUri, digest: result.outputDigest });
    expect(JSON.parse(new TextDecoder().decode(whole))).toMatchObject({ content: [{ type: "text", text: "x".repeat(3_000_000) }] });
  });

  it("passes over garbage and a second answer", async () => {
    const tools = await open({ reach: await reach() });
    expect(textOf(await run(tools, "twice"))).toBe("one");
    expect(textOf(await run(tools, "garbage"))).toBe("after the garbage");
    expect(textOf(await run(tools, "echo"))).toBe("{}");
  });

  it("hands on progress, and a cancellation to the server", async () => {
    const tools = await open({ reach: await reach() });
    const progress: string[] = [];
    await run(tools, "progress", {}, { progress: (detail) => void progress.push(detail) });
    expect(progress).toEqual(["1/2 half"]);
    const cancel = new AbortController();
    const hanging = run(tools, "hang", {}, { signal: cancel.signal });
    // The server has the call once it has answered a later one.
    await run(tools, "echo");
    cancel.abort();
    expect(isUnknownOutcome(await hanging)).toBe(true);
    expect(textOf(await run(tools, "cancelled"))).toBe("1");
    const before = run(tools, "effect", {}, { signal: AbortSignal.abort() });
    await expect(before).rejects.toMatchObject({ code: "unavailable", message: expect.stringContaining("was not made") });
    expect(textOf(await run(tools, "effect"))).toBe("1");
  });

  it("calls the outcome unknown where the tool may have run, and a failure where it is idempotent or was never reached", async () => {
    const tools = await open({ reach: await reach(), timeoutMs: 400, idempotent: ["hang"] });
    await expect(run(tools, "hang")).rejects.toMatchObject({ code: "unavailable", message: expect.stringContaining("within 400 ms") });
    const late = await run(tools, "hint");
    expect(isUnknownOutcome(late)).toBe(true);
    expect(late.error).toContain("did not answer within 400 ms");
    expect(isUnknownOutcome(await run(tools, "no_result"))).toBe(true);
  });

  it("lists its tools again when they change, once for five hundred notices", async () => {
    const log = new WatchedLog();
    const tools = await open({ reach: await reach() }, log);
    expect(tools.find("odd__late")).toBeUndefined();
    const before = log.lines.length;
    await run(tools, "change");
    await log.until("mcp: tools are left out", 2);
    expect(tools.find("odd__late")).toBeDefined();
    expect(log.lines.slice(before).filter(({ message }) => message === "mcp: tools are left out")).toHaveLength(1);
  });
});

describe("a server in a child process", () => {
  it("that dies in a call leaves the outcome unknown, and is there again for the next one", async () => {
    const log = new WatchedLog();
    const tools = await open({ reach: stdio() }, log);
    const first = textOf(await run(tools, "pid"));
    const died = await run(tools, "effect_then_die");
    expect(isUnknownOutcome(died)).toBe(true);
    expect(died.error).toContain("the connection to its MCP server broke while the tool ran");
    expect(tools.find("odd__pid")).toBeDefined();
    expect(textOf(await run(tools, "pid"))).not.toBe(first);
    expect((await log.until("mcp: a server is away")).fields["server"]).toBe("odd");
  });

  it("that floods, or sends one endless message, is let go", async () => {
    const log = new WatchedLog();
    const tools = await open({ reach: stdio() }, log);
    expect(isUnknownOutcome(await run(tools, "flood"))).toBe(true);
    expect((await log.until("mcp: a server is away")).fields["reason"]).toBe("it sends too many messages");
    expect(isUnknownOutcome(await run(tools, "endless"))).toBe(true);
    expect(textOf(await run(tools, "echo"))).toBe("{}");
  });

  it("that cannot start takes nothing down, and the log says what it last said", async () => {
    const log = new WatchedLog();
    const tools = await open({ reach: stdio("--refuse") }, log);
    expect(tools.list()).toEqual([]);
    expect((await log.until("mcp: a server is away")).fields["reason"]).toContain("there is no configuration");
    await log.until("mcp: a server is away", 2);
    const none = await open({ reach: { ...stdio(), command: ["no-such-program-at-all"] } });
    expect(none.list()).toEqual([]);
  });

  it("gets the variables that it is given and no secret of the host's", async () => {
    process.env["HOLDFAST_TEST_SECRET"] = "hidden";
    try {
      const tools = await open({ reach: { ...stdio(), env: { GIVEN: "yes" } } });
      const env = JSON.parse(textOf(await run(tools, "env"))) as Record<string, string>;
      expect(env).toMatchObject({ GIVEN: "yes", PATH: process.env["PATH"] });
      expect(env["HOLDFAST_TEST_SECRET"]).toBeUndefined();
    } finally {
      delete process.env["HOLDFAST_TEST_SECRET"];
    }
  });

  it("ends with its executor, with all that it started", async () => {
    const tools = await open({ reach: { ...stdio(), command: ["/bin/sh", "-c", `"${process.execPath}" "${ODD}"; true`] } });
    const pid = Number(textOf(await run(tools, "pid")));
    await opened.pop()?.[Symbol.asyncDispose]();
    expect(() => process.kill(pid, 0)).toThrow("ESRCH");
    await expect(run(tools, "echo")).rejects.toMatchObject({ code: "unavailable" });
  });

  it("may list ten thousand tools: the first are offered, or those that the configuration names", async () => {
    const log = new WatchedLog();
    const tools = await open({ reach: stdio("--tools", "10000") }, log);
    expect(tools.list()).toHaveLength(512);
    const some = await open({ reach: stdio("--tools", "10000"), allow: ["extra_9999", "echo", "absent"] });
    expect(some.list().map(({ definition }) => definition.name)).toEqual(["odd__echo", "odd__extra_9999"]);
  });

  it("is believed about idempotent tools only where the configuration says so", async () => {
    const of = async (options: Omit<McpServerOptions, "reach">) => {
      const tools = await open({ reach: stdio(), ...options });
      return ["hint", "effect"].map((name) => tools.find(`odd__${name}`)?.idempotent);
    };
    expect(await of({})).toEqual([false, false]);
    expect(await of({ trustHints: true })).toEqual([true, false]);
    expect(await of({ idempotent: ["effect"] })).toEqual([false, true]);
  });
});

describe("a server over HTTP", () => {
  it("that knows the session no longer is connected again, and the call is made once", async () => {
    const tools = await open({ reach: (await listening()).reach });
    await run(tools, "forget");
    expect(textOf(await run(tools, "effect"))).toBe("1");
    expect(textOf(await run(tools, "effect"))).toBe("2");
  });

  it("that dies in a call leaves the outcome unknown; one that is away is waited for", async () => {
    const { reach, port } = await listening();
    const log = new WatchedLog();
    const tools = await open({ reach, timeoutMs: 20_000 }, log);
    expect(isUnknownOutcome(await run(tools, "effect_then_die"))).toBe(true);
    await log.until("mcp: a server is away");
    const waiting = run(tools, "effect");
    await log.until("mcp: a server is away", 2);
    await listening(port);
    expect(textOf(await waiting)).toBe("1");
  });

  it("is not had with wrong credentials", async () => {
    const { reach } = await listening();
    const log = new WatchedLog();
    const tools = await open({ reach: { ...reach, headers: {} } }, log);
    expect(tools.list()).toEqual([]);
    expect(log.lines.filter(({ message }) => message === "mcp: a server is here")).toEqual([]);
  });
});

it("a server's name must be one", async () => {
  const named = (name: string) =>
    openMcpTools({ servers: { [name]: { reach: stdio() } }, clock: systemClock, log: new WatchedLog(), version: "0" });
  for (const name of ["a__b", "", "_a", "a_", "a b", "a".repeat(33)])
    await expect(named(name)).rejects.toMatchObject({ code: "invalid_argument" });
});
