"""Making and reading messages: short forms of what the generated types can do at length."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Struct

from .errors import HoldfastError
from .types import DataPart, Message, Part, TextPart, ToolCall, ToolDefinition, ToolResult

Role = Literal["system", "user", "assistant", "tool"]


def text_message(role: Role, text: str) -> Message:
    """A message with one text part."""
    return Message(role=role, parts=[Part(text=TextPart(text=well_formed("text", text)))])


def message_text(message: Message) -> str:
    """The text parts of a message, joined; other parts are passed over."""
    return "".join(part.text.text for part in message.parts if part.WhichOneof("part") == "text")


def tool_calls(message: Message) -> list[ToolCall]:
    """The tool calls in a model's message, in their order."""
    return [part.tool_call for part in message.parts if part.WhichOneof("part") == "tool_call"]


def tool_message(results: Iterable[ToolResult]) -> Message:
    """The message that hands results back to a model."""
    return Message(role="tool", parts=[Part(tool_result=result) for result in results])


def tool_definition(name: str, description: str, input_schema: Mapping[str, Any]) -> ToolDefinition:
    """A tool as a model sees it; `input_schema` is the JSON Schema of its arguments."""
    return ToolDefinition(name=name, description=description, input_schema=struct_of(input_schema))


def data_part(data: Mapping[str, Any]) -> Part:
    """A part that holds a JSON object."""
    return Part(data=DataPart(data=struct_of(data)))


def struct_of(value: Mapping[str, Any]) -> Struct:
    """A JSON object as a protobuf Struct. Its numbers are doubles: an integer beyond 2^53-1 either way is refused."""
    _refuse_unsafe(value)
    struct = Struct()
    struct.update(value)
    return struct


def dict_of(struct: Struct) -> dict[str, Any]:
    """A protobuf Struct as a JSON object; whole numbers are ints."""
    return {name: _whole(value) for name, value in MessageToDict(struct).items()}


def well_formed(field: str, text: str) -> str:
    """`text`, unless it holds a lone surrogate, which nothing can record. Raises INVALID_ARGUMENT."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise HoldfastError("invalid_argument", f"{field}: must have no lone surrogates") from None
    return text


def _refuse_unsafe(value: object) -> None:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 2**53 - 1:
        raise HoldfastError("invalid_argument", "struct: integers must lie within 2^53-1 either way; pass a string")
    if isinstance(value, Mapping):
        for inner in value.values():
            _refuse_unsafe(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            _refuse_unsafe(inner)


def _whole(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer() and abs(value) <= 2**53 - 1:
        return int(value)
    if isinstance(value, dict):
        return {name: _whole(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_whole(inner) for inner in value]
    return value
