"""A client of roz.v1.AgentService in Python, with code that grpcio-tools makes from the proto when it starts.

    agent_client.py PROTO_FOLDER

It is played through its standard streams, one JSON document a line. Commands name a stream by a word of the caller's:

    {"stream": "a", "at": "HOST:PORT", "open": {}}     opens a StreamSession with this metadata
    {"stream": "a", "say": {"start": {}}}              sends a SessionRequest, in the JSON of the proto
    {"stream": "a", "finish": true}                    sends nothing more
    {"stream": "a", "cut": true}                       cancels the call
    {"stream": "w", "at": "HOST:PORT", "watch": "ID"}  opens a WatchTeam of this task

What comes is written as it comes: {"ready": true} once it can be played, then for each stream {"headers": {…}}, {"message": {…}, "seq": 3}
for each message, where `seq` is the cursor that came with it, and {"end": {"code": "OK", "details": ""}}.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
import tempfile
from contextlib import suppress
from importlib import resources
from typing import Any

import grpc
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.unknown_fields import UnknownFieldSet
from grpc_tools import protoc

AGENT = "roz/v1/agent.proto"
# What Holdfast adds to a SessionResponse. The code of the agent's proto passes over it.
CURSOR = "holdfast/v1/agent_stream.proto"
CURSOR_FIELD = 15_000
LINE_BYTES_MAX = 64 * 1024 * 1024


def generated(proto: str, folder: str) -> tuple[Any, Any, Any]:
    """The modules of the messages, of the service and of the cursor, made from the protos."""
    well_known = resources.files("grpc_tools") / "_proto"
    arguments = ["protoc", f"-I{proto}", f"-I{well_known}", f"--python_out={folder}", f"--grpc_python_out={folder}", AGENT, CURSOR]
    if protoc.main(arguments) != 0:
        raise SystemExit("agent_client: protoc failed")
    sys.path.insert(0, folder)
    names = ("roz.v1.agent_pb2", "roz.v1.agent_pb2_grpc", "holdfast.v1.agent_stream_pb2")
    messages, services, cursors = (importlib.import_module(name) for name in names)
    return messages, services, cursors


def write(document: dict[str, Any]) -> None:
    sys.stdout.write(f"{json.dumps(document)}\n")
    sys.stdout.flush()


class Player:
    def __init__(self, messages: Any, services: Any, cursors: Any) -> None:
        self._messages = messages
        self._services = services
        self._cursors = cursors
        self._stubs: dict[str, Any] = {}
        self._calls: dict[str, Any] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def play(self, command: dict[str, Any]) -> None:
        name = command["stream"]
        match command:
            case {"open": metadata}:
                self._receive(name, self._stub_at(command["at"]).StreamSession(metadata=tuple(metadata.items())))
            case {"watch": task_id}:
                self._receive(name, self._stub_at(command["at"]).WatchTeam(self._messages.WatchTeamRequest(task_id=task_id)))
            case {"say": request}:
                # What is said into a stream that has ended is lost; its end is told.
                with suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
                    await self._calls[name].write(ParseDict(request, self._messages.SessionRequest()))
            case {"finish": True}:
                await self._calls[name].done_writing()
            case {"cut": True}:
                self._calls[name].cancel()

    def _stub_at(self, address: str) -> Any:
        """All streams at an address are on one connection."""
        if address not in self._stubs:
            channel = grpc.aio.insecure_channel(address, options=[("grpc.enable_http_proxy", 0)])
            self._stubs[address] = self._services.AgentServiceStub(channel)
        return self._stubs[address]

    def _receive(self, name: str, call: Any) -> None:
        self._calls[name] = call
        task = asyncio.create_task(self._told(name, call))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _told(self, name: str, call: Any) -> None:
        try:
            headers = {key: value for key, value in await call.initial_metadata() if isinstance(value, str)}
            write({"stream": name, "headers": headers})
            while (message := await call.read()) is not grpc.aio.EOF:
                said = MessageToDict(message, always_print_fields_with_no_presence=True)
                write({"stream": name, "message": said, "seq": self._seq_of(message)})
            code = await call.code()
        except grpc.aio.AioRpcError as error:
            code = error.code()
        except asyncio.CancelledError:
            code = grpc.StatusCode.CANCELLED
        details = "" if call.cancelled() else await call.details()
        write({"stream": name, "end": {"code": code.name, "details": details or ""}})

    def _seq_of(self, message: Any) -> int | None:
        """The cursor of a message, which stands among the fields that the agent's proto does not know; None without one."""
        fields = UnknownFieldSet(message)
        unknown = {fields[at].field_number: fields[at].data for at in range(len(fields))}
        return self._cursors.StreamCursor.FromString(unknown[CURSOR_FIELD]).seq if CURSOR_FIELD in unknown else None


async def main(proto: str) -> None:
    with tempfile.TemporaryDirectory(prefix="holdfast-agent-client-") as folder:
        player = Player(*generated(proto, folder))
        reader = asyncio.StreamReader(limit=LINE_BYTES_MAX)
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        write({"ready": True})
        while line := await reader.readline():
            await player.play(json.loads(line))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
