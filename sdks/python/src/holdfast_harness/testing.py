"""Running a harness in a test, without a host: its effects are kept as plain values, and answered by functions of the test's.

effects = await run_once(harness, inputs=[text_message("user", "hi")], model=lambda call: text_message("assistant", "hello"))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from .errors import HoldfastError
from .harness import Harness
from .history import history_of
from .sink import ModelResponse, Sink
from .start import Identity, Start
from .types import Event, EventKind, Message, ModelCall, ToolCall, ToolResult, Usage

A = TypeVar("A")
AnswerModel = Callable[[ModelCall], Message | ModelResponse]
AnswerTool = Callable[[ToolCall], ToolResult]


@dataclass
class RecordedEffects:
    """What a run asked for, as the events that would go to a host, in order. Without an answer an effect is FAILED_PRECONDITION."""

    model: AnswerModel | None = None
    tool: AnswerTool | None = None
    events: list[Event] = field(default_factory=list)

    async def ask_model(self, call: ModelCall) -> ModelResponse:
        self.events.append(Event(kind=EventKind.EVENT_MODEL_CALL, model=call))
        answer = _given("model", self.model)(call)
        return answer if isinstance(answer, ModelResponse) else ModelResponse(answer, Usage(model=call.model))

    async def ask_tool(self, call: ToolCall) -> ToolResult:
        self.events.append(Event(kind=EventKind.EVENT_TOOL_CALL, tool=call))
        return _given("tool", self.tool)(call)

    async def tell(self, event: Event) -> None:
        self.events.append(event)


def _given(name: str, answer: A | None) -> A:
    if answer is None:
        raise HoldfastError("failed_precondition", f"{name}: none is served here")
    return answer


async def run_once(
    harness: Harness,
    *,
    inputs: Sequence[Message] = (),
    history: Sequence[Event] = (),
    config: bytes = b"",
    default_model: str = "model",
    identity: Identity | None = None,
    model: AnswerModel | None = None,
    tool: AnswerTool | None = None,
) -> list[Event]:
    """Drives one execution and returns its effects. Raises what the run raises."""
    effects = RecordedEffects(model, tool)
    start = Start(
        execution_id="execution",
        session_uid="session",
        history=history_of(history),
        inputs=tuple(inputs),
        config=config,
        identity=identity or Identity(),
        model=default_model,
    )
    await harness.runner(start, Sink(effects, execution_id="execution", model=default_model, mediations=harness.mediations))
    return effects.events
