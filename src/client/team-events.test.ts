import { create, type DescMessage, type MessageShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { HoldfastError } from "../base/errors.ts";
import { TeamEventSchema, type TeamEvent } from "../gen/roz/v1/agent_pb.ts";
import { SeededRandom } from "../testing/ports.ts";
import { RecordingClock } from "../testing/recording-clock.ts";
import { createClient, type Method, type Transport } from "./index.ts";

const LOST = new HoldfastError("unavailable", "cut");

const calls = (workerId: string, tool: string): TeamEvent =>
  create(TeamEventSchema, { event: { case: "workerToolCall", value: { workerId, tool } } });

/** A transport of which each stream tells what its turn has, and then breaks or ends. */
function telling(...streams: readonly (readonly (TeamEvent | HoldfastError)[])[]): Transport {
  const rest = [...streams];
  const refuse = (): never => {
    throw new HoldfastError("unimplemented", "not in this test");
  };
  return {
    ports: { clock: new RecordingClock(), random: new SeededRandom(1) },
    unary: refuse,
    upload: refuse,
    streamBytes: refuse,
    async *stream<Input extends DescMessage, Output extends DescMessage>(
      method: Method<Input, Output>,
    ): AsyncGenerator<MessageShape<Output>> {
      expect(method.name).toBe("WatchTeam");
      for (const frame of rest.shift() ?? [new HoldfastError("not_found", "task: there is no such task")]) {
        if (frame instanceof HoldfastError) throw frame;
        const told: unknown = frame;
        yield told as MessageShape<Output>;
      }
    },
    [Symbol.asyncDispose]: async () => undefined,
  };
}

describe("watching a team", () => {
  it("goes on after a lost connection, each worker's events once, however the workers are interleaved", async () => {
    const first = [calls("a", "1"), calls("b", "1"), calls("a", "2"), LOST];
    const second = [calls("a", "1"), calls("a", "2"), calls("a", "3"), LOST];
    const third = [calls("b", "1"), calls("b", "2"), calls("a", "1"), calls("a", "2"), calls("a", "3"), calls("a", "4")];
    const client = createClient({ transport: telling(first, second, third) });
    const told = (await Array.fromAsync(client.agent.watchTeam("t"))).map(({ event }) =>
      event.case === "workerToolCall" ? event.value.workerId + event.value.tool : "",
    );
    expect(told).toEqual(["a1", "b1", "a2", "a3", "b2", "a4"]);
  });

  it("rejects with what the server says of a task that there is not", async () => {
    const client = createClient({ transport: telling() });
    await expect(Array.fromAsync(client.agent.watchTeam("t"))).rejects.toMatchObject({ code: "not_found" });
  });

  it("has conversations only where the transport has streams in both directions", () => {
    const client = createClient({ transport: telling() });
    expect(() => client.agent.stream()).toThrow(expect.objectContaining({ code: "unimplemented" }));
  });
});
