"""A graph of nodes, edges and a state, as LangGraph users know it: model -> tools -> model, until the model calls no tool.

The engine is the fifty lines below; any other fits as well, as long as its nodes reach models and tools through the sink. Each node
takes the state and returns what it changes. Run again with the same start and the same answers, the graph takes the same way: that
is what lets the host resume a turn that was killed at any point, and replay it without a model.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from holdfast_harness import (
    Conversation,
    Harness,
    HarnessFailure,
    Mediation,
    Message,
    Sink,
    Start,
    ToolCall,
    ToolResult,
    ToolSpec,
    dict_of,
    serve,
    struct_of,
    text_message,
    tool_calls,
    tool_definition,
    tool_message,
)

S = TypeVar("S")
Node = Callable[[S], Awaitable[S]]
END = "end"


class Graph:
    """Nodes by name, and after each node an edge, or a choice of one."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node[Any]] = {}
        self._edges: dict[str, Callable[[Any], str]] = {}

    def node(self, name: str, node: Node[Any]) -> None:
        self._nodes[name] = node

    def edge(self, source: str, target: str | Callable[[Any], str]) -> None:
        self._edges[source] = target if callable(target) else lambda _: target

    async def run(self, first: str, state: S, *, steps_max: int) -> S:
        """Goes from node to node until END. A graph that does not get there fails for good."""
        name = first
        for _ in range(steps_max):
            state = await self._nodes[name](state)
            name = self._edges[name](state)
            if name == END:
                return state
        raise HarnessFailure("resource_exhausted", f"graph: it took {steps_max} steps without an end")


@dataclass(frozen=True)
class State:
    messages: list[Message] = field(default_factory=list)


# `weather` is run by the host, `send` by the host once a person has approved it, `add` by the harness itself.
TOOLS = [
    ToolSpec(name="weather", description="The weather of a city.", mediation=Mediation.MEDIATION_CONTROLLER_MEDIATED),
    ToolSpec(name="send", description="Sends a mail.", mediation=Mediation.MEDIATION_REQUIRES_APPROVAL),
    ToolSpec(name="add", description="Adds numbers.", mediation=Mediation.MEDIATION_IN_HARNESS_REPORTED),
]
TEXT = {"type": "string"}
DEFINITIONS = [
    tool_definition("weather", "The weather of a city.", {"type": "object", "properties": {"city": TEXT}}),
    tool_definition("send", "Sends a mail.", {"type": "object", "properties": {"to": TEXT, "text": TEXT}}),
    tool_definition("add", "Adds numbers.", {"type": "object", "properties": {"numbers": {"type": "array"}}}),
]

harness = Harness(id="graph", version="1", tools=TOOLS)


@harness.run
async def run(start: Start, sink: Sink) -> None:
    async def ask_model(state: State) -> State:
        response = await sink.model(state.messages, tools=DEFINITIONS)
        await sink.usage(response.usage)
        return replace(state, messages=[*state.messages, response.message])

    async def run_tools(state: State) -> State:
        # All calls of a message at once. A call that waits for an approval unwinds through here; nothing needs to catch it.
        results = await asyncio.gather(*(call_tool(sink, call) for call in tool_calls(state.messages[-1])))
        return replace(state, messages=[*state.messages, tool_message(results)])

    graph = Graph()
    graph.node("model", ask_model)
    graph.node("tools", run_tools)
    graph.edge("model", lambda state: "tools" if tool_calls(state.messages[-1]) else END)
    graph.edge("tools", "model")

    said = (await Conversation.of(start)).messages()
    await graph.run("model", State([text_message("system", "Be brief."), *said]), steps_max=20)


async def call_tool(sink: Sink, call: ToolCall) -> ToolResult:
    if call.tool == "add":
        result = ToolResult(id=call.id, output=struct_of({"sum": sum(dict_of(call.args).get("numbers", []))}))
        await sink.report(result)
        return result
    if call.tool not in harness.mediations:
        return ToolResult(id=call.id, is_error=True, error="there is no such tool")
    return await sink.tool_call(call)


if __name__ == "__main__":
    serve(harness)
