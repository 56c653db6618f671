"""Frames on their way to a gRPC stream, counted in bytes so that a slow reader slows the writer down."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from .._gen.holdfast.v1.harness_wire_pb2 import HarnessFrame
from ..errors import HoldfastError

HIGH_WATER_BYTES: Final = 1024 * 1024


class FrameQueue:
    """A HarnessLine whose other side is iterated by the stream's handler."""

    def __init__(self) -> None:
        self._frames: deque[HarnessFrame] = deque()
        self._bytes = 0
        self._changed = asyncio.Event()
        self._roomy = asyncio.Event()
        self._roomy.set()
        self._closed = False
        self._fault: HoldfastError | None = None

    def write(self, frame: HarnessFrame) -> None:
        if self._closed:
            raise HoldfastError("unavailable", "harness wire: the line is closed")
        self._frames.append(frame)
        self._bytes += frame.ByteSize()
        if self._bytes > HIGH_WATER_BYTES:
            self._roomy.clear()
        self._changed.set()

    async def drain(self) -> None:
        await self._roomy.wait()
        if self._closed:
            raise HoldfastError("unavailable", "harness wire: the line is closed")

    def close(self, fault: HoldfastError | None = None) -> None:
        """Takes no more. What was written is still handed out, then the fault."""
        if self._closed:
            return
        self._closed = True
        self._fault = fault
        self._roomy.set()
        self._changed.set()

    async def next(self) -> HarnessFrame | None:
        """The next frame; None at the end in order. Raises the fault that the line was closed with."""
        while not self._frames:
            if self._closed:
                if self._fault is not None:
                    raise self._fault
                return None
            self._changed.clear()
            await self._changed.wait()
        frame = self._frames.popleft()
        self._bytes -= frame.ByteSize()
        if self._bytes <= HIGH_WATER_BYTES:
            self._roomy.set()
        return frame
