from holdfast_harness._gen.agentsessions.v1 import common_pb2 as _common_pb2
from holdfast_harness._gen.agentsessions.v1 import harness_pb2 as _harness_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class HostFrame(_message.Message):
    __slots__ = ("exchange", "hello", "describe", "open", "controller", "refused", "history", "token", "end")
    EXCHANGE_FIELD_NUMBER: _ClassVar[int]
    HELLO_FIELD_NUMBER: _ClassVar[int]
    DESCRIBE_FIELD_NUMBER: _ClassVar[int]
    OPEN_FIELD_NUMBER: _ClassVar[int]
    CONTROLLER_FIELD_NUMBER: _ClassVar[int]
    REFUSED_FIELD_NUMBER: _ClassVar[int]
    HISTORY_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    exchange: int
    hello: HostHello
    describe: _harness_pb2.DescribeRequest
    open: ExecutionOpening
    controller: _harness_pb2.ControllerFrame
    refused: EffectRefused
    history: HistoryPage
    token: MintTokenResponse
    end: ExchangeEnd
    def __init__(self, exchange: _Optional[int] = ..., hello: _Optional[_Union[HostHello, _Mapping]] = ..., describe: _Optional[_Union[_harness_pb2.DescribeRequest, _Mapping]] = ..., open: _Optional[_Union[ExecutionOpening, _Mapping]] = ..., controller: _Optional[_Union[_harness_pb2.ControllerFrame, _Mapping]] = ..., refused: _Optional[_Union[EffectRefused, _Mapping]] = ..., history: _Optional[_Union[HistoryPage, _Mapping]] = ..., token: _Optional[_Union[MintTokenResponse, _Mapping]] = ..., end: _Optional[_Union[ExchangeEnd, _Mapping]] = ...) -> None: ...

class HarnessFrame(_message.Message):
    __slots__ = ("exchange", "hello", "descriptor", "event", "read_history", "mint_token", "end")
    EXCHANGE_FIELD_NUMBER: _ClassVar[int]
    HELLO_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTOR_FIELD_NUMBER: _ClassVar[int]
    EVENT_FIELD_NUMBER: _ClassVar[int]
    READ_HISTORY_FIELD_NUMBER: _ClassVar[int]
    MINT_TOKEN_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    exchange: int
    hello: HarnessHello
    descriptor: _harness_pb2.HarnessDescriptor
    event: _common_pb2.Event
    read_history: ReadHistoryRequest
    mint_token: MintTokenRequest
    end: ExchangeEnd
    def __init__(self, exchange: _Optional[int] = ..., hello: _Optional[_Union[HarnessHello, _Mapping]] = ..., descriptor: _Optional[_Union[_harness_pb2.HarnessDescriptor, _Mapping]] = ..., event: _Optional[_Union[_common_pb2.Event, _Mapping]] = ..., read_history: _Optional[_Union[ReadHistoryRequest, _Mapping]] = ..., mint_token: _Optional[_Union[MintTokenRequest, _Mapping]] = ..., end: _Optional[_Union[ExchangeEnd, _Mapping]] = ...) -> None: ...

class HostHello(_message.Message):
    __slots__ = ("protocol", "frame_bytes_max")
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    FRAME_BYTES_MAX_FIELD_NUMBER: _ClassVar[int]
    protocol: int
    frame_bytes_max: int
    def __init__(self, protocol: _Optional[int] = ..., frame_bytes_max: _Optional[int] = ...) -> None: ...

class HarnessHello(_message.Message):
    __slots__ = ("protocol", "pulls_history", "frame_bytes_max")
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    PULLS_HISTORY_FIELD_NUMBER: _ClassVar[int]
    FRAME_BYTES_MAX_FIELD_NUMBER: _ClassVar[int]
    protocol: int
    pulls_history: bool
    frame_bytes_max: int
    def __init__(self, protocol: _Optional[int] = ..., pulls_history: bool = ..., frame_bytes_max: _Optional[int] = ...) -> None: ...

