"""The harness's end of a line: the opening of the line, and its exchanges.

Invariants:
- The host's hello is the first frame and ours is the answer; nothing else belongs to exchange 0.
- Exchanges are numbered by the host, each greater than any before. A frame of one that has ended here is passed over: it crossed
  our end. A frame of one that was never opened, or out of the line's own order, is a ProtocolFault that ends the line.
"""

from __future__ import annotations

import asyncio

from .._gen.holdfast.v1.harness_wire_pb2 import HarnessFrame, HarnessHello, HostFrame
from ..errors import HoldfastError, ProtocolFault
from ..harness import Harness
from .execution import Execution
from .line import FRAME_BYTES_MAX, PROTOCOL, HarnessLine


class HarnessEnd:
    """Serves one harness on one line. `receive` is given every frame of the host's, in order."""

    def __init__(self, harness: Harness, line: HarnessLine, *, frame_bytes_max: int = FRAME_BYTES_MAX) -> None:
        self._harness = harness
        self._line = line
        self._own_frame_bytes_max = frame_bytes_max
        self._host_frame_bytes_max = 0
        self._greeted = False
        self._last_exchange = 0
        self._executions: dict[int, Execution] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def running(self) -> int:
        """How many runs are under way, those that were given up and have not unwound included."""
        return len(self._tasks)

    async def unwound(self) -> None:
        """Returns when no run is left, those that were given up included."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def receive(self, frame: HostFrame) -> None:
        """Takes one frame. Raises ProtocolFault when the line cannot go on; call `close` then."""
        if not self._greeted:
            self._greet(frame)
            return
        if frame.exchange == 0:
            raise ProtocolFault("exchange 0 holds the host's hello and nothing else")
        execution = self._executions.get(frame.exchange)
        if execution is not None:
            execution.receive(frame)
        elif frame.exchange > self._last_exchange:
            self._open(frame)

    def close(self, error: HoldfastError | None = None) -> None:
        """The line is gone: every run is cancelled, and nothing more is sent."""
        reason = error or HoldfastError("unavailable", "harness wire: the line is closed")
        for execution in list(self._executions.values()):
            execution.close(reason)

    def _greet(self, frame: HostFrame) -> None:
        if frame.exchange != 0 or not frame.HasField("hello"):
            raise ProtocolFault("the first frame must be the host's hello on exchange 0")
        if frame.hello.protocol != PROTOCOL:
            raise ProtocolFault(f"protocol {frame.hello.protocol} is not spoken here; {PROTOCOL} is")
        self._greeted = True
        self._host_frame_bytes_max = frame.hello.frame_bytes_max
        hello = HarnessHello(protocol=PROTOCOL, pulls_history=True, frame_bytes_max=self._own_frame_bytes_max)
        self._line.write(HarnessFrame(hello=hello))

    def _open(self, frame: HostFrame) -> None:
        exchange = frame.exchange
        kind = frame.WhichOneof("frame")
        if kind == "describe":
            self._last_exchange = exchange
            self._line.write(HarnessFrame(exchange=exchange, descriptor=self._harness.descriptor))
        elif kind == "open":
            self._last_exchange = exchange
            self._executions[exchange] = Execution(
                exchange,
                frame.open,
                harness=self._harness,
                line=self._line,
                frame_bytes_max=self._host_frame_bytes_max,
                tasks=self._tasks,
                ended=lambda: self._ended(exchange),
            )
        else:
            raise ProtocolFault("an exchange must begin with describe or open")

    def _ended(self, exchange: int) -> None:
        self._executions.pop(exchange, None)
