"""What a host may not send within an execution."""

from __future__ import annotations

import asyncio

import pytest

from holdfast_harness import (
    Sink,
    Start,
    ToolCall,
    text_message,
)

from .support import Host, StartFrame

HI = [text_message("user", "hi")]


class TestProtocolFaultsOfTheHost:
    """Each ends the exchange with INTERNAL and the rule; the run is cancelled."""

    @pytest.mark.parametrize(
        ("send", "rule"),
        [
            (lambda host: host.control(start=StartFrame()), "an execution has two starts"),
            (lambda host: host.control(session="other", cancel={}), "another session or execution"),
            (lambda host: host.control(execution="other", cancel={}), "another session or execution"),
            (lambda host: host.control(), "a controller frame is empty"),
            (lambda host: host.complete("m9"), "a model's result answers nothing that was asked"),
            (lambda host: host.finish_tool("c9"), "a tool's result answers nothing that was asked"),
            (lambda host: host.control(model={"model_call_id": "m1"}), "a model's result has no message"),
            (lambda host: host.park("c9"), "a park answers nothing that was asked"),
            (lambda host: host.park("c1", 0), "a park must name this execution and the seq of its request"),
            (lambda host: host.refuse(3), "a refusal names no event of this execution"),
            (lambda host: host.refuse(0), "a refusal names no event of this execution"),
            (lambda host: host.send(1, history={"read": 1}), "a page of history answers no read"),
            (lambda host: host.send(1, token={"request": 1}), "a token answers no request"),
            (lambda host: host.send(1, describe={}), "describe has no place in an execution"),
            (lambda host: host.send(1, open={}), "open has no place in an execution"),
            (lambda host: host.send(1), "an empty frame has no place in an execution"),
        ],
    )
    async def test_after_the_start(self, send, rule: str) -> None:  # type: ignore[no-untyped-def]
        stopped = asyncio.Event()

        async def run(start: Start, sink: Sink) -> None:
            try:
                await asyncio.gather(sink.model(HI), sink.tool_call(ToolCall(id="c1", tool="t")))
            except asyncio.CancelledError:
                stopped.set()
                raise

        host = Host(run)
        host.begin()
        await host.event()
        await host.event()
        send(host)
        end = await host.ended()
        assert end.code == 13
        assert rule in end.description
        await asyncio.wait_for(stopped.wait(), 5)
        await host.end.unwound()
        await host.silent()

    @pytest.mark.parametrize(
        ("send", "rule"),
        [
            (lambda host: host.cancel(), "the first frame of an execution must be its start"),
            (lambda host: host.refuse(1), "the first frame of an execution must be its start"),
            (lambda host: host.control(session="", start=StartFrame()), "must name its session and its execution"),
            (lambda host: host.control(execution="", start=StartFrame()), "must name its session and its execution"),
            (lambda host: host.control(start=StartFrame(history=[{}])), "another history than its opening says"),
        ],
    )
    async def test_before_the_start(self, send, rule: str) -> None:  # type: ignore[no-untyped-def]
        async def run(start: Start, sink: Sink) -> None:
            raise AssertionError("it must not begin")

        host = Host(run)
        host.send(1, open={})
        send(host)
        end = await host.ended()
        assert (end.code, rule in end.description) == (13, True)
