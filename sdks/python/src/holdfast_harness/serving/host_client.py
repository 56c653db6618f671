"""What a host offers over `holdfast.v1.HarnessHost` to a harness that it drives over the contract's own Connect."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import grpc
import grpc.aio

from .._gen.agentsessions.v1.common_pb2 import Error as WireError
from .._gen.holdfast.v1.harness_wire_pb2 import (
    HistoryPage,
    HostFrame,
    MintTokenRequest,
    MintTokenResponse,
    ReadHistoryRequest,
)
from ..wire import FRAME_BYTES_MAX

READ_HISTORY: Final = "/holdfast.v1.HarnessHost/ReadHistory"
MINT_TOKEN: Final = "/holdfast.v1.HarnessHost/MintToken"


class Channels:
    """One channel for each host, for as long as the harness is served."""

    def __init__(self) -> None:
        self._channels: dict[str, grpc.aio.Channel] = {}

    def to(self, address: str) -> grpc.aio.Channel:
        channel = self._channels.get(address)
        if channel is None:
            options = [("grpc.max_receive_message_length", FRAME_BYTES_MAX)]
            channel = self._channels[address] = grpc.aio.insecure_channel(address, options=options)
        return channel

    async def close(self) -> None:
        for channel in self._channels.values():
            await channel.close()
        self._channels.clear()


class HostClient:
    """Answers an execution's reads and requests for tokens by calls with its credential. Answers are the frames of a line."""

    def __init__(self, channel: grpc.aio.Channel, credential: str, answer: Callable[[HostFrame], None]) -> None:
        self._metadata = (("authorization", f"Bearer {credential}"),)
        self._answer = answer
        self._mint: Any = channel.unary_unary(
            MINT_TOKEN,
            request_serializer=MintTokenRequest.SerializeToString,
            response_deserializer=MintTokenResponse.FromString,
        )
        self._read: Any = channel.unary_stream(
            READ_HISTORY,
            request_serializer=ReadHistoryRequest.SerializeToString,
            response_deserializer=HistoryPage.FromString,
        )
        self._reads: dict[int, tuple[asyncio.Task[None], asyncio.Semaphore]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def read_history(self, request: ReadHistoryRequest) -> None:
        """Opens a read, lets more pages of one come, or gives one up."""
        if not request.more:
            credit = asyncio.Semaphore(request.pages or 1)
            self._reads[request.read] = (self._start(self._run_read(request, credit)), credit)
            return
        open_read = self._reads.get(request.read)
        if open_read is None:
            return
        task, more = open_read
        if request.pages == 0:
            task.cancel()
            del self._reads[request.read]
            return
        for _ in range(request.pages):
            more.release()

    def mint_token(self, request: MintTokenRequest) -> None:
        self._start(self._run_mint(request))

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()

    def _start(self, work: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _run_read(self, request: ReadHistoryRequest, credit: asyncio.Semaphore) -> None:
        asked = ReadHistoryRequest(from_seq=request.from_seq, to_seq=request.to_seq)
        last = HistoryPage(read=request.read, last=True)
        try:
            pages: AsyncIterator[HistoryPage] = self._read(asked, metadata=self._metadata).__aiter__()
            while True:
                # A page is taken off the stream when it may be handed on, so that gRPC holds the host back.
                await credit.acquire()
                page = await anext(pages, None)
                if page is None:
                    last.error.CopyFrom(WireError(code=14, description="the host ended the history early"))
                    break
                page.read = request.read
                self._answer(HostFrame(history=page))
                if page.last or page.HasField("error"):
                    return
        except grpc.aio.AioRpcError as error:
            last.error.CopyFrom(_error_of(error))
        finally:
            self._reads.pop(request.read, None)
        self._answer(HostFrame(history=last))

    async def _run_mint(self, request: MintTokenRequest) -> None:
        try:
            response = await self._mint(MintTokenRequest(audience=request.audience), metadata=self._metadata)
        except grpc.aio.AioRpcError as error:
            response = MintTokenResponse(error=_error_of(error))
        response.request = request.request
        self._answer(HostFrame(token=response))


def _error_of(error: grpc.aio.AioRpcError) -> WireError:
    return WireError(code=error.code().value[0], description=error.details() or "the host gave no reason")
