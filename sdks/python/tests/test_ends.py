"""How an execution ends: of itself, by a cancel, a refusal or a park."""

from __future__ import annotations

import asyncio
import logging

import pytest

from holdfast_harness import (
    ApprovalParked,
    EventKind,
    HarnessFailure,
    HoldfastError,
    Sink,
    Start,
    ToolCall,
    ToolResult,
    text_message,
)

from .support import EXECUTION, Host

HI = [text_message("user", "hi")]


class TestTheEnd:
    async def test_a_failure_is_end_failed(self) -> None:
        async def run(start: Start, sink: Sink) -> None:
            raise HarnessFailure("failed_precondition", "model: none is set")

        host = Host(run)
        host.begin()
        end = (await host.event()).end
        assert (end.state, end.error.code, end.error.description) == ("FAILED", 9, "model: none is set")
        assert (await host.ended()).code == 0

    async def test_an_error_of_ours_goes_as_it_is(self) -> None:
        async def run(start: Start, sink: Sink) -> None:
            raise HoldfastError("unavailable", "model: try later")

        host = Host(run)
        host.begin()
        end = await host.ended()
        assert (end.code, end.description) == (14, "model: try later")

    async def test_any_other_exception_is_unknown_and_its_traceback_is_logged(self, caplog: pytest.LogCaptureFixture) -> None:
        async def run(start: Start, sink: Sink) -> None:
            raise ValueError("no good" + "!" * 2_000)

        host = Host(run)
        host.begin()
        end = await host.ended()
        assert (end.code, len(end.description)) == (2, 1_000)
        assert end.description.startswith("ValueError: no good!")
        assert "Traceback" in caplog.text

    async def test_calls_that_still_wait_are_cancelled(self) -> None:
        left: list[asyncio.Task[ToolResult]] = []

        async def run(start: Start, sink: Sink) -> None:
            left.append(asyncio.create_task(sink.tool_call(ToolCall(id="c1", tool="t"))))
            await asyncio.sleep(0)

        host = Host(run)
        host.begin()
        await host.event()
        await host.completed()
        assert left[0].cancelled()

    async def test_a_last_event_that_is_too_large_ends_with_the_reason(self) -> None:
        async def run(start: Start, sink: Sink) -> None:
            raise HarnessFailure("internal", "x" * 2_000)

        host = Host(run, frame_bytes_max=1_000)
        host.begin()
        end = await host.ended()
        assert end.code == 8
        assert end.description.startswith("end: takes")


class TestACancel:
    async def test_is_a_cancelled_error_with_its_reason(self) -> None:
        seen: list[object] = []

        async def run(start: Start, sink: Sink) -> None:
            try:
                await sink.model(HI)
            except asyncio.CancelledError as error:
                seen.extend([error.args, start.cancellation.reason])
                raise

        host = Host(run)
        host.begin()
        await host.event()
        host.cancel("TIMEOUT")
        end = await host.ended()
        assert (end.code, end.description) == (1, "the run was cancelled")
        assert seen == [("TIMEOUT",), "TIMEOUT"]

    async def test_stops_a_run_that_has_not_begun(self) -> None:
        async def run(start: Start, sink: Sink) -> None:
            raise AssertionError("it must not begin")

        host = Host(run)
        host.begin()
        host.cancel()
        assert (await host.ended()).code == 1

    async def test_lets_nothing_more_happen_even_where_it_is_swallowed(self) -> None:
        async def run(start: Start, sink: Sink) -> None:
            try:
                await sink.model(HI)
            except asyncio.CancelledError:
                with pytest.raises(HoldfastError, match=r"turn: it was cancelled \(USER\)"):
                    await sink.output("one more thing")

        host = Host(run)
        host.begin()
        await host.event()
        host.cancel()
        assert (await host.ended()).code == 1

    async def test_waits_for_the_run_to_clean_up(self) -> None:
        clean = asyncio.Event()

        async def run(start: Start, sink: Sink) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await clean.wait()

        host = Host(run)
        host.begin()
        await asyncio.sleep(0)
        host.cancel()
        await host.silent()
        clean.set()
        assert (await host.ended()).code == 1

    async def test_the_hosts_own_end_silences_a_run(self) -> None:
        unwound = asyncio.Event()

        async def run(start: Start, sink: Sink) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                unwound.set()

        host = Host(run)
        host.begin()
        await asyncio.sleep(0)
        host.send(1, end={"code": 1, "description": "not waited for"})
        await asyncio.wait_for(unwound.wait(), 5)
        await host.end.unwound()
        await host.silent()


