"""A harness that is served over gRPC, a client's calls of it, and a host's own service."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import grpc.aio

from holdfast_harness import Event, EventKind, Harness, serve_async, text_message
from holdfast_harness._gen.agentsessions.v1.harness_pb2 import ControllerFrame, DescribeRequest, HarnessDescriptor
from holdfast_harness._gen.holdfast.v1.harness_wire_pb2 import (
    HarnessFrame,
    HistoryPage,
    HostFrame,
    MintTokenRequest,
    MintTokenResponse,
    ReadHistoryRequest,
)

from .support import EXECUTION, SESSION


class Served:
    """A harness that is served, and a client's calls of it."""

    def __init__(self, harness: Harness, listen: str | None) -> None:
        self._harness = harness
        self._listen = listen

    async def __aenter__(self) -> Served:
        ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.task = asyncio.create_task(serve_async(self._harness, self._listen, ready=ready.set_result))
        await asyncio.wait((ready, self.task), return_when=asyncio.FIRST_COMPLETED)
        if not ready.done():
            await self.task
        self.address = ready.result()
        self.channel = grpc.aio.insecure_channel(self.address)
        self.describe: Any = self.channel.unary_unary(
            "/agentsessions.v1.Harness/Describe",
            request_serializer=DescribeRequest.SerializeToString,
            response_deserializer=HarnessDescriptor.FromString,
        )
        self._connect: Any = self.channel.stream_stream(
            "/agentsessions.v1.Harness/Connect",
            request_serializer=ControllerFrame.SerializeToString,
            response_deserializer=Event.FromString,
        )
        self._line: Any = self.channel.stream_stream(
            "/holdfast.v1.HarnessWire/Line",
            request_serializer=HostFrame.SerializeToString,
            response_deserializer=HarnessFrame.FromString,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.channel.close()
        await self.stop()

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.wait((self.task,))

    async def connect(self, metadata: tuple[tuple[str, str], ...] = (), **start: Any) -> Any:
        call = self._connect(metadata=metadata)
        await call.write(frame(start=start))
        return call

    async def line(self) -> Any:
        call = self._line()
        await call.write(HostFrame(hello={"protocol": 1, "frame_bytes_max": 1_000_000}))
        assert (await call.read()).hello.pulls_history
        return call


def frame(**body: Any) -> ControllerFrame:
    return ControllerFrame(session=SESSION, execution_id=EXECUTION, **body)


class FakeHost:
    """A host's HarnessHost service, for harnesses that it drives over Connect."""

    def __init__(self, events: int, page_events: int) -> None:
        self.history = [Event(kind=EventKind.EVENT_INPUT, message=text_message("user", str(seq))) for seq in range(1, events + 1)]
        self.page_events = page_events
        self.pages_sent = 0
        self.server: Any = grpc.aio.server()
        methods: dict[str, Any] = {
            "ReadHistory": grpc.unary_stream_rpc_method_handler(
                self.read_history,
                request_deserializer=ReadHistoryRequest.FromString,
                response_serializer=HistoryPage.SerializeToString,
            ),
            "MintToken": grpc.unary_unary_rpc_method_handler(
                self.mint_token,
                request_deserializer=MintTokenRequest.FromString,
                response_serializer=MintTokenResponse.SerializeToString,
            ),
        }
        self.server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("holdfast.v1.HarnessHost", methods),))

    async def __aenter__(self) -> tuple[tuple[str, str], ...]:
        port = self.server.add_insecure_port("127.0.0.1:0")
        await self.server.start()
        credential = ("holdfast-credential", "secret")
        return (("holdfast-host", f"127.0.0.1:{port}"), credential, ("holdfast-history-last-seq", str(len(self.history))))

    async def __aexit__(self, *_: object) -> None:
        await self.server.stop(None)

    async def check(self, context: Any) -> None:
        if dict(tuple(context.invocation_metadata())).get("authorization") != "Bearer secret":
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, "the credential is not known")

    async def read_history(self, request: ReadHistoryRequest, context: Any) -> AsyncIterator[HistoryPage]:
        await self.check(context)
        for at in range(request.from_seq, request.to_seq + 1, self.page_events):
            end = min(at - 1 + self.page_events, request.to_seq)
            self.pages_sent += 1
            yield HistoryPage(first_seq=at, events=self.history[at - 1 : end], last=end == request.to_seq)

    async def mint_token(self, request: MintTokenRequest, context: Any) -> MintTokenResponse:
        await self.check(context)
        if request.audience == ["forbidden"]:
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, "identity: not for this audience")
        return MintTokenResponse(token=f"for {' '.join(request.audience)}")


async def status_of(call: Any) -> tuple[grpc.StatusCode, str]:
    return await call.code(), await call.details()
