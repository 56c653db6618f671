"""A harness behind gRPC, on a unix socket or TCP: the contract's Harness, and the line protocol beside it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import grpc
import grpc.aio

from .._gen.agentsessions.v1.common_pb2 import Event
from .._gen.agentsessions.v1.harness_pb2 import ControllerFrame, DescribeRequest, HarnessDescriptor
from .._gen.holdfast.v1.harness_wire_pb2 import ExchangeEnd, HarnessFrame, HostFrame
from ..errors import HoldfastError, code_of_grpc, grpc_code_of
from ..harness import Harness
from ..wire import FRAME_BYTES_MAX, PROTOCOL, HarnessEnd
from .connect import ConnectBridge
from .host_client import Channels
from .listen import Tcp, UnixSocket
from .queue import FrameQueue
from .shared_listener import SharedListener
from .stream_line import StreamLine, read_line
from .unwind import unwind

LOG = logging.getLogger("holdfast_harness")

# What Describe says beside the descriptor: the line protocol is spoken here, also on a connection of its own, and a history need not be
# pushed.
PEER_FACTS: Final = (("holdfast-wire", str(PROTOCOL)), ("holdfast-line", "stream"), ("holdfast-history", "pull"))

# In the trailing metadata of a call that failed: the code, in our words.
CODE_KEY: Final = "holdfast-code"

SERVER_OPTIONS: Final = (
    ("grpc.max_receive_message_length", FRAME_BYTES_MAX),
    ("grpc.max_send_message_length", FRAME_BYTES_MAX),
)

Context = Any
"""A grpc.aio.ServicerContext."""


class GrpcServing:
    """Serves one harness on one address."""

    def __init__(self, harness: Harness) -> None:
        self.address = ""
        self._harness = harness
        self._channels = Channels()
        self._calls: dict[HarnessEnd, Callable[[HoldfastError], None]] = {}
        self._server: Any = grpc.aio.server(options=SERVER_OPTIONS)
        self._listener = SharedListener(self._take_line)
        self._server.add_generic_rpc_handlers((_contract(self), _wire(self)))

    @classmethod
    async def open(cls, harness: Harness, where: UnixSocket | Tcp) -> GrpcServing:
        """Binds and serves. Raises UNAVAILABLE where the address cannot be had."""
        where.refuse_taken()
        serving = cls(harness)
        try:
            serving._server.add_insecure_port(f"unix:{serving._listener.private}")
            await serving._server.start()
            serving.address = where.address(await serving._listener.open(where))
        except BaseException:
            await serving.close(0)
            raise
        return serving

    async def ended(self) -> None:
        """Never: a socket serves one host after the other."""
        await asyncio.get_running_loop().create_future()

    async def idle(self) -> None:
        while any(end.running for end in self._calls):
            await asyncio.gather(*(end.unwound() for end in self._calls))

    async def close(self, unwind_s: float) -> None:
        """Takes no new call, cancels the runs, and waits for them to clean up."""
        self._listener.stop()
        calls = dict(self._calls)
        for close in calls.values():
            close(HoldfastError("unavailable", "harness: it is shutting down"))
        await self._server.stop(unwind_s)
        await asyncio.gather(*(unwind(end, unwind_s) for end in calls))
        await self._listener.close()
        await self._channels.close()

    async def describe(self, request: DescribeRequest, context: Context) -> HarnessDescriptor:
        await context.send_initial_metadata(PEER_FACTS)
        return self._harness.descriptor

    async def connect(self, frames: AsyncIterator[ControllerFrame], context: Context) -> None:
        metadata = {str(key): str(value) for key, value in context.invocation_metadata() or ()}
        bridge = ConnectBridge(self._harness, metadata, self._channels)
        self._calls[bridge.end] = bridge.close
        reading = asyncio.get_running_loop().create_task(_feed(frames, bridge))
        try:
            ended = await self._send_events(bridge, reading, context)
        finally:
            reading.cancel()
            bridge.close()
            self._calls.pop(bridge.end, None)
        if ended.code != 0:
            await _abort(context, ended.code, ended.description)

    async def line(self, frames: AsyncIterator[HostFrame], context: Context) -> None:
        queue = FrameQueue()
        end = HarnessEnd(self._harness, queue)

        def close(fault: HoldfastError) -> None:
            end.close(fault)
            queue.close(fault)

        self._calls[end] = close
        reading = asyncio.get_running_loop().create_task(_read_line(frames, end, queue))
        try:
            while (frame := await queue.next()) is not None:
                await context.write(frame)
        except HoldfastError as fault:
            await _abort(context, fault.grpc_code, fault.message)
        finally:
            reading.cancel()
            end.close()
            queue.close()
            self._calls.pop(end, None)

    async def _take_line(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, first: bytes) -> None:
        """A line on a connection of its own."""
        line = StreamLine(writer)
        end = HarnessEnd(self._harness, line)
        self._calls[end] = end.close
        try:
            await read_line(reader, end, first)
        except HoldfastError as fault:
            LOG.error("%s", fault.message)
        finally:
            end.close()
            line.close()
            self._calls.pop(end, None)

    async def _send_events(self, bridge: ConnectBridge, reading: asyncio.Task[None], context: Context) -> ExchangeEnd:
        while True:
            upcoming = asyncio.ensure_future(bridge.next())
            await asyncio.wait((upcoming, reading), return_when=asyncio.FIRST_COMPLETED)
            if not upcoming.done():
                fault = reading.exception()
                if fault is not None:
                    upcoming.cancel()
                    return _end_of(fault)
                # The host will send nothing more; what the run does without answers still counts.
            item = await upcoming
            if isinstance(item, ExchangeEnd):
                return item
            await context.write(item)


async def _feed(frames: AsyncIterator[ControllerFrame], bridge: ConnectBridge) -> None:
    async for frame in frames:
        bridge.receive(frame)
    bridge.host_left()


async def _read_line(frames: AsyncIterator[HostFrame], end: HarnessEnd, queue: FrameQueue) -> None:
    fault: HoldfastError | None = None
    try:
        async for frame in frames:
            end.receive(frame)
    except HoldfastError as error:
        fault = error
    finally:
        end.close()
        queue.close(fault)


def _end_of(fault: BaseException) -> ExchangeEnd:
    if isinstance(fault, HoldfastError):
        return ExchangeEnd(code=fault.grpc_code, description=fault.message)
    return ExchangeEnd(code=14, description="harness wire: the line is closed")


async def _abort(context: Context, code: int, description: str) -> None:
    """Ends a call with a status. One with a code of ours says so, so that it is told apart from what gRPC makes of a lost connection."""
    ours = () if code_of_grpc(code) == "internal" and code != grpc_code_of("internal") else ((CODE_KEY, code_of_grpc(code)),)
    await context.abort(_status_of(code), description, trailing_metadata=ours)


def _status_of(code: int) -> grpc.StatusCode:
    for status in grpc.StatusCode:
        if status.value[0] == code:
            return status
    return grpc.StatusCode.UNKNOWN


def _contract(server: GrpcServing) -> grpc.GenericRpcHandler:
    return grpc.method_handlers_generic_handler(
        "agentsessions.v1.Harness",
        {
            "Describe": grpc.unary_unary_rpc_method_handler(
                server.describe,
                request_deserializer=DescribeRequest.FromString,
                response_serializer=HarnessDescriptor.SerializeToString,
            ),
            "Connect": grpc.stream_stream_rpc_method_handler(
                server.connect,
                request_deserializer=ControllerFrame.FromString,
                response_serializer=Event.SerializeToString,
            ),
        },
    )


def _wire(server: GrpcServing) -> grpc.GenericRpcHandler:
    return grpc.method_handlers_generic_handler(
        "holdfast.v1.HarnessWire",
        {
            "Line": grpc.stream_stream_rpc_method_handler(
                server.line,
                request_deserializer=HostFrame.FromString,
                response_serializer=HarnessFrame.SerializeToString,
            ),
        },
    )
