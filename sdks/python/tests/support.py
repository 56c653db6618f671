"""A host that does what a test says, over a line that keeps what was sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from holdfast_harness import Event, Harness, Mediation, Message, Sink, Start, ToolSpec, Usage, text_message
from holdfast_harness._gen.agentsessions.v1.common_pb2 import ApprovalRef, ApprovalResult, ToolResult
from holdfast_harness._gen.agentsessions.v1.common_pb2 import Error as WireError
from holdfast_harness._gen.agentsessions.v1.harness_pb2 import (
    Cancel,
    ControllerFrame,
    DescribeRequest,
    IdentityContext,
    ModelResult,
)
from holdfast_harness._gen.agentsessions.v1.harness_pb2 import Start as StartFrame
from holdfast_harness._gen.holdfast.v1.harness_wire_pb2 import (
    EffectRefused,
    ExchangeEnd,
    ExecutionOpening,
    HarnessFrame,
    HistoryPage,
    HostFrame,
    HostHello,
    MintTokenResponse,
)
from holdfast_harness.errors import HoldfastError
from holdfast_harness.wire import HarnessEnd

SESSION = "session-1"
EXECUTION = "execution-1"
HOST_FRAME_BYTES_MAX = 1024 * 1024

RunFunction = Callable[[Start, Sink], Any]


def harness_of(run: RunFunction, **options: Any) -> Harness:
    """A harness whose tools the host runs."""
    tools = [ToolSpec(name=name, mediation=Mediation.MEDIATION_CONTROLLER_MEDIATED) for name in ("t", "search", "send", "slow")]
    harness = Harness(**{"id": "test", "version": "1", "tools": tools, **options})
    harness.run(run)
    return harness


class KeptLine:
    """Keeps frames; may be closed, and may be full."""

    def __init__(self) -> None:
        self.sent: asyncio.Queue[HarnessFrame] = asyncio.Queue()
        self.closed = False
        self.room = asyncio.Event()
        self.room.set()

    def write(self, frame: HarnessFrame) -> None:
        if self.closed:
            raise HoldfastError("unavailable", "harness wire: the line is closed")
        copy = HarnessFrame()
        copy.CopyFrom(frame)
        self.sent.put_nowait(copy)

    async def drain(self) -> None:
        await self.room.wait()


class Host:
    """The host's side of one line."""

    def __init__(self, run: RunFunction | Harness, *, frame_bytes_max: int = HOST_FRAME_BYTES_MAX, greet: bool = True) -> None:
        self.line = KeptLine()
        self.end = HarnessEnd(run if isinstance(run, Harness) else harness_of(run), self.line)
        if greet:
            self.send(0, hello=HostHello(protocol=1, frame_bytes_max=frame_bytes_max))
            assert self.line.sent.get_nowait().HasField("hello")

    def send(self, exchange: int, **body: Any) -> None:
        self.end.receive(HostFrame(exchange=exchange, **body))

    def begin(self, exchange: int = 1, *, opening: ExecutionOpening | None = None, **start: Any) -> None:
        """Opens an execution and starts it."""
        self.send(exchange, open=opening or ExecutionOpening(model="echo"))
        self.control(exchange, start=StartFrame(**start))

    def control(self, exchange: int = 1, *, session: str = SESSION, execution: str = EXECUTION, **frame: Any) -> None:
        self.send(exchange, controller=ControllerFrame(session=session, execution_id=execution, **frame))

    def complete(self, call_id: str, text: str = "ok", exchange: int = 1) -> None:
        result = ModelResult(message=text_message("assistant", text), usage=Usage(model="echo"), model_call_id=call_id)
        self.control(exchange, model=result)

    def finish_tool(self, call_id: str, **result: Any) -> None:
        self.control(tool=ToolResult(id=call_id, **result))

    def cancel(self, reason: str = "USER", exchange: int = 1) -> None:
        self.control(exchange, cancel=Cancel(reason=reason))

    def park(self, call_id: str, seq: int = 7) -> ApprovalRef:
        ref = ApprovalRef(execution_id=EXECUTION, tool_call_id=call_id, request_seq=seq)
        self.control(park=ref)
        return ref

    def refuse(self, ordinal: int, code: int = 9, description: str = "tool: no such tool") -> None:
        self.send(1, refused=EffectRefused(event_ordinal=ordinal, error=WireError(code=code, description=description)))

    async def next(self) -> HarnessFrame:
        return await asyncio.wait_for(self.line.sent.get(), 5)

    async def event(self) -> Event:
        frame = await self.next()
        assert frame.HasField("event"), frame
        return frame.event

    async def ended(self) -> ExchangeEnd:
        frame = await self.next()
        assert frame.HasField("end"), frame
        await self.silent()
        return frame.end

    async def completed(self) -> None:
        """END COMPLETED, the end of the exchange, and nothing more."""
        last = await self.event()
        assert (last.end.state, last.execution_id) == ("COMPLETED", EXECUTION)
        assert (await self.ended()).code == 0

    async def silent(self) -> None:
        """Nothing more is sent, whatever is still to run."""
        for _ in range(10):
            await asyncio.sleep(0)
        assert self.line.sent.empty(), self.line.sent.get_nowait()


__all__ = [
    "EXECUTION",
    "SESSION",
    "ApprovalResult",
    "DescribeRequest",
    "ExchangeEnd",
    "ExecutionOpening",
    "HistoryPage",
    "Host",
    "HostFrame",
    "HostHello",
    "IdentityContext",
    "KeptLine",
    "Message",
    "MintTokenResponse",
    "StartFrame",
    "WireError",
    "harness_of",
]
