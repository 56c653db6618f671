"""The author's handle for everything that is to happen and be recorded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from .errors import HoldfastError
from .messages import text_message, well_formed
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

    def __init__(self, effects: Effects, *, model: str, mediations: Mapping[str, Mediation]) -> None:
        self._effects = effects
        self._model = model
        self._mediations = mediations

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

    async def tool_call(self, call: ToolCall) -> ToolResult:
        """Asks the host to run a tool, and waits for its result. A tool that failed is a result with `is_error`.

        A call as a model made it will do: an unset mediation is that of the tool in the harness's `tools` (the host runs it, where
        there is none), an unset idempotency key is the call's id. The id must be unique in the session.
        """
        asked = ToolCall()
        asked.CopyFrom(call)
        if asked.mediation == Mediation.MEDIATION_UNSPECIFIED:
            asked.mediation = self._mediations.get(asked.tool, Mediation.MEDIATION_CONTROLLER_MEDIATED)
        if asked.idempotency_key == "":
            asked.idempotency_key = asked.id
        return await self._effects.ask_tool(asked)

    async def report(self, result: ToolResult) -> None:
        """Records the result of a tool that the harness ran itself."""
        if result.id == "":
            raise HoldfastError("invalid_argument", "result.id: must be the id of the call that it answers")
        if result.approval_request_seq != 0 or result.approval_decision_seq != 0:
            raise HoldfastError("invalid_argument", "result: must leave approval_request_seq and approval_decision_seq to the host")
        await self._effects.tell(Event(kind=EventKind.EVENT_TOOL_RESULT, result=result))

    async def usage(self, usage: Usage) -> None:
        """Records accounting as given; pass the usage that `model` returned."""
        await self._effects.tell(Event(kind=EventKind.EVENT_USAGE, usage=usage))