class TestARefusal:
    async def test_is_raised_where_the_effect_is_waited_for_and_the_run_goes_on(self) -> None:
        async def run(start: Start, sink: Sink) -> None:
            with pytest.raises(HoldfastError) as caught:
                await sink.tool_call(ToolCall(id="c1", tool="t"))
            assert (caught.value.code, caught.value.message) == ("failed_precondition", "tool: no such tool")
            await sink.output("without it")

        host = Host(run)
        host.begin()
        await host.event()
        host.refuse(1)
        await host.event()
        await host.completed()

    async def test_of_what_nobody_waits_for_is_raised_by_every_later_effect(self) -> None:
        errors: list[str] = []
        refused = asyncio.Event()

        async def run(start: Start, sink: Sink) -> None:
            await sink.output("one")
            await refused.wait()
            for _ in range(2):
                try:
                    await sink.output("two")
                except HoldfastError as error:
                    errors.append(error.code)

        host = Host(run)
        host.begin()
        await host.event()
        host.refuse(1, 8, "turn: it is full")
        refused.set()
        end = await host.ended()
        assert (end.code, end.description) == (8, "turn: it is full")
        assert errors == ["resource_exhausted", "resource_exhausted"]

    async def test_with_a_code_that_is_not_known_is_internal(self) -> None:
        async def run(start: Start, sink: Sink) -> None:
            await sink.model(HI)

        host = Host(run)
        host.begin()
        await host.event()
        host.refuse(1, 99, "what is this")
        assert (await host.ended()).code == 13


class TestAPark:
    async def test_unwinds_the_run_and_is_acknowledged_with_the_same_reference(self) -> None:
        cleaned: list[bool] = []

        async def run(start: Start, sink: Sink) -> None:
            try:
                await sink.tool_call(ToolCall(id="c1", tool="send"))
            except Exception:
                raise AssertionError("a park is no Exception") from None
            finally:
                cleaned.append(True)

        host = Host(run)
        host.begin()
        await host.event()
        ref = host.park("c1")
        event = await host.event()
        assert (event.kind, event.parked, event.execution_id) == (EventKind.EVENT_PARKED, ref, EXECUTION)
        assert (await host.ended()).code == 0
        assert cleaned == [True]

    async def test_of_one_of_several_parallel_calls(self) -> None:
        async def run(start: Start, sink: Sink) -> None:
            await asyncio.gather(*(sink.tool_call(ToolCall(id=f"c{number}", tool="send")) for number in range(3)))

        host = Host(run)
        host.begin()
        for _ in range(3):
            await host.event()
        host.finish_tool("c0")
        host.park("c1", 7)
        host.park("c2", 8)
        assert (await host.event()).parked.tool_call_id == "c1"
        assert (await host.ended()).code == 0

    async def test_wrapped_by_its_author_is_still_a_park(self) -> None:
        async def run(start: Start, sink: Sink) -> None:
            try:
                await sink.tool_call(ToolCall(id="c1", tool="send"))
            except ApprovalParked as park:
                raise RuntimeError("the node failed") from park

        host = Host(run)
        host.begin()
        await host.event()
        host.park("c1")
        assert (await host.event()).kind == EventKind.EVENT_PARKED
        assert (await host.ended()).code == 0

    async def test_together_with_another_failure_is_that_failure(self, caplog: pytest.LogCaptureFixture) -> None:
        async def run(start: Start, sink: Sink) -> None:
            try:
                await sink.tool_call(ToolCall(id="c1", tool="send"))
            finally:
                raise ValueError("the database is gone")

        host = Host(run)
        host.begin()
        await host.event()
        host.park("c1")
        with caplog.at_level(logging.ERROR):
            assert (await host.ended()).code == 2

    async def test_that_is_swallowed_fails_the_run_and_says_so(self) -> None:
        async def run(start: Start, sink: Sink) -> None:
            await asyncio.gather(sink.tool_call(ToolCall(id="c1", tool="send")), return_exceptions=True)

        host = Host(run)
        host.begin()
        await host.event()
        host.park("c1")
        end = await host.ended()
        assert (end.code, end.description) == (9, "harness: it went on although its call was parked; it must let the park pass")

    async def test_that_is_swallowed_is_not_made_good_by_what_comes_after(self) -> None:
        async def run(start: Start, sink: Sink) -> None:
            await asyncio.gather(sink.tool_call(ToolCall(id="c1", tool="send")), return_exceptions=True)
            await sink.output("on we go")

        host = Host(run)
        host.begin()
        await host.event()
        host.park("c1")
        assert (await host.event()).kind == EventKind.EVENT_OUTPUT
        assert (await host.ended()).code == 9
