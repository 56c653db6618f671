"""One execution: effects, their answers, and how it ends."""

from __future__ import annotations

import asyncio
import logging

import pytest
from holdfast_harness import (
    ApprovalParked,
    EventKind,
    HarnessFailure,
    HoldfastError,
    Mediation,
    ModelResponse,
    Sink,
    Start,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
    dict_of,
    message_text,
    struct_of,
    text_message,
    tool_definition,
)

from .support import EXECUTION, SESSION, ApprovalResult, Host, IdentityContext, StartFrame, harness_of

HI = [text_message("user", "hi")]


class TestTheStart:
    async def test_reaches_the_run_whole(self) -> None:
        seen: list[Start] = []

        async def run(start: Start, sink: Sink) -> None:
            seen.append(start)

        host = Host(run)
        host.begin(config=b"{}", inputs=HI, resume_from_seq=-5)
        await host.completed()
        start = seen[0]
        assert (start.session_uid, start.execution_id, start.model) == (SESSION, EXECUTION, "echo")
        assert (start.config, list(start.inputs), start.resume_from_seq, start.replayed) == (b"{}", HI, -5, False)
        assert (start.history.last_seq, start.identity.principal, start.identity.can_mint_tokens) == (0, None, False)

    async def test_says_on_whose_behalf_the_turn_runs(self) -> None:
        seen: list[str] = []

        async def run(start: Start, sink: Sink) -> None:
            assert start.identity.principal is not None
            seen.append(start.identity.principal.principal)

        host = Host(run)
        identity = IdentityContext()
        identity.principal.principal = "ada"
        host.begin(identity=identity)
        await host.completed()
        assert seen == ["ada"]


class TestEffects:
    async def test_a_model_call_carries_the_whole_request_and_gets_its_completion(self) -> None:
        got: list[ModelResponse] = []
        search = tool_definition("search", "Searches.", {"type": "object", "required": ["q"]})

        async def run(start: Start, sink: Sink) -> None:
            got.append(await sink.model(start.inputs, params={"temperature": "0"}, tools=[search]))

        host = Host(run)
        host.begin(inputs=HI)
        event = await host.event()
        assert (event.kind, event.execution_id, event.schema_version) == (EventKind.EVENT_MODEL_CALL, EXECUTION, 1)
        assert (event.model.model, list(event.model.messages), dict(event.model.params)) == ("echo", HI, {"temperature": "0"})
        assert list(event.model.tools) == [search]
        assert not event.model.HasField("tool_choice")
        host.complete(event.model.id, "hello")
        await host.completed()
        assert message_text(got[0].message) == "hello"
        assert got[0].usage.model == "echo"

    async def test_output_report_and_usage_are_sent_in_the_order_of_the_calls(self) -> None:
        async def run(start: Start, sink: Sink) -> None:
            await sink.output("working")
            await sink.report(ToolResult(id="c1", output=struct_of({"ok": True})))
            await sink.usage(Usage(model="m", input_tokens=3))

        host = Host(run)
        host.begin()
        output, report, usage = [await host.event() for _ in range(3)]
        assert (output.kind, output.message) == (EventKind.EVENT_OUTPUT, text_message("assistant", "working"))
        assert (report.kind, report.result.id, dict_of(report.result.output)) == (EventKind.EVENT_TOOL_RESULT, "c1", {"ok": True})
        assert (usage.kind, usage.usage.input_tokens) == (EventKind.EVENT_USAGE, 3)
        await host.completed()

    async def test_parallel_tool_calls_are_asked_in_order_and_answered_in_any(self) -> None:
        got: list[str] = []

        async def run(start: Start, sink: Sink) -> None:
            calls = [ToolCall(id=f"c{number}", tool="search") for number in range(3)]
            results = await asyncio.gather(*(sink.tool_call(call) for call in calls))
            got.extend(dict_of(result.output)["n"] for result in results)

        host = Host(run)
        host.begin()
        asked = [(await host.event()).tool.id for _ in range(3)]
        assert asked == ["c0", "c1", "c2"]
        for call_id in ("c2", "c0", "c1"):
            host.finish_tool(call_id, output=struct_of({"n": call_id}))
        await host.completed()
        assert got == ["c0", "c1", "c2"]

    async def test_a_call_is_completed_from_the_turn_and_the_descriptor(self) -> None:
        async def run(start: Start, sink: Sink) -> None:
            await sink.tool_call("send", {"to": "bob"})
            await sink.tool_call("other", id="mine", idempotency_key="k", mediation=Mediation.MEDIATION_CONTROLLER_MEDIATED)

        tools = [ToolSpec(name="send", mediation=Mediation.MEDIATION_REQUIRES_APPROVAL)]
        host = Host(harness_of(run, tools=tools))
        host.begin()
        first = (await host.event()).tool
        assert (first.id, first.idempotency_key, first.tool) == (f"{EXECUTION}-1", f"{EXECUTION}-1", "send")
        assert (first.mediation, dict_of(first.args)) == (Mediation.MEDIATION_REQUIRES_APPROVAL, {"to": "bob"})
        host.finish_tool(first.id)
        second = (await host.event()).tool
        assert (second.id, second.idempotency_key, second.HasField("args")) == ("mine", "k", False)
        assert second.mediation == Mediation.MEDIATION_CONTROLLER_MEDIATED
        host.finish_tool("mine")
        await host.completed()

    async def test_a_call_as_a_model_made_it_keeps_what_it_has(self) -> None:
        made = ToolCall(id="c7", tool="search", args=struct_of({"q": "x"}))

        async def run(start: Start, sink: Sink) -> None:
            await sink.tool_call(made)

        host = Host(run)
        host.begin()
        asked = (await host.event()).tool
        assert (asked.id, asked.idempotency_key, dict_of(asked.args)) == ("c7", "c7", {"q": "x"})
        assert made == ToolCall(id="c7", tool="search", args=struct_of({"q": "x"}))
        host.finish_tool("c7")
        await host.completed()

    async def test_a_decision_before_a_receipt_is_passed_over(self) -> None:
        async def run(start: Start, sink: Sink) -> None:
            assert (await sink.tool_call(ToolCall(id="c1", tool="send"))).approval_request_seq == 7

        host = Host(run)
        host.begin()
        await host.event()
        host.control(approval=ApprovalResult(tool_call_id="c1", approved=True, request_seq=7))
        host.finish_tool("c1", approval_request_seq=7, approval_decision_seq=8)
        await host.completed()

    async def test_an_author_who_gives_up_a_call_does_not_hear_of_its_result(self) -> None:
        async def run(start: Start, sink: Sink) -> None:
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(sink.tool_call(ToolCall(id="c1", tool="slow")), 0.001)
            await sink.model(HI)

        host = Host(run)
        host.begin()
        await host.event()
        call = await host.event()
        host.finish_tool("c1")
        host.complete(call.model.id)
        await host.completed()

    async def test_an_output_waits_for_a_line_that_is_full(self) -> None:
        done = asyncio.Event()

        async def run(start: Start, sink: Sink) -> None:
            await sink.output("one")
            done.set()

        host = Host(run)
        host.line.room.clear()
        host.begin()
        await host.event()
        await host.silent()
        assert not done.is_set()
        host.line.room.set()
        await host.completed()


