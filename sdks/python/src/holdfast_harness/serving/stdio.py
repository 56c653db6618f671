"""A line over the standard streams of this process.

Invariants:
- From the moment of serving on, the process's standard output belongs to the line: what the author, a library or a child process
  prints goes to standard error, and standard input is empty for them.
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
from .unwind import unwind

READ_BYTES: Final = 256 * 1024
UNWIND_S: Final = 5.0


def claim_streams() -> tuple[BinaryIO, BinaryIO]:
    """Takes standard input and output for the line, and puts an empty input and standard error in their place."""
    line_in = os.fdopen(os.dup(0), "rb", buffering=0)
    line_out = os.fdopen(os.dup(1), "wb", buffering=0)
    empty = os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    os.dup2(2, 1)
    # What was printed before and is still in the buffer goes where all prints go from now on.
    sys.stdout.flush()
    sys.stdout = sys.stderr
    return line_in, line_out


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


async def serve_stdio(harness: Harness) -> None:
    """Serves until the host closes the line. Raises HoldfastError when the line breaks."""
    line_in, line_out = claim_streams()
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=READ_BYTES)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), line_in)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, line_out)
    writer = asyncio.StreamWriter(transport, protocol, None, loop)
    end = HarnessEnd(harness, StdioLine(writer))
    try:
        await _read(reader, end)
    finally:
        end.close()
        await unwind(end, UNWIND_S)
        transport.close()


async def _read(reader: asyncio.StreamReader, end: HarnessEnd) -> None:
    decoder = FrameDecoder(HostFrame, FRAME_BYTES_MAX)
    while data := await reader.read(READ_BYTES):
        for frame in decoder.feed(data):
            end.receive(frame)
    if not decoder.is_between_frames:
        raise HoldfastError("unavailable", "harness wire: the line ended in the middle of a frame")
