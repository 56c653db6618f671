import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemClock as clock } from "../../node/index.ts";
import { dialHarness } from "../../harness-wire/node/index.ts";
import { HostServices } from "./host-services.ts";
import { openGrpcLine } from "./lines.ts";
import { inputHistory, outcomeOf, ProbeSink, probeStart } from "./probe-host.ts";
import { probeHarness } from "./probe-harness.ts";
import { wireCases } from "./wire-conformance.ts";

/** A harness that is driven over the contract's own Connect, and pulls its history and its tokens from the host's services. */
describe("a harness over the contract, with services of the host", () => {
  let services: HostServices;
  beforeAll(async () => {
    services = await new HostServices().listen();
  });
  afterAll(() => services[Symbol.asyncDispose]());

  const connect = () => openGrpcLine(probeHarness(), { clock, over: "unix", wire: false, grant: services.grant });
  it.each(wireCases({ connect, without: ["an effect that is refused, and caught", "a report of a call that the host refused"] }))(
    "$name",
    ({ run }) => run(),
  );

  it("pulls: the start holds no history, however long it is", async () => {
    await using line = await connect();
    const sink = new ProbeSink();
    const start = probeStart("a part of the history", { history: inputHistory(100_000, 512, 200) });
    await line.remote.run(start, sink, { signal: new AbortController().signal });
    expect(sink.asked).toMatchObject([expect.stringMatching(/^output 3:1:event 3 x+ 4:1:event 4 x+ 5:1:event 5 x+$/)]);
  });

  it("loses its credential with its execution", async () => {
    await using line = await connect();
    await line.remote.run(probeStart("nothing at all"), new ProbeSink(), { signal: new AbortController().signal });
    expect(services.open).toBe(0);
    const expired = () => ({ ...services.grant(probeStart("")), credential: "another's" });
    await using other = await openGrpcLine(probeHarness(), { clock, over: "unix", wire: false, grant: expired });
    const outcome = await other.remote
      .run(probeStart("the whole history"), new ProbeSink(), { signal: new AbortController().signal })
      .catch(outcomeOf);
    expect(outcome).toBe("threw unauthenticated authorization: must be the credential of an execution that runs");
  });
});

describe("an address where nobody serves a harness", () => {
  it.each(["unix:///nowhere/at/all.sock", "127.0.0.1:1"])("is UNAVAILABLE: %s", async (address) => {
    await expect(dialHarness(address, { timeoutMs: 2_000 })).rejects.toMatchObject({ code: "unavailable" });
  });

  it.each(["", "harness", "http://x:1", "unix://relative", "x:99999"])("is refused where it is no address: %s", async (address) => {
    await expect(dialHarness(address)).rejects.toMatchObject({ code: "invalid_argument", field: "address" });
  });

  it("that goes away interrupts what runs there, at once", async () => {
    const line = await openGrpcLine(probeHarness(), { clock, over: "tcp", wire: false });
    const running = line.remote.run(probeStart("a wait"), new ProbeSink(), { signal: new AbortController().signal }).catch(outcomeOf);
    await line.remote.run(probeStart("nothing at all"), new ProbeSink(), { signal: new AbortController().signal });
    await line[Symbol.asyncDispose]();
    expect(await running).toMatch(/^threw unavailable/);
  });
});
