"""The contract's own Connect, presented to the machine as a line with one exchange.

What the contract has no frame for goes another way: history that is pulled and tokens are calls of the host's HarnessHost, the
session's model and the length of its history come in the call's metadata, and a run that raised ends the stream with a status.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .._gen.agentsessions.v1.common_pb2 import Error as WireError
from .._gen.agentsessions.v1.common_pb2 import Event, EventKind
from .._gen.agentsessions.v1.common_pb2 import HarnessEnd as EndBody
from .._gen.agentsessions.v1.harness_pb2 import ControllerFrame
from .._gen.holdfast.v1.harness_wire_pb2 import (
    ExchangeEnd,
    ExecutionOpening,
    HarnessFrame,
    HostFrame,
    HostHello,
    MintTokenResponse,
)
from ..errors import HoldfastError
from ..harness import Harness
from ..wire import FRAME_BYTES_MAX, PROTOCOL, HarnessEnd
from .host_client import Channels, HostClient
from .queue import FrameQueue

EXCHANGE: Final = 1
HOST: Final = "holdfast-host"
CREDENTIAL: Final = "holdfast-credential"
MODEL: Final = "holdfast-model"
LAST_SEQ: Final = "holdfast-history-last-seq"
SEQ_MAX: Final = 2**53 - 1


class ConnectBridge:
    """One call of Connect. Frames of the contract go in; events, and at last an end, come out."""

    def __init__(self, harness: Harness, metadata: Mapping[str, str], channels: Channels) -> None:
        self._metadata = metadata
        self._frames = FrameQueue()
        self._end = HarnessEnd(harness, self._frames)
        self._opened = False
        self._cancelled = False
        self._ended = False
        self._execution_id = ""
        self._client: HostClient | None = None
        if metadata.get(HOST) and metadata.get(CREDENTIAL):
            self._client = HostClient(channels.to(metadata[HOST]), metadata[CREDENTIAL], self._answer)

    @property
    def end(self) -> HarnessEnd:
        return self._end

    def receive(self, frame: ControllerFrame) -> None:
        """Raises INVALID_ARGUMENT where the first frame is no start."""
        if not self._opened:
            self._open(frame)
        self._cancelled = self._cancelled or frame.HasField("cancel")
        self._end.receive(HostFrame(exchange=EXCHANGE, controller=frame))

    async def next(self) -> Event | ExchangeEnd:
        """The next event, or the end."""
        if self._ended:
            return ExchangeEnd()
        while True:
            try:
                frame = await self._frames.next()
            except HoldfastError as fault:
                return ExchangeEnd(code=fault.grpc_code, description=fault.message)
            if frame is None:
                return ExchangeEnd(code=14, description="harness wire: the line is closed")
            kind = frame.WhichOneof("frame")
            if kind == "event":
                return frame.event
            if kind == "end" and self._cancelled and frame.end.code != 0:
                # The contract has an event for a run that was cancelled.
                self._ended = True
                return Event(
                    execution_id=self._execution_id,
                    schema_version=1,
                    kind=EventKind.EVENT_END,
                    end=EndBody(state="CANCELED"),
                )
            if kind == "end":
                return frame.end
            self._beside(frame)

    def host_left(self) -> None:
        """The host will send nothing more. One that did so before the end of a run that it has not cancelled is gone."""
        if not self._cancelled:
            self.close(HoldfastError("unavailable", "host: it closed the call"))

    def close(self, fault: HoldfastError | None = None) -> None:
        """The call is over: what runs is cancelled, and `next` says why."""
        self._end.close(fault)
        self._frames.close(fault)
        if self._client is not None:
            self._client.close()

    def _open(self, frame: ControllerFrame) -> None:
        if not frame.HasField("start"):
            raise HoldfastError("invalid_argument", "frame: the first one must be the start")
        self._opened = True
        self._execution_id = frame.execution_id
        pushed = len(frame.start.history)
        last_seq = pushed or self._last_seq()
        pulled = self._client is not None and pushed == 0 and last_seq > 0
        opening = ExecutionOpening(
            model=self._metadata.get(MODEL, ""),
            history_last_seq=last_seq if pulled else pushed,
            history_pulled=pulled,
        )
        self._end.receive(HostFrame(hello=HostHello(protocol=PROTOCOL, frame_bytes_max=FRAME_BYTES_MAX)))
        self._end.receive(HostFrame(exchange=EXCHANGE, open=opening))

    def _last_seq(self) -> int:
        text = self._metadata.get(LAST_SEQ, "0")
        if not (text.isascii() and text.isdigit() and int(text) <= SEQ_MAX):
            raise HoldfastError("invalid_argument", f"{LAST_SEQ}: must be a whole number")
        return int(text)

    def _beside(self, frame: HarnessFrame) -> None:
        """What a line has a frame for and the contract has none."""
        if frame.HasField("read_history") and self._client is not None:
            self._client.read_history(frame.read_history)
        elif frame.HasField("mint_token"):
            if self._client is not None:
                self._client.mint_token(frame.mint_token)
                return
            error = WireError(code=12, description="identity: this host mints no tokens for a harness elsewhere")
            self._answer(HostFrame(token=MintTokenResponse(request=frame.mint_token.request, error=error)))

    def _answer(self, frame: HostFrame) -> None:
        frame.exchange = EXCHANGE
        self._end.receive(frame)
