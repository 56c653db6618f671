"""What the examples do, effect by effect, and the conversation that they ask a model with."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from holdfast_harness import (
    Conversation,
    Event,
    EventKind,
    Harness,
    HarnessFailure,
    HoldfastError,
    Mediation,
    Message,
    ModelResponse,
    Part,
    Start,
    ToolCall,
    ToolResult,
    Usage,
    dict_of,
    history_of,
    message_text,
    struct_of,
    text_message,
)
from holdfast_harness.testing import run_once

EXAMPLES = Path(__file__).parents[3] / "examples" / "python"
HI = [text_message("user", "hi")]


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def harness(name: str) -> Harness:
    found = example(name).harness
    assert isinstance(found, Harness)
    return found


def answer(text: str, **usage: int) -> Any:
    return lambda call: ModelResponse(text_message("assistant", text), Usage(model=call.model, **usage))


def said(message: Message, kind: EventKind = EventKind.EVENT_INPUT) -> Event:
    return Event(kind=kind, message=message)


def bot(text: str) -> Event:
    return said(text_message("assistant", text), EventKind.EVENT_OUTPUT)


def user(text: str) -> Event:
    return said(text_message("user", text))


def calls(*ids: str) -> Message:
    return Message(role="assistant", parts=[Part(tool_call=ToolCall(id=call_id, tool="t")) for call_id in ids])


def results(*values: ToolResult) -> Message:
    return Message(role="tool", parts=[Part(tool_result=value) for value in values])


def result(call_id: str, ok: bool = True) -> ToolResult:
    return ToolResult(id=call_id, output=struct_of({"ok": ok}))


def recorded(call_id: str, ok: bool = True) -> Event:
    return Event(kind=EventKind.EVENT_TOOL_RESULT, result=result(call_id, ok))


UNKNOWN = "the outcome of this call is unknown: the turn ended before a result was recorded"


class TestEcho:
    async def test_asks_the_model_once_and_records_what_it_cost(self) -> None:
        asked, usage = await run_once(harness("echo"), inputs=HI, default_model="", model=answer("echo:hi", input_tokens=2))
        assert (asked.model.model, list(asked.model.messages)) == ("echo", HI)
        assert usage.usage.input_tokens == 2

    async def test_records_no_usage_of_nothing(self) -> None:
        (asked,) = await run_once(harness("echo"), inputs=HI, default_model="other", model=answer("x"))
        assert asked.model.model == "other"

    async def test_passes_on_what_the_model_call_fails_with(self) -> None:
        with pytest.raises(HoldfastError, match="model: none is served here"):
            await run_once(harness("echo"), inputs=HI)


class TestChat:
    async def ask(self, **turn: Any) -> list[Event]:
        turn = {"model": answer("ok"), "default_model": "gpt-x", **turn}
        return await run_once(harness("chat"), **turn)

    async def test_asks_with_the_whole_conversation(self) -> None:
        (asked,) = await self.ask(history=[user("one"), bot("1"), user("two")], inputs=HI)
        assert [message_text(message) for message in asked.model.messages] == ["one", "1", "two", "hi"]
        assert (asked.model.model, dict(asked.model.params)) == ("gpt-x", {})

    async def test_takes_a_system_prompt_a_model_and_params_from_its_config(self) -> None:
        params = {"a": 50, "b": "0.5", "c": False, "d": 0.1, "e": 1e21, "f": 1e-7, "g": -0.0, "h": 1e20, "i": 2.5e-8, "j": 123.25}
        config = json.dumps({"system_prompt": "Be brief.", "model": "claude-x", "params": params}).encode()
        (asked,) = await self.ask(inputs=HI, config=config)
        assert asked.model.model == "claude-x"
        assert list(asked.model.messages) == [text_message("system", "Be brief."), *HI]
        # As JavaScript writes numbers: the same config gives the same request from either harness.
        assert dict(asked.model.params) == {
            "a": "50", "b": "0.5", "c": "false", "d": "0.1", "e": "1e+21", "f": "1e-7", "g": "0",
            "h": "100000000000000000000", "i": "2.5e-8", "j": "123.25",
        }  # fmt: skip

    @pytest.mark.parametrize(
        "turn",
        [
            {},
            {"history": [user("one"), bot("1")]},
            {"inputs": [text_message("user", "")]},
            {"inputs": [text_message("system", "rules")], "config": b'{"system_prompt":"more"}'},
        ],
    )
    async def test_completes_without_a_model_call_where_nothing_is_to_be_answered(self, turn: dict[str, Any]) -> None:
        assert await self.ask(**turn) == []

    async def test_answers_what_a_failed_turn_left_and_continues_what_an_input_began(self) -> None:
        assert len(await self.ask(history=[user("one"), bot("1"), user("two")])) == 1
        assert len(await self.ask(inputs=[*HI, text_message("assistant", "Well,")])) == 1

    @pytest.mark.parametrize(
        ("config", "words"),
        [
            (b"{", "config: must be a JSON object in UTF-8"),
            (b'"\xff"', "config: must be a JSON object in UTF-8"),
            (b'["x"]', "config: must be a JSON object in UTF-8"),
            (b'{"params":{"a":NaN}}', "config: must be a JSON object in UTF-8"),
            (b'{"sytem_prompt":"x"}', "config.sytem_prompt: is not known; known are system_prompt, model, params"),
            (b'{"\\ud800":1}', "config: is not known; known are system_prompt, model, params"),
            (b'{"system_prompt":5}', "config.system_prompt: must be a string"),
            (b'{"system_prompt":"\\ud800"}', "config.system_prompt: must be a string"),
            (b'{"params":"hot"}', "config.params: must be an object of strings, numbers and booleans"),
            (b'{"params":{"stop":["a"]}}', "config.params.stop: must be a string, a number or a boolean"),
            (b'{"params":{"a b":null}}', "config.params: must be a string, a number or a boolean"),
        ],
    )
    async def test_fails_for_good_with_a_config_that_cannot_be_read(self, config: bytes, words: str) -> None:
        with pytest.raises(HarnessFailure) as caught:
            await self.ask(inputs=HI, config=config)
        assert (caught.value.grpc_code, caught.value.description) == (3, words)

    async def test_fails_for_good_without_a_model(self) -> None:
        with pytest.raises(HarnessFailure, match="model: none is set") as caught:
            await self.ask(inputs=HI, default_model="")
        assert caught.value.grpc_code == 9


class TestTheConversation:
    def of(self, *events: Event) -> list[Message]:
        conversation = Conversation()
        for event in events:
            conversation.add_event(event)
        return conversation.messages()

    def test_puts_results_behind_their_calls_in_the_order_of_the_calls(self) -> None:
        working = [bot("working"), recorded("b"), recorded("a"), bot("done")]
        assert self.of(user("go"), said(calls("a", "b"), EventKind.EVENT_OUTPUT), *working) == [
            text_message("user", "go"),
            calls("a", "b"),
            results(result("a"), result("b")),
            text_message("assistant", "working"),
            text_message("assistant", "done"),
        ]

    def test_says_of_a_call_without_a_result_that_its_outcome_is_unknown(self) -> None:
        messages = self.of(said(calls("a", "b"), EventKind.EVENT_OUTPUT), recorded("a"), user("and?"))
        assert messages[1] == results(result("a"), ToolResult(id="b", is_error=True, error=UNKNOWN))

    def test_takes_a_result_from_an_input_and_what_else_it_says_behind_it(self) -> None:
        mixed = results(result("a"))
        mixed.parts.extend(text_message("tool", "note").parts)
        assert self.of(said(calls("a"), EventKind.EVENT_OUTPUT), said(mixed))[1:] == [results(result("a")), text_message("user", "note")]

    def test_keeps_a_stray_result_of_an_input_as_text_and_leaves_out_one_of_the_journal(self) -> None:
        stray = results(ToolResult(id="gone", is_error=True, error="late", output=struct_of({"n": 1.5, "b": [2]})))
        text = '[result for an unknown tool call: error: late\n{"b":[2],"n":1.5}]'
        assert self.of(recorded("never"), said(stray)) == [text_message("user", text)]

    def test_leaves_out_what_says_nothing_and_gives_strangers_the_role_of_their_side(self) -> None:
        robot = Message(role="robot", parts=text_message("user", "c").parts)
        events = [user(""), said(Message(role="user")), said(robot), said(robot, EventKind.EVENT_OUTPUT)]
        assert self.of(*events) == [text_message("user", "c"), text_message("assistant", "c")]

    async def test_holds_the_history_and_the_inputs_of_a_start(self) -> None:
        start = Start("e", "s", history_of([user("one"), bot("1")]), inputs=HI)
        messages = (await Conversation.of(start)).messages()
        assert [message_text(message) for message in messages] == ["one", "1", "hi"]
        assert messages[2] is start.inputs[0]


class TestCounter:
    async def test_counts_in_memory(self) -> None:
        counter = harness("counter")
        outputs = [(await run_once(counter))[0] for _ in range(3)]
        assert [message_text(event.message) for event in outputs] == ["1", "2", "3"]


class TestGraph:
    async def test_goes_from_the_model_to_the_tools_and_back_until_no_tool_is_called(self) -> None:
        asked = Message(role="assistant")
        for call in (
            ToolCall(id="c1", tool="weather", args=struct_of({"city": "Bonn"})),
            ToolCall(id="c2", tool="add", args=struct_of({"numbers": [1, 2]})),
        ):
            asked.parts.add(tool_call=call)
        answers = [asked, text_message("assistant", "3 and rain")]
        effects = await run_once(
            harness("graph"),
            inputs=HI,
            model=lambda call: answers.pop(0),
            tool=lambda call: ToolResult(id=call.id, output=struct_of({"rain": True})),
        )
        first, _, weather, report, second, _ = effects
        assert [message_text(message) for message in first.model.messages] == ["Be brief.", "hi"]
        assert [tool.name for tool in first.model.tools] == ["weather", "send", "add"]
        assert (weather.tool.id, weather.tool.mediation) == ("c1", Mediation.MEDIATION_CONTROLLER_MEDIATED)
        assert (report.kind, dict_of(report.result.output)) == (EventKind.EVENT_TOOL_RESULT, {"sum": 3})
        assert second.model.messages[2] == asked
        assert [part.tool_result.id for part in second.model.messages[3].parts] == ["c1", "c2"]

    async def test_fails_for_good_where_it_finds_no_end(self) -> None:
        again = Message(role="assistant", parts=[Part(tool_call=ToolCall(id="c", tool="weather"))])
        with pytest.raises(HarnessFailure, match="graph: it took 20 steps without an end"):
            await run_once(harness("graph"), inputs=HI, model=lambda call: again, tool=lambda call: ToolResult(id=call.id))
