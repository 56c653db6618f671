import { describe, expect, it } from "vitest";
import { SILENT_LOG } from "../base/index.ts";
import { createClient, type Client } from "../client/index.ts";
import { createNodeTransport } from "../client/node/index.ts";
import { createScriptedModel } from "../models/index.ts";
import { systemClock } from "../node/index.ts";
import type { Authorizer } from "../spi/index.ts";
import { storyOf } from "../testing/index.ts";
import { createFunctionTools, startServer, type RunningServer } from "./index.ts";

const SCRIPT = `
completions:
  - on: { step: 1 }
    calls: [{ tool: look, args: {} }]
  - on: { user: north }
    text: Only the north, then.
  - text: I have seen it all.
`;

interface Watched {
  readonly server: RunningServer;
  readonly client: Client;
  readonly uid: string;
  /** Lets the tool end once a message has come to the turn. */
  readonly letGo: () => Promise<void>;
}

/** What the work of a test says of who may speak. */
interface Door {
  isClosed: boolean;
}

/** A server with an agent that takes messages, whose tool waits until a test lets it go; the turn's story. */
async function watching(work: (watched: Watched, door: Door) => Promise<void>): Promise<readonly string[]> {
  const looking = Promise.withResolvers<void>();
  const over = Promise.withResolvers<void>();
  const arrived = Promise.withResolvers<void>();
  const door: Door = { isClosed: false };
  const look = {
    description: "looks",
    run: async () => {
      looking.resolve();
      await over.promise;
    },
  };
  let execs = 0;
  const authorizer: Authorizer = {
    authorize: async (_caller, action) => {
      if (action !== "session.exec") return { kind: "allowed" };
      execs += 1;
      // The first is the turn's own.
      if (execs > 1) arrived.resolve();
      return door.isClosed ? { kind: "denied", reason: "not you" } : { kind: "allowed" };
    },
  };
  await using server = await startServer(
    {
      store: { kind: "memory" },
      listen: { host: "127.0.0.1", port: 0 },
      registry: { listen: "off", token: undefined },
      agents: { scout: { model: "scripted", tools: { free: ["*"] }, steering: true } },
    },
    {
      log: SILENT_LOG,
      tools: createFunctionTools({ look }),
      models: [{ match: "scripted", provider: createScriptedModel(SCRIPT, { clock: systemClock }) }],
      authorizer,
    },
  );
  await using client = createClient({ transport: createNodeTransport({ address: server.url }) });
  const { metadata } = await client.sessions.create({ harness: "scout" });
  const uid = metadata!.uid;
  const story: string[] = [];
  const turn = (async () => {
    for await (const item of client.session(uid).exec({ inputs: "look around" })) {
      if (item.kind === "record" && item.record.event !== undefined) story.push(storyOf(item.record.event));
    }
  })();
  const letGo = async (): Promise<void> => {
    await arrived.promise;
    // What follows from being let in needs no more than the microtasks of one turn of the event loop.
    await new Promise((resolve) => setImmediate(resolve));
    over.resolve();
  };
  try {
    await looking.promise;
    await work({ server, client, uid, letGo }, door);
  } finally {
    over.resolve();
    await turn;
  }
  return story;
}

describe("a message for a running turn", () => {
  it("is taken into it over gRPC, and its sender is told where it stands", async () => {
    const story = await watching(async ({ client, uid, letGo }) => {
      const sent = client.session(uid).steer("only the north side");
      await letGo();
      const { executionId, seq } = await sent;
      const [record] = await Array.fromAsync(client.session(uid).replay({ fromSeq: seq, toSeq: seq }));
      expect(record?.record.event).toMatchObject({
        executionId,
        body: { value: { content: [{ part: { value: { text: "only the north side" } } }] } },
      });
    });
    expect(story).toContain("OUTPUT Only the north, then.");
    expect(story.at(-1)).toBe("END COMPLETED");
  });

  it("is taken into it over REST", async () => {
    await watching(async ({ server, uid, letGo }) => {
      const body = JSON.stringify({ message: { role: "user", parts: [{ text: { text: "north!" } }] } });
      const sent = fetch(`${server.url}/v1/sessions/${uid}/steer`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body,
      });
      await letGo();
      const answer = await sent;
      expect(answer.status).toBe(200);
      expect(await answer.json()).toEqual({ execution_id: expect.any(String) as string, seq: expect.stringMatching(/^\d+$/) as string });
    });
  });

  it("is refused by what is wrong with it, and where no turn runs", async () => {
    await watching(async ({ client, uid }) => {
      const fault = (session: string, text: Parameters<Client["turns"]["steer"]>[1]) =>
        client.turns.steer(session, text).then(
          () => "taken",
          (error: unknown) => (error instanceof Error ? error.message : "?"),
        );
      expect(await fault("nobody", "x")).toBe("session: no session has this uid");
      expect(await fault(uid, { role: "system", parts: [] })).toBe("message.role: must be user");
      const { metadata } = await client.sessions.create();
      expect(await fault(metadata!.uid, "x")).toBe("session: no turn of it runs on this host; give the message to a turn as its input");
    });
  });

  it("is for whoever may start a turn of the session", async () => {
    await watching(async ({ client, uid }, door) => {
      door.isClosed = true;
      await expect(client.turns.steer(uid, "x")).rejects.toThrow("not you");
    });
  });
});
