"""One execution: its start, its effects and their answers."""

from __future__ import annotations

import asyncio

import pytest

from holdfast_harness import (
    EventKind,
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

from .support import EXECUTION, SESSION, ApprovalResult, ExecutionOpening, Host, IdentityContext, harness_of

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

    async def test_brings_the_tools_that_the_host_offers(self) -> None:
        seen: list[Start] = []

        async def run(start: Start, sink: Sink) -> None:
            seen.append(start)

        offered = tool_definition("read", "reads", {"type": "object"})
        host = Host(run)
        host.begin(opening=ExecutionOpening(tools=[offered]))
        await host.completed()
        assert seen[0].tools == (offered,)

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