class TestWhatIsRefusedHere:
    @pytest.mark.parametrize(
        ("effect", "code", "message"),
        [
            (lambda sink: sink.output("\ud800"), "invalid_argument", "output: must have no lone surrogates"),
            (lambda sink: sink.model(HI, model=""), "invalid_argument", "model: must name a model; the session has no default one"),
            (
                lambda sink: sink.tool_call("unheard of"),
                "invalid_argument",
                "tool: it is not one of the harness's tools; declare it there, or say its mediation",
            ),
            (lambda sink: sink.report(ToolResult()), "invalid_argument", "result.id: must be the id of the call that it answers"),
            (
                lambda sink: sink.report(ToolResult(id="c", approval_request_seq=1)),
                "invalid_argument",
                "result: must leave approval_request_seq and approval_decision_seq to the host",
            ),
        ],
    )
    async def test_the_author_hears_of_it_and_nothing_is_sent(self, effect, code, message) -> None:  # type: ignore[no-untyped-def]
        errors: list[HoldfastError] = []

        async def run(start: Start, sink: Sink) -> None:
            try:
                await effect(sink)
            except HoldfastError as error:
                errors.append(error)

        host = Host(run)
        host.begin()
        await host.completed()
        assert [(error.code, error.message) for error in errors] == [(code, message)]

    async def test_a_frame_larger_than_the_host_takes_is_refused_and_the_run_goes_on(self) -> None:
        async def run(start: Start, sink: Sink) -> None:
            with pytest.raises(HoldfastError, match=r"output: takes .* bytes as a frame; at most 1000") as caught:
                await sink.output("x" * 1_001)
            assert caught.value.code == "resource_exhausted"
            await sink.output("small")

        host = Host(run, frame_bytes_max=1_000)
        host.begin()
        assert message_text((await host.event()).message) == "small"
        await host.completed()

    async def test_a_call_id_that_is_under_way(self) -> None:
        async def run(start: Start, sink: Sink) -> None:
            first = asyncio.create_task(sink.tool_call(ToolCall(id="c1", tool="t")))
            await asyncio.sleep(0)
            with pytest.raises(HoldfastError, match="a call with this id is under way"):
                await sink.tool_call(ToolCall(id="c1", tool="t"))
            await first

        host = Host(run)
        host.begin()
        await host.event()
        host.finish_tool("c1")
        await host.completed()

    async def test_an_effect_after_the_run(self) -> None:
        kept: list[Sink] = []

        async def run(start: Start, sink: Sink) -> None:
            kept.append(sink)

        host = Host(run)
        host.begin()
        await host.completed()
        with pytest.raises(HoldfastError, match="may act only while its run lasts"):
            await kept[0].output("late")
        await host.silent()


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
