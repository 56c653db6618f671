"""The author's handle for everything that is to happen and be recorded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from .errors import HoldfastError
from .messages import struct_of, text_message, well_formed
from .types import (
    Event,
    EventKind,
    Mediation,
    Message,
    ModelCall,
    ToolCall,
    ToolChoice,
    ToolDefinition,
    ToolResult,
    Usage,
)


class ModelResponse(NamedTuple):
    """A completion: an assistant's message and what it cost."""

    message: Message
    usage: Usage


class Effects(Protocol):
    """What a sink stands on: one execution's end of the wire."""

    async def ask_model(self, call: ModelCall) -> ModelResponse: ...
    async def ask_tool(self, call: ToolCall) -> ToolResult: ...
    async def tell(self, event: Event) -> None: ...


class Sink:
    """Every effect of a run goes through here. Calls may be made in parallel: they take place in the order in which they were made.

    Every method raises `HoldfastError` when the effect was refused or failed, and once the turn is over; `ApprovalParked` passes
    through `tool_call` when a decision has to be waited for.
    """

    def __init__(self, effects: Effects, *, execution_id: str, model: str, mediations: Mapping[str, Mediation]) -> None:
        self._effects = effects
        self._execution_id = execution_id
        self._model = model
        self._mediations = mediations
        self._calls = 0
        self._host_calls: set[str] = set()

    async def model(
        self,
        messages: Iterable[Message],
        *,
        model: str | None = None,
        params: Mapping[str, str] | None = None,
        tools: Sequence[ToolDefinition] = (),
        tool_choice: ToolChoice | None = None,
    ) -> ModelResponse:
        """Calls a model, or is served the recorded completion. The host records the completion as one OUTPUT: do not emit it again.

        `messages` is the whole context, in order; `model` is the session's default model unless given.
        """
        name = self._model if model is None else model
        if name == "":
            raise HoldfastError("invalid_argument", "model: must name a model; the session has no default one")
        for key, value in (params or {}).items():
            well_formed("params", key)
            well_formed(f"params.{key}", value)
        call = ModelCall(
            model=well_formed("model", name),
            messages=messages,
            params=dict(params or {}),
            tools=tools,
            tool_choice=tool_choice,
        )
        return await self._effects.ask_model(call)

    async def output(self, text: str) -> None:
        """Records text that the harness itself made, as one OUTPUT."""
        message = text_message("assistant", well_formed("output", text))
        await self._effects.tell(Event(kind=EventKind.EVENT_OUTPUT, message=message))

    async def tool_call(
        self,
        tool: str | ToolCall,
        args: Mapping[str, Any] | None = None,
        *,
        id: str = "",
        idempotency_key: str = "",
        mediation: Mediation = Mediation.MEDIATION_UNSPECIFIED,
    ) -> ToolResult:
        """Asks the host to run a tool, and waits for its result. A tool that failed is a result with `is_error`.

        `tool` is a tool's name, or a call as a model made it. What is left out is filled in: the id (unique in the session) with the
        execution's and the number of the call, the same whenever the turn is run again; the idempotency key, which keeps a call that is
        made again after a crash from acting twice, with the id; the mediation with that of the tool in the harness's `tools`.
        """
        self._calls += 1
        call = ToolCall()
        if isinstance(tool, ToolCall):
            call.CopyFrom(tool)
        else:
            call.tool = well_formed("tool", tool)
        if args is not None:
            call.args.CopyFrom(struct_of(args))
        call.id = id or call.id or f"{self._execution_id}-{self._calls}"
        call.idempotency_key = idempotency_key or call.idempotency_key or call.id
        call.mediation = mediation or call.mediation or self._declared(call.tool)
        if call.id in self._host_calls:
            return await self._effects.ask_tool(call)
        self._host_calls.add(call.id)
        try:
            return await self._effects.ask_tool(call)
        except HoldfastError:
            # What the host has refused it does not run: its result is the harness's to report.
            self._host_calls.discard(call.id)
            raise

    def _declared(self, tool: str) -> Mediation:
        """Who runs a tool. Raises INVALID_ARGUMENT where nobody has said so: no host takes a call that does not say it."""
        declared = self._mediations.get(tool, Mediation.MEDIATION_UNSPECIFIED)
        if declared == Mediation.MEDIATION_UNSPECIFIED:
            raise HoldfastError("invalid_argument", "tool: it is not one of the harness's tools; declare it there, or say its mediation")
        return declared

    async def report(self, result: ToolResult) -> None:
        """Records the result of a tool that the harness ran itself."""
        if result.id == "":
            raise HoldfastError("invalid_argument", "result.id: must be the id of the call that it answers")
        if result.approval_request_seq != 0 or result.approval_decision_seq != 0:
            raise HoldfastError("invalid_argument", "result: must leave approval_request_seq and approval_decision_seq to the host")
        if result.id in self._host_calls:
            raise HoldfastError("invalid_argument", "result.id: must not be that of a call which the host runs")
        await self._effects.tell(Event(kind=EventKind.EVENT_TOOL_RESULT, result=result))

    async def usage(self, usage: Usage) -> None:
        """Records accounting as given; pass the usage that `model` returned."""
        await self._effects.tell(Event(kind=EventKind.EVENT_USAGE, usage=usage))
