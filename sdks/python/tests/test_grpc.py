"""The contract's own calls, on a unix socket and on TCP, with a real client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from holdfast_harness import Event, EventKind, HarnessFailure, HoldfastError, Mediation, Sink, Start, text_message
from holdfast_harness._gen.agentsessions.v1.harness_pb2 import DescribeRequest

from .grpc_support import FakeHost, Served, frame, status_of
from .support import EXECUTION, harness_of

HI = [text_message("user", "hi")]
METADATA = (("holdfast-model", "gpt-x"), ("holdfast-history-last-seq", "3"))


@pytest.fixture(params=["unix", "tcp"])
def listen(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"unix://{tmp_path}/harness.sock" if request.param == "unix" else "127.0.0.1:0"


async def ask_once(start: Start, sink: Sink) -> None:
    response = await sink.model(start.inputs)
    await sink.usage(response.usage)


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
