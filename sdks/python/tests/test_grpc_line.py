"""The line over gRPC, and serving, on a unix socket and on TCP, with a real client."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import grpc
import grpc.aio
import pytest

from holdfast_harness import EventKind, Harness, HoldfastError, Sink, Start, serve_async, text_message
from holdfast_harness._gen.agentsessions.v1.harness_pb2 import DescribeRequest
from holdfast_harness._gen.holdfast.v1.harness_wire_pb2 import HarnessFrame, HostFrame
from holdfast_harness.serving import shared_listener
from holdfast_harness.serving.framing import FrameDecoder, encode_frame

from .grpc_support import Served, frame, status_of
from .support import harness_of

HI = [text_message("user", "hi")]
METADATA = (("holdfast-model", "gpt-x"), ("holdfast-history-last-seq", "3"))


@pytest.fixture(params=["unix", "tcp"])
def listen(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"unix://{tmp_path}/harness.sock" if request.param == "unix" else "127.0.0.1:0"


async def ask_once(start: Start, sink: Sink) -> None:
    response = await sink.model(start.inputs)
    await sink.usage(response.usage)


class TestTheLine:
    async def test_carries_many_exchanges(self, listen: str) -> None:
        async with Served(harness_of(ask_once), listen) as served:
            line = await served.line()
            await line.write(HostFrame(exchange=1, describe={}))
            assert (await line.read()).descriptor.id == "test"
            for exchange in (2, 3):
                await line.write(HostFrame(exchange=exchange, open={"model": "m"}))
                await line.write(HostFrame(exchange=exchange, controller=frame(start={})))
                asked = await line.read()
                assert (asked.exchange, asked.event.model.id) == (exchange, "m1")
            await line.done_writing()
            assert await line.read() is grpc.aio.EOF
            assert await line.code() == grpc.StatusCode.OK

    async def test_a_broken_line_says_which_rule(self, listen: str) -> None:
        async with Served(harness_of(ask_once), listen) as served:
            line = await served.line()
            await line.write(HostFrame(exchange=1, end={}))
            with pytest.raises(grpc.aio.AioRpcError):
                await line.read()
            code, details = await status_of(line)
            assert (code, details) == (grpc.StatusCode.INTERNAL, "harness wire: an exchange must begin with describe or open")

    async def test_a_host_that_does_not_read_slows_the_run_down(self, listen: str) -> None:
        sent = 0

        async def run(start: Start, sink: Sink) -> None:
            nonlocal sent
            for _ in range(1_000):
                await sink.output("x" * 100_000)
                sent += 1

        async with Served(harness_of(run), listen) as served:
            line = await served.line()
            await line.write(HostFrame(exchange=1, open={}))
            await line.write(HostFrame(exchange=1, controller=frame(start={})))
            still = 0
            while still < 5:
                before = sent
                await asyncio.sleep(0.05)
                still = still + 1 if 0 < sent == before else 0
            assert sent < 500
            got = 0
            while not (item := await line.read()).HasField("end"):
                got += 1
            assert (got, item.end.code) == (1_001, 0)


class TestServing:
    async def test_cancelling_it_cancels_what_runs_and_waits_for_it(self, listen: str) -> None:
        cleaned = asyncio.Event()

        async def run(start: Start, sink: Sink) -> None:
            try:
                await sink.model(HI, model="m")
            finally:
                cleaned.set()

        async with Served(harness_of(run), listen) as served:
            call = await served.connect()
            await call.read()
            await served.stop()
            assert cleaned.is_set()
            with pytest.raises(grpc.aio.AioRpcError):
                await call.read()

    async def test_an_address_that_cannot_be_bound_is_said_so(self) -> None:
        with pytest.raises(HoldfastError, match="its address cannot be listened on") as caught:
            await serve_async(harness_of(ask_once), "unix:///no/such/folder/x.sock")
        assert caught.value.code == "unavailable"

    async def test_an_address_that_another_harness_is_served_on_stays_its_own(self, listen: str) -> None:
        async with Served(harness_of(ask_once, id="first"), listen) as served:
            taken = served.address
            with pytest.raises(HoldfastError) as caught:
                await serve_async(harness_of(ask_once), taken)
            assert caught.value.code == "unavailable"
            assert (await served.describe(DescribeRequest())).id == "first"

    async def test_a_socket_that_was_left_behind_is_no_hindrance(self, tmp_path: Path) -> None:
        left = socket.socket(socket.AF_UNIX)
        left.bind(f"{tmp_path}/left.sock")
        left.close()
        async with Served(harness_of(ask_once, id="next"), f"unix://{tmp_path}/left.sock") as served:
            assert (await served.describe(DescribeRequest())).id == "next"

    async def test_a_harness_without_a_run_is_not_served(self) -> None:
        with pytest.raises(TypeError, match="it has no run"):
            await serve_async(Harness(id="x", version="1"), "127.0.0.1:0")

    async def test_the_environment_says_where(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOLDFAST_HARNESS_LISTEN", "unix://relative")
        with pytest.raises(HoldfastError, match="HOLDFAST_HARNESS_LISTEN: must be stdio"):
            await serve_async(harness_of(ask_once))
        monkeypatch.setenv("HOLDFAST_HARNESS_LISTEN", "127.0.0.1:0")
        async with Served(harness_of(ask_once), None) as served:
            assert (await served.describe(DescribeRequest())).id == "test"


class Stream:
    """A host's end of a line on a connection of its own."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._decoder = FrameDecoder(HarnessFrame, 1_000_000)
        self._frames: list[HarnessFrame] = []

    async def __aenter__(self) -> Stream:
        if self._address.startswith("unix://"):
            self.reader, self.writer = await asyncio.open_unix_connection(self._address.removeprefix("unix://"))
        else:
            host, port = self._address.split(":")
            self.reader, self.writer = await asyncio.open_connection(host, int(port))
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()
        await self.writer.wait_closed()

    def send(self, host_frame: HostFrame) -> None:
        self.writer.write(encode_frame(host_frame))

    async def greet(self) -> None:
        self.send(HostFrame(hello={"protocol": 1, "frame_bytes_max": 1_000_000}))
        assert (await self.next()).hello.pulls_history

    async def next(self) -> HarnessFrame:
        while not self._frames:
            data = await asyncio.wait_for(self.reader.read(65_536), 5)
            if not data:
                raise EOFError
            self._frames.extend(self._decoder.feed(data))
        return self._frames.pop(0)


