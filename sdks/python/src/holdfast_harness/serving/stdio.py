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

from ..harness import Harness
from ..wire import HarnessEnd
from .listen import VARIABLE
from .stream_line import READ_BYTES, StreamLine, read_line
from .unwind import unwind

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


class StdioServing:
    """A harness on the standard streams."""

    address: Final = "stdio"

    def __init__(self, harness: Harness, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._line = StreamLine(writer)
        self._end = HarnessEnd(harness, self._line)

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
        await read_line(self._reader, self._end)

    async def idle(self) -> None:
        await self._end.unwound()

    async def close(self, unwind_s: float) -> None:
        self._end.close()
        await unwind(self._end, unwind_s)
        await self._line.flush(unwind_s)
        self._line.close()
