/**
 * The conformance of a line to a harness: whatever its harness does, it has the effects and the outcome that it has in process. Lines are
 * given by who opens them; the peer serves the probe harness.
 */

import { HoldfastError } from "../../base/index.ts";
import type { LineHarness } from "../../harness-wire/index.ts";
import type { Start } from "../../spi/index.ts";
import { inputHistory, outcomeOf, playOnce, ProbeSink, probeStart } from "./probe-host.ts";
import { PLAYS, probeHarness } from "./probe-harness.ts";

/** A line under test. */
export interface WireUnderTest {
  /** Opens a line to a peer that serves the probe harness; disposing of it ends both. */
  readonly connect: () => Promise<{ readonly remote: LineHarness } & AsyncDisposable>;
  /** What the line cannot carry: plays of these names are left out. */
  readonly without?: readonly string[] | undefined;
}

/** One case; it rejects where the line does not keep its promise. */
export interface WireCase {
  readonly name: string;
  readonly run: () => Promise<void>;
}

const never = new AbortController().signal;
/** Plays that go on until they are cancelled. */
const WAITS: readonly string[] = ["a wait", "a wait that hears nothing"];

/** The cases for a test runner: `it.each(wireCases(line))("$name", ({ run }) => run())`. */
export function wireCases(line: WireUnderTest): readonly WireCase[] {
  const plays = Object.keys(PLAYS).filter((name) => !WAITS.includes(name) && line.without?.includes(name) !== true);
  return [
    ...plays.map((play) => ({ name: `is as in process: ${play}`, run: () => isAsInProcess(line, probeStart(play)) })),
    {
      name: "is as in process: a turn without inputs, identity and history",
      run: () => isAsInProcess(line, probeStart("what it was given", { inputs: [], identity: {}, history: inputHistory(0), model: "" })),
    },
    { name: "describes the harness", run: () => describes(line) },
    { name: "drives many executions at once, each by its own frames", run: () => manyAtOnce(line) },
    { name: "drives one execution after the other", run: () => oneAfterTheOther(line) },
    { name: "tells a harness to stop, and rejects with the signal's reason", run: () => cancels(line) },
    { name: "refuses what is cancelled before it begins", run: () => refusesCancelled(line) },
  ];
}

async function isAsInProcess(line: WireUnderTest, start: Start): Promise<void> {
  const expected = await playOnce(probeHarness(), start, never);
  await using under = await line.connect();
  const seen = await playOnce(under.remote, start, never);
  expectSame(seen, expected);
}

async function describes(line: WireUnderTest): Promise<void> {
  await using under = await line.connect();
  const { id, version, tools, capabilities } = await under.remote.describe();
  const own = await probeHarness().describe();
  expectSame([id, version, tools.map(({ name }) => name), capabilities?.forkSafe], ["probe", "1", own.tools.map(({ name }) => name), true]);
}

async function manyAtOnce(line: WireUnderTest): Promise<void> {
  await using under = await line.connect();
  const plays = Object.keys(PLAYS).filter((name) => !WAITS.includes(name) && line.without?.includes(name) !== true);
  const starts = plays.map((play, index) => probeStart(play, { sessionUid: `session-${index}` as Start["sessionUid"] }));
  const expected = await Promise.all(starts.map((start) => playOnce(probeHarness(), start, never)));
  const seen = await Promise.all(starts.map((start) => playOnce(under.remote, start, never)));
  expectSame(seen, expected);
}

async function oneAfterTheOther(line: WireUnderTest): Promise<void> {
  await using under = await line.connect();
  for (let turn = 0; turn < 20; turn++) {
    const { outcome } = await playOnce(under.remote, probeStart("a model call and its usage"), never);
    expectSame(outcome, "completed");
  }
  expectSame(under.remote.openExchanges, 0);
}

async function cancels(line: WireUnderTest): Promise<void> {
  await using under = await line.connect();
  const turn = new AbortController();
  const running = under.remote.run(probeStart("a wait"), new ProbeSink(), { signal: turn.signal });
  const outcome = running.then(() => "completed", outcomeOf);
  // Another execution on the line has run whole, so the first one has begun.
  await under.remote.run(probeStart("nothing at all"), new ProbeSink(), { signal: never });
  turn.abort(new HoldfastError("cancelled", "turn: it was cancelled (USER)"));
  expectSame(await outcome, "threw cancelled turn: it was cancelled (USER)");
  expectSame((await playOnce(under.remote, probeStart("nothing at all"), never)).outcome, "completed");
}

async function refusesCancelled(line: WireUnderTest): Promise<void> {
  await using under = await line.connect();
  const gone = AbortSignal.abort(new HoldfastError("cancelled", "turn: it was cancelled (TIMEOUT)"));
  const { asked, outcome } = await playOnce(under.remote, probeStart("nothing at all"), gone);
  expectSame([asked, outcome], [[], "threw cancelled turn: it was cancelled (TIMEOUT)"]);
}

function expectSame(seen: unknown, expected: unknown): void {
  const [one, other] = [JSON.stringify(seen, undefined, 1), JSON.stringify(expected, undefined, 1)];
  if (one !== other) throw new Error(`expected ${other}\nbut found ${one}`);
}