class TestALineOnAConnectionOfItsOwn:
    async def test_is_told_of_by_describe_and_carries_exchanges_beside_grpc(self, listen: str) -> None:
        async with Served(harness_of(ask_once), listen) as served, Stream(served.address) as stream:
            call = served.describe(DescribeRequest())
            assert dict(tuple(await call.initial_metadata()))["holdfast-line"] == "stream"
            await stream.greet()
            stream.send(HostFrame(exchange=1, open={"model": "m"}))
            stream.send(HostFrame(exchange=1, controller=frame(start={})))
            asked = await stream.next()
            result = {"message": {}, "model_call_id": asked.event.model.id}
            stream.send(HostFrame(exchange=1, controller=frame(model=result)))
            assert (await stream.next()).event.kind == EventKind.EVENT_USAGE
            assert (await stream.next()).event.end.state == "COMPLETED"
            assert (await stream.next()).end.code == 0
            assert (await served.describe(DescribeRequest())).id == "test"

    async def test_cancels_its_runs_when_the_host_leaves(self, listen: str) -> None:
        cancelled = asyncio.Event()

        async def run(start: Start, sink: Sink) -> None:
            try:
                await sink.model(HI, model="m")
            finally:
                cancelled.set()

        async with Served(harness_of(run), listen) as served:
            async with Stream(served.address) as stream:
                await stream.greet()
                stream.send(HostFrame(exchange=1, open={}))
                stream.send(HostFrame(exchange=1, controller=frame(start={})))
                await stream.next()
            await asyncio.wait_for(cancelled.wait(), 5)

    @pytest.mark.parametrize("sent", [b"\0\0\0\x02\xff\xff", b"\xff\xff\xff\xff", encode_frame(HostFrame(exchange=1)), b"\0"])
    async def test_is_closed_where_it_breaks_and_no_other_with_it(self, listen: str, sent: bytes) -> None:
        async with Served(harness_of(ask_once), listen) as served, Stream(served.address) as other:
            await other.greet()
            async with Stream(served.address) as stream:
                stream.writer.write(sent)
                stream.writer.write_eof()
                assert await asyncio.wait_for(stream.reader.read(), 5) == b""
            other.send(HostFrame(exchange=1, describe={}))
            assert (await other.next()).descriptor.id == "test"

    async def test_a_connection_that_says_nothing_is_closed(self, listen: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(shared_listener, "FIRST_BYTE_TIMEOUT_S", 0.05)
        async with Served(harness_of(ask_once), listen) as served, Stream(served.address) as stream:
            assert await asyncio.wait_for(stream.reader.read(), 5) == b""

    async def test_is_closed_when_serving_ends(self, listen: str) -> None:
        async with Served(harness_of(ask_once), listen) as served, Stream(served.address) as stream:
            await stream.greet()
            await served.stop()
            with pytest.raises(EOFError):
                await stream.next()
        if served.address.startswith("unix://"):
            assert not Path(served.address.removeprefix("unix://")).exists()  # noqa: ASYNC240
