"""A line over a stream of bytes: the standard streams, or a connection of its own."""

from __future__ import annotations

import asyncio
from typing import Final

from .._gen.holdfast.v1.harness_wire_pb2 import HarnessFrame, HostFrame
from ..errors import HoldfastError
from ..wire import FRAME_BYTES_MAX, HarnessEnd
from .framing import FrameDecoder, encode_frame

READ_BYTES: Final = 256 * 1024
FLUSH_LOOK_S: Final = 0.01


class StreamLine:
    """A HarnessLine that writes to a stream."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    def write(self, frame: HarnessFrame) -> None:
        if self._writer.transport.is_closing():
            raise HoldfastError("unavailable", "harness wire: the line is closed")
        self._writer.write(encode_frame(frame))

    async def drain(self) -> None:
        try:
            await self._writer.drain()
        except OSError:
            raise HoldfastError("unavailable", "harness wire: the line is closed") from None

    async def flush(self, limit_s: float) -> None:
        """Gives what was written a while to get to the host, so that a slow one gets whole frames."""
        transport = self._writer.transport
        loop = asyncio.get_running_loop()
        until = loop.time() + limit_s
        # A transport tells when it has room, and not when it is empty.
        while transport.get_write_buffer_size() > 0 and not transport.is_closing() and loop.time() < until:  # noqa: ASYNC110
            await asyncio.sleep(FLUSH_LOOK_S)

    def close(self) -> None:
        self._writer.transport.close()


async def read_line(reader: asyncio.StreamReader, end: HarnessEnd, first: bytes = b"") -> None:
    """Takes frames until the host closes the stream. Raises HoldfastError when the line breaks. `first` was read already."""
    decoder = FrameDecoder(HostFrame, FRAME_BYTES_MAX)
    data = first or await reader.read(READ_BYTES)
    while data:
        for frame in decoder.feed(data):
            end.receive(frame)
        data = await reader.read(READ_BYTES)
    if not decoder.is_between_frames:
        raise HoldfastError("unavailable", "harness wire: the line ended in the middle of a frame")
