/** What a journal, as `holdfast replay --json` prints it, says about the calls in it. */

interface RecordLine {
  readonly event?: {
    readonly kind?: string;
    readonly tool?: { readonly id?: string; readonly tool?: string };
    readonly approval?: { readonly tool_call_id?: string };
    readonly approval_result?: { readonly tool_call_id?: string; readonly approved?: boolean };
    readonly result?: { readonly id?: string };
  };
}

/** A call that a person was asked about, and how often the journal has what belongs to it. */
export interface GatedCall {
  readonly id: string;
  readonly tool: string;
  readonly calls: number;
  readonly decisions: number;
  readonly results: number;
  readonly approved: boolean;
}

/** The calls that were asked about, in order. */
export function gatedCallsIn(journal: string): readonly GatedCall[] {
  const events = eventsIn(journal);
  const asked = new Set(events.flatMap(({ approval }) => approval?.tool_call_id ?? []));
  return [...asked].map((id) => {
    const calls = events.flatMap(({ tool }) => (tool?.id === id ? [tool] : []));
    const decisions = events.flatMap(({ approval_result: decision }) => (decision?.tool_call_id === id ? [decision] : []));
    return {
      id,
      tool: calls[0]?.tool ?? "",
      calls: calls.length,
      decisions: decisions.length,
      results: events.filter(({ result }) => result?.id === id).length,
      approved: decisions.some(({ approved }) => approved === true),
    };
  });
}

/** The tools that ran without asking, each with how often. */
export function effectsIn(journal: string): readonly string[] {
  const events = eventsIn(journal);
  const asked = new Set(events.flatMap(({ approval }) => approval?.tool_call_id ?? []));
  const counts = new Map<string, number>();
  for (const { tool } of events) {
    if (tool?.tool === undefined || asked.has(tool.id ?? "")) continue;
    counts.set(tool.tool, (counts.get(tool.tool) ?? 0) + 1);
  }
  return [...counts].map(([tool, count]) => `${tool} ${count} ×`);
}

function eventsIn(journal: string): readonly NonNullable<RecordLine["event"]>[] {
  const lines = journal.split("\n").filter((line) => line !== "");
  return lines.flatMap((line) => (JSON.parse(line) as RecordLine).event ?? []);
}