class ExecutionOpening(_message.Message):
    __slots__ = ("model", "history_last_seq", "history_pulled", "replayed", "tools")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    HISTORY_LAST_SEQ_FIELD_NUMBER: _ClassVar[int]
    HISTORY_PULLED_FIELD_NUMBER: _ClassVar[int]
    REPLAYED_FIELD_NUMBER: _ClassVar[int]
    TOOLS_FIELD_NUMBER: _ClassVar[int]
    model: str
    history_last_seq: int
    history_pulled: bool
    replayed: bool
    tools: _containers.RepeatedCompositeFieldContainer[_common_pb2.ToolDefinition]
    def __init__(self, model: _Optional[str] = ..., history_last_seq: _Optional[int] = ..., history_pulled: bool = ..., replayed: bool = ..., tools: _Optional[_Iterable[_Union[_common_pb2.ToolDefinition, _Mapping]]] = ...) -> None: ...

class EffectRefused(_message.Message):
    __slots__ = ("event_ordinal", "error")
    EVENT_ORDINAL_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    event_ordinal: int
    error: _common_pb2.Error
    def __init__(self, event_ordinal: _Optional[int] = ..., error: _Optional[_Union[_common_pb2.Error, _Mapping]] = ...) -> None: ...

class ReadHistoryRequest(_message.Message):
    __slots__ = ("read", "from_seq", "to_seq", "pages", "more")
    READ_FIELD_NUMBER: _ClassVar[int]
    FROM_SEQ_FIELD_NUMBER: _ClassVar[int]
    TO_SEQ_FIELD_NUMBER: _ClassVar[int]
    PAGES_FIELD_NUMBER: _ClassVar[int]
    MORE_FIELD_NUMBER: _ClassVar[int]
    read: int
    from_seq: int
    to_seq: int
    pages: int
    more: bool
    def __init__(self, read: _Optional[int] = ..., from_seq: _Optional[int] = ..., to_seq: _Optional[int] = ..., pages: _Optional[int] = ..., more: bool = ...) -> None: ...

class HistoryPage(_message.Message):
    __slots__ = ("read", "first_seq", "events", "last", "error")
    READ_FIELD_NUMBER: _ClassVar[int]
    FIRST_SEQ_FIELD_NUMBER: _ClassVar[int]
    EVENTS_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    read: int
    first_seq: int
    events: _containers.RepeatedCompositeFieldContainer[_common_pb2.Event]
    last: bool
    error: _common_pb2.Error
    def __init__(self, read: _Optional[int] = ..., first_seq: _Optional[int] = ..., events: _Optional[_Iterable[_Union[_common_pb2.Event, _Mapping]]] = ..., last: bool = ..., error: _Optional[_Union[_common_pb2.Error, _Mapping]] = ...) -> None: ...

class MintTokenRequest(_message.Message):
    __slots__ = ("request", "audience")
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    AUDIENCE_FIELD_NUMBER: _ClassVar[int]
    request: int
    audience: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, request: _Optional[int] = ..., audience: _Optional[_Iterable[str]] = ...) -> None: ...

class MintTokenResponse(_message.Message):
    __slots__ = ("request", "token", "expires_unix", "error")
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    TOKEN_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_UNIX_FIELD_NUMBER: _ClassVar[int]
    ERROR_FIELD_NUMBER: _ClassVar[int]
    request: int
    token: str
    expires_unix: int
    error: _common_pb2.Error
    def __init__(self, request: _Optional[int] = ..., token: _Optional[str] = ..., expires_unix: _Optional[int] = ..., error: _Optional[_Union[_common_pb2.Error, _Mapping]] = ...) -> None: ...

class ExchangeEnd(_message.Message):
    __slots__ = ("code", "description")
    CODE_FIELD_NUMBER: _ClassVar[int]
    DESCRIPTION_FIELD_NUMBER: _ClassVar[int]
    code: int
    description: str
    def __init__(self, code: _Optional[int] = ..., description: _Optional[str] = ...) -> None: ...
