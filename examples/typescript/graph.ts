/** A graph of nodes over a state, in the manner of LangGraph: nodes change the state, edges say which node comes next. */

/** Where a run ends. */
export const END = Symbol("end");

/** A graph. Each edge looks at the state and names the next node. */
export interface Graph<State, Name extends string> {
  readonly entry: Name;
  readonly nodes: Readonly<Record<Name, (state: State) => Promise<State>>>;
  readonly edges: Readonly<Record<Name, (state: State) => Name | typeof END>>;
}

/** Runs a graph from its entry to its end; throws after `stepsMax` nodes. */
export async function runGraph<State, Name extends string>(graph: Graph<State, Name>, state: State, stepsMax = 25): Promise<State> {
  let name: Name | typeof END = graph.entry;
  let current = state;
  for (let step = 0; name !== END; step++) {
    if (step >= stepsMax) throw new Error(`the graph has not ended after ${stepsMax} steps`);
    current = await graph.nodes[name](current);
    name = graph.edges[name](current);
  }
  return current;
}
