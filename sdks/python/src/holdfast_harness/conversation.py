"""The conversation of a session as a model is given it, from the events of its journal. Events go in one by one, and none is kept.

Invariants, for every prefix of every journal:
- A tool call is followed by its result, at once and in the order of the calls. Where the journal has none, the result says that the
  outcome is unknown.
- A result without a call before it, or a second one, is no result for a model: one that an input brought is kept as text, one that
  the journal recorded for a call that no model made is left out.
- No message is empty. Everything else stands where it was said, reasoning included, the inputs of failed and abandoned turns too.
"""

from __future__ import annotations

import json
from typing import Final

from .history import History
from .messages import dict_of
from .start import Start
from .types import Event, EventKind, Message, Part, TextPart, ToolResult

UNKNOWN_OUTCOME: Final = "the outcome of this call is unknown: the turn ended before a result was recorded"
_ROLES: Final = frozenset({"system", "user", "assistant", "tool"})


class _Call:
    def __init__(self, call_id: str) -> None:
        self.id: Final = call_id
        self.result: ToolResult | None = None


class Conversation:
    """A conversation under construction."""

    def __init__(self) -> None:
        self._entries: list[tuple[Message, list[_Call]]] = []
        self._open: dict[str, _Call] = {}

    @classmethod
    async def of(cls, start: Start) -> Conversation:
        """All that was said in the session, and the inputs of this turn."""
        conversation = cls()
        await conversation.add_history(start.history)
        for message in start.inputs:
            conversation.add_input(message)
        return conversation

    async def add_history(self, history: History) -> None:
        """Adds a history, holding a page or two of it at a time."""
        async for _, event in history:
            self.add_event(event)

    def add_event(self, event: Event) -> None:
        """Adds an event; events come in their order."""
        if event.kind == EventKind.EVENT_INPUT and event.HasField("message"):
            self.add_input(event.message)
        elif event.kind == EventKind.EVENT_OUTPUT and event.HasField("message"):
            self.add_output(event.message)
        elif event.kind == EventKind.EVENT_TOOL_RESULT and event.HasField("result"):
            self.add_result(event.result)

    def add_input(self, message: Message) -> None:
        """Adds an input of a turn, results for former calls among it."""
        parts: list[Part] = []
        is_whole = True
        for part in message.parts:
            if part.WhichOneof("part") != "tool_result":
                parts.append(part)
                continue
            is_whole = False
            if not self.add_result(part.tool_result):
                parts.append(_as_text(part.tool_result))
        if is_whole:
            # An input that is as it was is passed on as the same object.
            self._add(message, "user")
            return
        # A message of role `tool` of which a result was taken out has words of somebody left: the user's.
        role = "user" if message.role == "tool" and parts else message.role
        self._add(Message(role=role, parts=parts), "user")

    def add_output(self, message: Message) -> None:
        """Adds what a model, or the harness, said."""
        self._add(message, "assistant")

    def add_result(self, result: ToolResult) -> bool:
        """Whether the result answers an open call; it is kept there then."""
        call = self._open.pop(result.id, None)
        if call is None:
            return False
        call.result = result
        return True

    def messages(self) -> list[Message]:
        """The messages so far, each call with its result behind it."""
        said: list[Message] = []
        for message, calls in self._entries:
            said.append(message)
            if calls:
                said.append(_results(calls))
        return said

    def _add(self, message: Message, default_role: str) -> None:
        if not any(_says_something(part) for part in message.parts):
            return
        said = message if message.role in _ROLES else Message(role=default_role, parts=message.parts)
        calls: list[_Call] = []
        if said.role == "assistant":
            calls = [_Call(part.tool_call.id) for part in said.parts if part.WhichOneof("part") == "tool_call"]
        for call in calls:
            self._open[call.id] = call
        self._entries.append((said, calls))


def _says_something(part: Part) -> bool:
    kind = part.WhichOneof("part")
    if kind == "text":
        return part.text.text != ""
    if kind == "data":
        return part.data.HasField("data")
    return kind is not None


def _results(calls: list[_Call]) -> Message:
    unknown = [ToolResult(id=call.id, is_error=True, error=UNKNOWN_OUTCOME) for call in calls]
    results = [call.result or unknown[index] for index, call in enumerate(calls)]
    return Message(role="tool", parts=[Part(tool_result=result) for result in results])


def _as_text(result: ToolResult) -> Part:
    said = [f"error: {result.error}"] if result.is_error else []
    if result.HasField("output"):
        # A Struct has no order of its own here, so the names are sorted: run again, the text must be the same.
        said.append(json.dumps(dict_of(result.output), ensure_ascii=False, separators=(",", ":"), sort_keys=True))
    said.extend(part.text.text for part in result.content if part.WhichOneof("part") == "text")
    words = "\n".join(said) or "nothing"
    return Part(text=TextPart(text=f"[result for an unknown tool call: {words}]"))
