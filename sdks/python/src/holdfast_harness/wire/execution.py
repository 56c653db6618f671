"""One exchange that drives one execution: the author's run on one side, frames on the other.

Invariants:
- Events leave in the order in which the sink was called, each counted from 1; nothing leaves after the end.
- Exactly one END or PARKED, then exactly one ExchangeEnd; or an ExchangeEnd alone, when the run raised.
- After a cancel, a refusal that nobody waited for, or the end no further effect is sent: the sink raises what stopped it.
- A run that unwound with nothing but parks is parked. One that went on although a call of it was parked has not completed.
- What the host may not send is a ProtocolFault; it ends this exchange, and no other.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Final

from .._gen.agentsessions.v1.common_pb2 import Error as WireError
from .._gen.agentsessions.v1.common_pb2 import HarnessEnd as EndBody
from .._gen.agentsessions.v1.harness_pb2 import ControllerFrame
from .._gen.agentsessions.v1.harness_pb2 import Start as StartFrame
from .._gen.holdfast.v1.harness_wire_pb2 import (
    EffectRefused,
    ExchangeEnd,
    ExecutionOpening,
    HarnessFrame,
    HostFrame,
)
from ..errors import (
    ApprovalParked,
    HarnessFailure,
    HoldfastError,
    ProtocolFault,
    park_of,
)
from ..harness import Harness
from ..history import History, history_of
from ..sink import ModelResponse, Sink
from ..start import Cancellation, Identity, Start
from ..types import ApprovalRef, Event, EventKind, ModelCall, ToolCall, ToolResult
from .line import HarnessLine
from .pending import Effect, Pending, refusal_of
from .reads import Reads
from .tokens import Tokens

LOG = logging.getLogger("holdfast_harness")

STATUS_UNKNOWN: Final = 2
DESCRIPTION_CHARS_MAX: Final = 1_000
TURN_OVER: Final = "turn: it has ended; a harness may act only while its run lasts"
SWALLOWED: Final = "harness: it went on although its call was parked; it must let the park pass"


class Execution:
    """Drives one run. `ended` is called once, when nothing more will be sent."""

    def __init__(
        self,
        exchange: int,
        opening: ExecutionOpening,
        *,
        harness: Harness,
        line: HarnessLine,
        frame_bytes_max: int,
        tasks: set[asyncio.Task[None]],
        ended: Callable[[], None],
    ) -> None:
        self._exchange: Final = exchange
        self._opening: Final = opening
        self._harness: Final = harness
        self._line: Final = line
        self._frame_bytes_max: Final = frame_bytes_max
        self._tasks: Final = tasks
        self._ended: Final = ended
        self._session = ""
        self._execution_id = ""
        self._ordinal = 0
        self._pending = Pending()
        self._reads = Reads(self._post)
        self._tokens = Tokens(self._post)
        self._cancellation = Cancellation()
        self._parks: list[ApprovalParked] = []
        self._stopped: HoldfastError | None = None
        self._refused: HoldfastError | None = None
        self._run: asyncio.Task[None] | None = None
        self._over = False

    # What the host sends.

    def receive(self, frame: HostFrame) -> None:
        """Takes a frame of this exchange. A fault of the host's ends the exchange here."""
        if self._over:
            return
        try:
            self._receive(frame)
        except ProtocolFault as fault:
            LOG.error("%s", fault.message)
            self._stop(fault)
            self._finish(None, ExchangeEnd(code=fault.grpc_code, description=fault.message))

    def close(self, error: HoldfastError) -> None:
        """The line is gone: stops the run; nothing more is sent."""
        if self._run is not None and self._stopped is not None:
            # It was told to stop before, and has not.
            self._run.cancel(error.message)
        self._stop(error)
        self._leave()

    def _receive(self, frame: HostFrame) -> None:
        kind = frame.WhichOneof("frame")
        if kind == "end":
            self.close(HoldfastError("cancelled", "turn: the host has ended it"))
        elif self._run is None and not (kind == "controller" and frame.controller.HasField("start")):
            raise ProtocolFault("the first frame of an execution must be its start")
        elif kind == "controller":
            self._controller(frame.controller)
        elif kind == "refused":
            self._refusal(frame.refused)
        elif kind == "history":
            self._reads.receive(frame.history)
        elif kind == "token":
            self._tokens.receive(frame.token)
        else:
            raise ProtocolFault(f"{kind or 'an empty frame'} has no place in an execution")

    def _controller(self, frame: ControllerFrame) -> None:
        kind = frame.WhichOneof("frame")
        if kind == "start":
            self._begin(frame)
            return
        if frame.session != self._session or frame.execution_id != self._execution_id:
            raise ProtocolFault("a frame names another session or execution than its start")
        if kind == "cancel":
            self._cancel(frame.cancel.reason)
        elif kind == "model":
            if not frame.model.HasField("message"):
                raise ProtocolFault("a model's result has no message")
            response = ModelResponse(frame.model.message, frame.model.usage)
            self._pending.answer(f"model:{frame.model.model_call_id}", "a model's result", response)
        elif kind == "tool":
            self._pending.answer(f"tool:{frame.tool.id}", "a tool's result", frame.tool)
        elif kind == "approval":
            # The decision is followed by its receipt, which is what the call returns.
            return
        elif kind == "park":
            self._park(frame.park)
        else:
            raise ProtocolFault("a controller frame is empty")

    def _begin(self, frame: ControllerFrame) -> None:
        if self._run is not None:
            raise ProtocolFault("an execution has two starts")
        if frame.session == "" or frame.execution_id == "":
            raise ProtocolFault("a start must name its session and its execution")
        self._session = frame.session
        self._execution_id = frame.execution_id
        start = self._start_of(frame.start)
        sink = Sink(self, execution_id=self._execution_id, model=start.model, mediations=self._harness.mediations)
        run = self._harness.runner

        async def drive() -> None:
            await run(start, sink)

        self._run = asyncio.get_running_loop().create_task(drive(), name=f"holdfast execution {self._execution_id}")
        self._tasks.add(self._run)
        self._run.add_done_callback(self._settled)

    def _start_of(self, start: StartFrame) -> Start:
        opening = self._opening
        if opening.history_pulled:
            if len(start.history) > 0:
                raise ProtocolFault("a start carries a history that is to be pulled")
            history = History(opening.history_last_seq, self._reads.read)
        else:
            if len(start.history) != opening.history_last_seq:
                raise ProtocolFault("a start carries another history than its opening says")
            history = history_of(start.history)
        identity = Identity(
            principal=start.identity.principal if start.identity.HasField("principal") else None,
            minter=self._tokens.mint if start.identity.can_mint_tokens else None,
        )
        return Start(
            execution_id=self._execution_id,
            session_uid=self._session,
            history=history,
            inputs=tuple(start.inputs),
            config=start.config,
            identity=identity,
            resume_from_seq=start.resume_from_seq,
            model=opening.model,
            replayed=opening.replayed,
            tools=tuple(opening.tools),
            cancellation=self._cancellation,
        )

    def _cancel(self, reason: str) -> None:
        self._cancellation.note(reason)
        self._stop(HoldfastError("cancelled", f"turn: it was cancelled ({reason})"))

    def _park(self, ref: ApprovalRef) -> None:
        if ref.execution_id != self._execution_id or ref.request_seq <= 0:
            raise ProtocolFault("a park must name this execution and the seq of its request")
        effect = self._pending.get(f"tool:{ref.tool_call_id}", "a park")
        park = ApprovalParked(ref)
        self._parks.append(park)
        self._pending.fail(effect, park)

    def _refusal(self, refused: EffectRefused) -> None:
        ordinal = refused.event_ordinal
        if not 1 <= ordinal <= self._ordinal:
            raise ProtocolFault("a refusal names no event of this execution")
        error = refusal_of(refused.error.code, refused.error.description)
        effect = self._pending.at(ordinal)
        if effect is not None:
            self._pending.fail(effect, error)
        else:
            # Nobody waits for this event: the host takes nothing after it, so the next effect raises this, or the end says it.
            self._refused = self._refused or error

    # What the author does.

    async def ask_model(self, call: ModelCall) -> ModelResponse:
        self._pass()
        call.id = f"m{self._ordinal + 1}"
        effect = self._ask(Event(kind=EventKind.EVENT_MODEL_CALL, model=call), f"model:{call.id}", "model")
        answer = await effect.answer
        assert isinstance(answer, ModelResponse)
        return answer

    async def ask_tool(self, call: ToolCall) -> ToolResult:
        self._pass()
        if self._pending.holds(f"tool:{call.id}"):
            raise HoldfastError("invalid_argument", "call.id: a call with this id is under way")
        effect = self._ask(Event(kind=EventKind.EVENT_TOOL_CALL, tool=call), f"tool:{call.id}", "tool")
        answer = await effect.answer
        assert isinstance(answer, ToolResult)
        return answer

    async def tell(self, event: Event) -> None:
        self._pass()
        self._emit(event, EventKind.Name(event.kind).removeprefix("EVENT_").lower())
        await self._line.drain()

    def _ask(self, event: Event, key: str, what: str) -> Effect:
        self._emit(event, what)
        return self._pending.add(self._ordinal, key)

    def _pass(self) -> None:
        """Raises what keeps the author from acting."""
        if self._stopped is not None:
            raise self._stopped
        if self._refused is not None:
            raise self._refused

    def _emit(self, event: Event, what: str) -> None:
        event.execution_id = self._execution_id
        event.schema_version = 1
        frame = HarnessFrame(exchange=self._exchange, event=event)
        size = frame.ByteSize()
        if 0 < self._frame_bytes_max < size:
            message = f"{what}: takes {size} bytes as a frame; at most {self._frame_bytes_max} are allowed"
            raise HoldfastError("resource_exhausted", message)
        self._line.write(frame)
        self._ordinal += 1

    def _post(self, frame: HarnessFrame) -> None:
        """Sends a frame that is no event."""
        if self._stopped is not None:
            raise self._stopped
        frame.exchange = self._exchange
        self._line.write(frame)

    # How it ends.

    def _stop(self, error: HoldfastError) -> None:
        """Keeps the author from acting and tells the run so. The first reason stays."""
        if self._stopped is not None:
            return
        self._stopped = error
        if self._run is not None:
            self._run.cancel(self._cancellation.reason or error.message)

    def _settled(self, run: asyncio.Task[None]) -> None:
        """The run has returned, raised or been cancelled."""
        self._tasks.discard(run)
        error: BaseException | None = asyncio.CancelledError() if run.cancelled() else run.exception()
        if self._over:
            return
        if self._stopped is not None:
            self._finish(None, ExchangeEnd(code=self._stopped.grpc_code, description="the run was cancelled"))
        elif error is None:
            self._returned()
        elif self._parks and (ref := park_of(error)) is not None:
            self._finish(Event(kind=EventKind.EVENT_PARKED, parked=ref), ExchangeEnd())
        elif isinstance(error, HarnessFailure):
            failure = WireError(code=error.grpc_code, description=error.description)
            self._finish(self._end_event("FAILED", failure), ExchangeEnd())
        else:
            self._finish(None, thrown_end(error))

    def _returned(self) -> None:
        """A run that returned has completed, unless something of it did not happen."""
        if self._refused is not None:
            self._finish(None, thrown_end(self._refused))
        elif self._parks:
            self._finish(None, thrown_end(HoldfastError("failed_precondition", SWALLOWED)))
        else:
            self._finish(self._end_event("COMPLETED"), ExchangeEnd())

    def _end_event(self, state: str, error: WireError | None = None) -> Event:
        return Event(kind=EventKind.EVENT_END, end=EndBody(state=state, error=error))

    def _finish(self, last: Event | None, end: ExchangeEnd) -> None:
        """Sends the last event, if there is one, and the end of the exchange."""
        if self._over:
            return
        try:
            if last is not None:
                self._emit(last, "end")
        except HoldfastError as error:
            end = ExchangeEnd(code=error.grpc_code, description=error.message)
        # On a line that is gone there is nobody to tell.
        with contextlib.suppress(HoldfastError):
            self._line.write(HarnessFrame(exchange=self._exchange, end=end))
        self._leave()

    def _leave(self) -> None:
        if self._over:
            return
        self._over = True
        self._stopped = self._stopped or HoldfastError("failed_precondition", TURN_OVER)
        self._pending.forget_all(TURN_OVER)
        self._reads.close(self._stopped)
        self._tokens.close(self._stopped)
        self._ended()


def thrown_end(error: BaseException) -> ExchangeEnd:
    """What the host is told of an exception. The words of one that has no code of ours are for a developer: no host records them."""
    if isinstance(error, HoldfastError):
        return ExchangeEnd(code=error.grpc_code, description=error.message)
    LOG.error("a run raised; its turn is interrupted and can be resumed", exc_info=error)
    words = f"{type(error).__name__}: {error}"[:DESCRIPTION_CHARS_MAX]
    return ExchangeEnd(code=STATUS_UNKNOWN, description=words.encode("utf-8", "replace").decode("utf-8"))
