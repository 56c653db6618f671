"""A harness behind gRPC, on a unix socket and on TCP, with a real client."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import grpc.aio
import pytest
from holdfast_harness import Event, EventKind, Harness, HarnessFailure, HoldfastError, Mediation, Sink, Start, serve_async, text_message
from holdfast_harness._gen.agentsessions.v1.harness_pb2 import ControllerFrame, DescribeRequest, HarnessDescriptor
from holdfast_harness._gen.holdfast.v1.harness_wire_pb2 import (
    HarnessFrame,
    HistoryPage,
    HostFrame,
    MintTokenRequest,
    MintTokenResponse,
    ReadHistoryRequest,
)

import grpc

from .support import EXECUTION, SESSION, harness_of

HI = [text_message("user", "hi")]
METADATA = (("holdfast-model", "gpt-x"), ("holdfast-history-last-seq", "3"))


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


@pytest.fixture(params=["unix", "tcp"])
def listen(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"unix://{tmp_path}/harness.sock" if request.param == "unix" else "127.0.0.1:0"


async def ask_once(start: Start, sink: Sink) -> None:
    response = await sink.model(start.inputs)
    await sink.usage(response.usage)


async def status_of(call: Any) -> tuple[grpc.StatusCode, str]:
    return await call.code(), await call.details()


class TestTheContract:
    async def test_describe_says_what_the_harness_is_and_what_it_speaks(self, listen: str) -> None:
        async with Served(harness_of(ask_once, id="x", version="2"), listen) as served:
            call = served.describe(DescribeRequest())
            metadata = dict(tuple(await call.initial_metadata()))
            assert (metadata["holdfast-wire"], metadata["holdfast-history"]) == ("1", "pull")
            assert (await call).id == "x"

    async def test_connect_drives_one_execution(self, listen: str) -> None:
        async with Served(harness_of(ask_once), listen) as served:
            call = await served.connect(METADATA, inputs=HI, history=[{}, {}, {}])
            asked = await call.read()
            assert (asked.kind, asked.model.model, asked.execution_id) == (EventKind.EVENT_MODEL_CALL, "gpt-x", EXECUTION)
            result = {"message": text_message("assistant", "ok"), "usage": {"input_tokens": 5}, "model_call_id": asked.model.id}
            await call.write(frame(model=result))
            assert (await call.read()).usage.input_tokens == 5
            assert (await call.read()).end.state == "COMPLETED"
            assert await call.read() is grpc.aio.EOF
            assert await status_of(call) == (grpc.StatusCode.OK, "")

    async def test_a_park_is_answered_and_closes_without_an_end(self, listen: str) -> None:
        async def run(start: Start, sink: Sink) -> None:
            await sink.tool_call("t", id="c1", mediation=Mediation.MEDIATION_REQUIRES_APPROVAL)

        async with Served(harness_of(run), listen) as served:
            call = await served.connect()
            await call.read()
            ref = {"execution_id": EXECUTION, "tool_call_id": "c1", "request_seq": 4}
            await call.write(frame(park=ref))
            assert (await call.read()).parked.request_seq == 4
            assert await call.read() is grpc.aio.EOF
            assert await call.code() == grpc.StatusCode.OK

    async def test_a_cancel_ends_canceled(self, listen: str) -> None:
        async with Served(harness_of(ask_once), listen) as served:
            call = await served.connect(METADATA[:1])
            await call.read()
            await call.write(frame(cancel={"reason": "USER"}))
            await call.done_writing()
            end = await call.read()
            assert (end.kind, end.end.state, end.execution_id) == (EventKind.EVENT_END, "CANCELED", EXECUTION)
            assert await call.read() is grpc.aio.EOF
            assert await call.code() == grpc.StatusCode.OK

    @pytest.mark.parametrize(
        ("raised", "code", "details", "said"),
        [
            (HoldfastError("unavailable", "model: try later"), grpc.StatusCode.UNAVAILABLE, "model: try later", "unavailable"),
            (ValueError("no"), grpc.StatusCode.UNKNOWN, "ValueError: no", None),
        ],
    )
    async def test_a_run_that_raised_is_a_status_without_an_end(
        self, listen: str, raised: Exception, code: grpc.StatusCode, details: str, said: str | None
    ) -> None:
        async def run(start: Start, sink: Sink) -> None:
            raise raised

        async with Served(harness_of(run), listen) as served:
            call = await served.connect()
            with pytest.raises(grpc.aio.AioRpcError):
                await call.read()
            assert await status_of(call) == (code, details)
            assert dict(tuple(await call.trailing_metadata())).get("holdfast-code") == said

    async def test_a_failure_is_an_end_and_not_a_status(self, listen: str) -> None:
        async def run(start: Start, sink: Sink) -> None:
            raise HarnessFailure("not_found", "no such thing")

        async with Served(harness_of(run), listen) as served:
            call = await served.connect()
            assert (await call.read()).end.error.code == 5
            assert await call.read() is grpc.aio.EOF
            assert await call.code() == grpc.StatusCode.OK

    @pytest.mark.parametrize(
        ("metadata", "first", "rule"),
        [
            ((), {"cancel": {"reason": "USER"}}, "frame: the first one must be the start"),
            ((("holdfast-history-last-seq", "many"),), {"start": {}}, "holdfast-history-last-seq: must be a whole number"),
        ],
    )
    async def test_a_host_that_breaks_the_protocol_is_told_the_rule(
        self, listen: str, metadata: tuple[tuple[str, str], ...], first: dict[str, Any], rule: str
    ) -> None:
        async with Served(harness_of(ask_once), listen) as served:
            call = served._connect(metadata=metadata)
            await call.write(frame(**first))
            with pytest.raises(grpc.aio.AioRpcError):
                await call.read()
            code, details = await status_of(call)
            assert (code, rule in details) == (grpc.StatusCode.INVALID_ARGUMENT, True)

    @pytest.mark.parametrize("leave", [lambda call: call.cancel(), lambda call: call.done_writing()])
    async def test_a_host_that_goes_away_cancels_the_run(self, listen: str, leave: Callable[[Any], Any]) -> None:
        cancelled = asyncio.Event()

        async def run(start: Start, sink: Sink) -> None:
            try:
                await sink.model(HI, model="m")
            except asyncio.CancelledError:
                cancelled.set()
                raise

        async with Served(harness_of(run), listen) as served:
            call = await served.connect()
            await call.read()
            left = leave(call)
            if asyncio.iscoroutine(left):
                await left
            await asyncio.wait_for(cancelled.wait(), 5)


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


class TestWhatTheContractHasNoFrameFor:
    async def test_history_is_pulled_with_the_credential_of_the_call(self, listen: str) -> None:
        async def run(start: Start, sink: Sink) -> None:
            whole = [event.message.parts[0].text.text async for _, event in start.history]
            part = [seq async for seq, _ in start.history.events(4, 5)]
            await sink.output(f"{start.history.last_seq} {whole == [str(seq) for seq in range(1, 8)]} {part}")

        async with FakeHost(events=7, page_events=2) as metadata, Served(harness_of(run), listen) as served:
            call = await served.connect(metadata)
            assert (await call.read()).message.parts[0].text.text == "7 True [4, 5]"
            assert (await call.read()).end.state == "COMPLETED"

    async def test_a_history_that_is_not_read_to_its_end_is_not_fetched_to_its_end(self, listen: str) -> None:
        async def run(start: Start, sink: Sink) -> None:
            first = await anext(start.history.pages())
            await sink.output(str(first.first_seq))

        host = FakeHost(events=2_000, page_events=1)
        # Each page is large, so that the stream's own window holds a few of them only.
        host.history = [Event(kind=EventKind.EVENT_INPUT, message=text_message("user", "x" * 100_000))] * 2_000
        async with host as metadata, Served(harness_of(run), listen) as served:
            call = await served.connect(metadata)
            await call.read()
            assert (await call.read()).end.state == "COMPLETED"
            assert host.pages_sent < 500

    async def test_tokens_are_minted_by_the_host(self, listen: str) -> None:
        async def run(start: Start, sink: Sink) -> None:
            await sink.output(await start.identity.mint_token(["a", "b"]))
            await start.identity.mint_token("forbidden")

        async with FakeHost(events=0, page_events=1) as metadata, Served(harness_of(run), listen) as served:
            call = await served.connect(metadata, identity={"can_mint_tokens": True})
            assert (await call.read()).message.parts[0].text.text == "for a b"
            with pytest.raises(grpc.aio.AioRpcError):
                await call.read()
            assert await status_of(call) == (grpc.StatusCode.PERMISSION_DENIED, "identity: not for this audience")

    async def test_a_credential_that_is_not_known_fails_the_read(self, listen: str) -> None:
        async def run(start: Start, sink: Sink) -> None:
            await anext(start.history.pages())

        async with FakeHost(events=3, page_events=1) as metadata, Served(harness_of(run), listen) as served:
            call = await served.connect((metadata[0], ("holdfast-credential", "stale"), metadata[2]))
            with pytest.raises(grpc.aio.AioRpcError):
                await call.read()
            assert await call.code() == grpc.StatusCode.UNAUTHENTICATED

    async def test_a_history_that_was_pushed_is_not_pulled(self, listen: str) -> None:
        async def run(start: Start, sink: Sink) -> None:
            await sink.output(str(len([seq async for seq, _ in start.history])))

        host = FakeHost(events=3, page_events=1)
        async with host as metadata, Served(harness_of(run), listen) as served:
            call = await served.connect(metadata, history=host.history)
            assert (await call.read()).message.parts[0].text.text == "3"
        assert host.pages_sent == 0


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
            before = -1
            while before != sent:
                before = sent
                await asyncio.sleep(0.2)
            assert 0 < sent < 500
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
