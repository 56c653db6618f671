"""Write agents for Holdfast in Python. `docs` and examples: see the README of this package.

harness = Harness(id="my-agent", version="1")

@harness.run
async def run(start: Start, sink: Sink) -> None:
    response = await sink.model(start.inputs)
    await sink.usage(response.usage)

serve(harness)
"""

from .conversation import Conversation
from .errors import ERROR_CODES, ApprovalParked, ErrorCode, HarnessFailure, HoldfastError, ProtocolFault
from .harness import Harness, RunFunction
from .history import History, HistoryEvent, HistoryPage, history_of
from .messages import (
    data_part,
    dict_of,
    message_text,
    struct_of,
    text_message,
    tool_calls,
    tool_definition,
    tool_message,
)
from .serving import serve, serve_async
from .sink import ModelResponse, Sink
from .start import Cancellation, Identity, Start
from .types import (
    ApprovalRef,
    Capabilities,
    Event,
    EventKind,
    HarnessDescriptor,
    IdentityRef,
    Mediation,
    Message,
    Part,
    Resumability,
    ToolCall,
    ToolChoice,
    ToolDefinition,
    ToolResult,
    ToolSpec,
    Usage,
)

__all__ = [
    "ERROR_CODES",
    "ApprovalParked",
    "ApprovalRef",
    "Cancellation",
    "Capabilities",
    "Conversation",
    "ErrorCode",
    "Event",
    "EventKind",
    "Harness",
    "HarnessDescriptor",
    "HarnessFailure",
    "History",
    "HistoryEvent",
    "HistoryPage",
    "HoldfastError",
    "Identity",
    "IdentityRef",
    "Mediation",
    "Message",
    "ModelResponse",
    "Part",
    "ProtocolFault",
    "Resumability",
    "RunFunction",
    "Sink",
    "Start",
    "ToolCall",
    "ToolChoice",
    "ToolDefinition",
    "ToolResult",
    "ToolSpec",
    "Usage",
    "data_part",
    "dict_of",
    "history_of",
    "message_text",
    "serve",
    "serve_async",
    "struct_of",
    "text_message",
    "tool_calls",
    "tool_definition",
    "tool_message",
]
