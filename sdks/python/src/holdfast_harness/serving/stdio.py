"""A line over the standard streams of this process.

Invariants:
- From the moment that they are claimed, the process's standard output belongs to the line: what the author, a library or a child process
  prints goes to standard error, and standard input is empty for them. A program that its environment tells to serve standard streams has
  them claimed when it imports this package, before it can print anything.
- The line is read no faster than its frames are taken in, and `drain` waits while the pipe is full.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import BinaryIO, Final

from .._gen.holdfast.v1.harness_wire_pb2 import HarnessFrame, HostFrame
from ..errors import HoldfastError
from ..harness import Harness
from ..wire import FRAME_BYTES_MAX, HarnessEnd
from .framing import FrameDecoder, encode_frame
from .listen import VARIABLE
from .unwind import unwind

READ_BYTES: Final = 256 * 1024
FLUSH_LOOK_S: Final = 0.01

_claimed: tuple[BinaryIO, BinaryIO] | None = None


def is_claimed() -> bool:
    """Whether the standard streams are the line's."""
    return _claimed is not None


def claim_streams() -> tuple[BinaryIO, BinaryIO]:
    """Takes standard input and output for the line, once, and puts an empty input and standard error in their place."""
    global _claimed
    if _claimed is None:
        line_in = os.fdopen(os.dup(0), "rb", buffering=0)
        line_out = os.fdopen(os.dup(1), "wb", buffering=0)
        empty = os.open(os.devnull, os.O_RDONLY)
        os.dup2(empty, 0)
        os.close(empty)
        os.dup2(2, 1)
        # What was printed before and is still in the buffer goes where all prints go from now on.
        sys.stdout.flush()
        sys.stdout = sys.stderr
        _claimed = (line_in, line_out)
    return _claimed


if os.environ.get(VARIABLE) == "stdio":
    # A child process of this one is not told the same: its standard streams are its own.
    del os.environ[VARIABLE]
    claim_streams()


class StdioLine:
    """The harness's end of the pipe."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    def write(self, frame: HarnessFrame) -> None:
        if self._writer.transport.is_closing():
            raise HoldfastError("unavailable", "harness wire: the line is closed")
        self._writer.write(encode_frame(frame))

    async def drain(self) -> None:
        try:
            await self._writer.drain()
        except (ConnectionError, OSError):
            raise HoldfastError("unavailable", "harness wire: the line is closed") from None


class StdioServing:
    """A harness on the standard streams."""

    address: Final = "stdio"

    def __init__(self, harness: Harness, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._end = HarnessEnd(harness, StdioLine(writer))

    @classmethod
    async def open(cls, harness: Harness) -> StdioServing:
        line_in, line_out = claim_streams()
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=READ_BYTES)
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), line_in)
        transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, line_out)
        return cls(harness, reader, asyncio.StreamWriter(transport, protocol, None, loop))

    async def ended(self) -> None:
        """Reads the line until the host closes it. Raises HoldfastError when it breaks."""
        decoder = FrameDecoder(HostFrame, FRAME_BYTES_MAX)
        while data := await self._reader.read(READ_BYTES):
            for frame in decoder.feed(data):
                self._end.receive(frame)
        if not decoder.is_between_frames:
            raise HoldfastError("unavailable", "harness wire: the line ended in the middle of a frame")

    async def idle(self) -> None:
        await self._end.unwound()

    async def close(self, unwind_s: float) -> None:
        self._end.close()
        await unwind(self._end, unwind_s)
        await self._flush(unwind_s)
        self._writer.transport.close()

    async def _flush(self, limit_s: float) -> None:
        """Gives what was written a while to get into the pipe, so that a host that is slow gets whole frames."""
        transport = self._writer.transport
        loop = asyncio.get_running_loop()
        until = loop.time() + limit_s
        while transport.get_write_buffer_size() > 0 and not transport.is_closing() and loop.time() < until:
            await asyncio.sleep(FLUSH_LOOK_S)
