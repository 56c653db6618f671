"""One socket for gRPC and for lines on connections of their own: the first byte says which comes. HTTP/2 begins with `P`; a line begins
with the length of its first frame, whose first byte is that high for no frame that is taken.

gRPC's own server cannot be handed a connection, so it listens on a private socket, and its connections are passed on to that. Lines are
not: a frame costs half of what it costs within gRPC.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import socket
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from ..errors import HoldfastError
from .listen import Tcp, UnixSocket
from .stream_line import READ_BYTES

HTTP2_FIRST_BYTE: Final = b"P"
FIRST_BYTE_TIMEOUT_S: Final = 10.0
CLOSE_TIMEOUT_S: Final = 1.0

TakeLine = Callable[[asyncio.StreamReader, asyncio.StreamWriter, bytes], Awaitable[None]]


class SharedListener:
    """Listens for both. `take_line` is given each line, with what was read of it."""

    def __init__(self, take_line: TakeLine) -> None:
        self._take_line = take_line
        self._folder = tempfile.mkdtemp(prefix="holdfast-")
        self._server: asyncio.Server | None = None
        self._path: Path | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self.private: Final = str(Path(self._folder) / "grpc.sock")
        """Where gRPC is to listen: in a folder that nobody else may enter."""

    async def open(self, where: UnixSocket | Tcp) -> int:
        """Binds; the port, for TCP. Raises UNAVAILABLE where that cannot be done."""
        try:
            if isinstance(where, UnixSocket):
                self._server = await asyncio.start_unix_server(self._accept, where.path, limit=READ_BYTES)
                self._path = Path(where.path)
                return 0
            host = where.host.strip("[]")
            self._server = await asyncio.start_server(self._accept, host, where.port, limit=READ_BYTES)
            return int(self._server.sockets[0].getsockname()[1])
        except OSError as error:
            raise HoldfastError("unavailable", "harness: its address cannot be listened on; it may be in use") from error

    def stop(self) -> None:
        """Takes no more connections."""
        if self._server is not None:
            self._server.close()
        if self._path is not None:
            with contextlib.suppress(OSError):
                self._path.unlink()
            self._path = None

    async def close(self) -> None:
        """Drops what is left."""
        self.stop()
        for task in self._connections:
            task.cancel()
        if self._connections:
            await asyncio.wait(self._connections)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._connections.add(task)

        def done(_: asyncio.Task[None]) -> None:
            self._connections.discard(task)
            # A task that was cancelled before it began has closed nothing.
            writer.close()

        task.add_done_callback(done)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(OSError, asyncio.TimeoutError, asyncio.CancelledError):
                await self._decide(reader, writer)
        finally:
            await close_stream(writer)

    async def _decide(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _tune(writer)
        first = await asyncio.wait_for(reader.read(READ_BYTES), FIRST_BYTE_TIMEOUT_S)
        if first.startswith(HTTP2_FIRST_BYTE):
            await self._pass_on(reader, writer, first)
        elif first:
            await self._take_line(reader, writer, first)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, first: bytes) -> None:
        inner_reader, inner_writer = await asyncio.open_unix_connection(self.private, limit=READ_BYTES)
        inner_writer.write(first)
        pumps = [asyncio.ensure_future(_pump(reader, inner_writer)), asyncio.ensure_future(_pump(inner_reader, writer))]
        try:
            # When either side is gone, so is the connection.
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            # Nothing is awaited before both are told: this may be cancelled while it ends.
            inner_writer.close()
            for pump in pumps:
                pump.cancel()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(READ_BYTES):
            writer.write(data)
            await writer.drain()


async def close_stream(writer: asyncio.StreamWriter) -> None:
    """Closes a connection, and does not wait for a peer that takes nothing more."""
    writer.close()
    try:
        await asyncio.wait_for(writer.wait_closed(), CLOSE_TIMEOUT_S)
    except (OSError, asyncio.TimeoutError):
        writer.transport.abort()


def _tune(writer: asyncio.StreamWriter) -> None:
    """A peer that vanished is noticed; that small frames go out at once is asyncio's own doing."""
    connection = writer.get_extra_info("socket")
    if connection is not None and connection.family != socket.AF_UNIX:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
