"""The line: its opening, its exchanges, and what breaks it."""

from __future__ import annotations

import asyncio

import pytest

from holdfast_harness import HoldfastError, ProtocolFault, Sink, Start, ToolSpec

from .support import Host, HostHello, harness_of


async def idle(start: Start, sink: Sink) -> None:
    await asyncio.Event().wait()


async def done(start: Start, sink: Sink) -> None:
    return None


class TestTheOpening:
    async def test_a_hello_is_answered_with_ours(self) -> None:
        host = Host(done, greet=False)
        host.send(0, hello=HostHello(protocol=1, frame_bytes_max=1_000))
        frame = await host.next()
        assert frame.exchange == 0
        assert (frame.hello.protocol, frame.hello.pulls_history, frame.hello.frame_bytes_max) == (1, True, 64 * 1024 * 1024)

    @pytest.mark.parametrize(
        ("exchange", "body", "rule"),
        [
            (1, {"describe": {}}, "the first frame must be the host's hello"),
            (0, {"describe": {}}, "the first frame must be the host's hello"),
            (1, {"hello": {"protocol": 1}}, "the first frame must be the host's hello"),
            (0, {"hello": {"protocol": 2}}, "protocol 2 is not spoken here; 1 is"),
        ],
    )
    async def test_anything_else_breaks_the_line(self, exchange: int, body: dict[str, object], rule: str) -> None:
        host = Host(done, greet=False)
        with pytest.raises(ProtocolFault, match=rule):
            host.send(exchange, **body)
        assert host.line.sent.empty()

    async def test_a_second_hello_breaks_it(self) -> None:
        host = Host(done)
        with pytest.raises(ProtocolFault, match="exchange 0 holds the host's hello and nothing else"):
            host.send(0, hello={"protocol": 1})


class TestExchanges:
    async def test_describe_is_answered_with_the_descriptor(self) -> None:
        host = Host(harness_of(done, id="x", version="3", models=["m"], tools=[ToolSpec(name="t")]))
        host.send(1, describe={})
        frame = await host.next()
        assert frame.exchange == 1
        assert (frame.descriptor.id, frame.descriptor.version, list(frame.descriptor.models)) == ("x", "3", ["m"])
        assert [tool.name for tool in frame.descriptor.tools] == ["t"]
        assert frame.descriptor.capabilities.fork_safe

    async def test_several_executions_run_at_once(self) -> None:
        order: list[str] = []

        async def run(start: Start, sink: Sink) -> None:
            await sink.model([])
            order.append(start.execution_id)

        host = Host(run)
        for exchange, execution in ((1, "one"), (2, "two")):
            host.send(exchange, open={"model": "m"})
            host.control(exchange, execution=execution, start={})
        calls = [await host.next() for _ in range(2)]
        assert [(frame.exchange, frame.event.execution_id) for frame in calls] == [(1, "one"), (2, "two")]
        assert host.end.running == 2
        for exchange, execution in ((2, "two"), (1, "one")):
            host.control(exchange, execution=execution, model={"message": {}, "model_call_id": "m1"})
            assert (await host.next()).event.end.state == "COMPLETED"
            assert (await host.next()).end.code == 0
        assert order == ["two", "one"]
        assert host.end.running == 0

    async def test_a_fault_in_one_ends_that_one_only(self) -> None:
        host = Host(idle)
        host.begin(1)
        host.begin(2)
        host.complete("m9", exchange=1)
        frame = await host.next()
        assert (frame.exchange, frame.end.code) == (1, 13)
        await host.silent()
        assert host.end.running == 1
        host.cancel(exchange=2)
        assert (await host.next()).exchange == 2

    async def test_a_frame_that_crossed_the_end_is_passed_over(self) -> None:
        host = Host(done)
        host.begin(1)
        await host.completed()
        host.cancel()
        host.send(1, end={})
        await host.silent()
        host.begin(2)
        assert (await host.next()).exchange == 2

    @pytest.mark.parametrize("body", [{"controller": {}}, {"end": {}}, {}])
    async def test_one_that_was_never_opened_breaks_the_line(self, body: dict[str, object]) -> None:
        host = Host(done)
        with pytest.raises(ProtocolFault, match="an exchange must begin with describe or open"):
            host.send(1, **body)

    async def test_a_number_is_not_used_again(self) -> None:
        host = Host(done)
        host.send(5, describe={})
        await host.next()
        host.send(3, describe={})
        host.send(5, describe={})
        await host.silent()


class TestTheEndOfTheLine:
    async def test_cancels_every_run_and_sends_nothing(self) -> None:
        cancelled: list[str] = []

        async def run(start: Start, sink: Sink) -> None:
            try:
                await sink.model([])
            except asyncio.CancelledError:
                cancelled.append(start.execution_id)
                with pytest.raises(HoldfastError, match="the line is closed"):
                    await sink.output("late")
                raise

        host = Host(run)
        host.begin(1)
        host.begin(2)
        await host.next()
        await host.next()
        host.end.close()
        await asyncio.wait_for(host.end.unwound(), 5)
        assert len(cancelled) == 2
        await host.silent()

    async def test_cancels_a_run_again_that_did_not_stop_at_its_cancel(self) -> None:
        async def run(start: Start, sink: Sink) -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                await asyncio.Event().wait()

        host = Host(run)
        host.begin()
        await asyncio.sleep(0)
        host.cancel()
        await host.silent()
        host.end.close()
        await asyncio.wait_for(host.end.unwound(), 5)

    async def test_an_effect_on_a_line_that_is_gone_is_unavailable(self) -> None:
        errors: list[str] = []
        go = asyncio.Event()

        async def run(start: Start, sink: Sink) -> None:
            await go.wait()
            try:
                await sink.output("x")
            except HoldfastError as error:
                errors.append(error.code)

        host = Host(run)
        host.begin()
        host.line.closed = True
        go.set()
        await asyncio.wait_for(host.end.unwound(), 5)
        assert errors == ["unavailable"]
