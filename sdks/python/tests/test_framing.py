"""Frames on a stream of bytes, addresses, and short forms for messages."""

from __future__ import annotations

import random

import pytest

from holdfast_harness import (
    Harness,
    HarnessFailure,
    HoldfastError,
    ToolCall,
    ToolSpec,
    dict_of,
    message_text,
    struct_of,
    text_message,
    tool_calls,
    tool_message,
)
from holdfast_harness._gen.holdfast.v1.harness_wire_pb2 import HostFrame
from holdfast_harness.serving.framing import FrameDecoder, encode_frame
from holdfast_harness.serving.listen import Stdio, Tcp, UnixSocket, parse_listen
from holdfast_harness.types import Message, Part, ToolResult


def frames(count: int) -> list[HostFrame]:
    return [HostFrame(exchange=number, end={"description": "x" * (number * 37 % 300)}) for number in range(count)]


class TestFraming:
    def test_a_frame_is_its_length_in_four_bytes_and_itself(self) -> None:
        assert encode_frame(HostFrame(exchange=1)) == b"\0\0\0\x02\x08\x01"
        assert encode_frame(HostFrame()) == b"\0\0\0\0"

    def test_frames_come_out_however_their_bytes_come_in(self) -> None:
        sent = frames(50)
        stream = b"".join(encode_frame(frame) for frame in sent)
        rng = random.Random(7)
        for _ in range(50):
            decoder = FrameDecoder(HostFrame, 1_000)
            got: list[HostFrame] = []
            at = 0
            while at < len(stream):
                size = rng.choice([1, 2, 3, 5, 100, 4_000])
                got.extend(decoder.feed(stream[at : at + size]))
                at += size
            assert got == sent
            assert decoder.is_between_frames

    def test_a_stream_that_ends_within_a_frame_is_seen(self) -> None:
        decoder = FrameDecoder(HostFrame, 1_000)
        assert list(decoder.feed(encode_frame(HostFrame(exchange=1))[:-1])) == []
        assert not decoder.is_between_frames

    def test_a_length_over_the_limit_is_refused_before_its_bytes_come(self) -> None:
        with pytest.raises(HoldfastError, match="a frame has 1001 bytes; at most 1000 are allowed") as caught:
            list(FrameDecoder(HostFrame, 1_000).feed((1_001).to_bytes(4, "big")))
        assert caught.value.code == "resource_exhausted"

    def test_bytes_that_are_no_frame_are_refused(self) -> None:
        with pytest.raises(HoldfastError, match="bytes that are no frame") as caught:
            list(FrameDecoder(HostFrame, 1_000).feed(b"\0\0\0\x02\xff\xff"))
        assert caught.value.code == "invalid_argument"


class TestListen:
    def test_the_three_forms(self) -> None:
        assert parse_listen("stdio") == Stdio()
        assert parse_listen("unix:///tmp/a b.sock") == UnixSocket("/tmp/a b.sock")
        assert parse_listen("127.0.0.1:0") == Tcp("127.0.0.1", 0)
        assert parse_listen("[::1]:8080") == Tcp("[::1]", 8080)

    @pytest.mark.parametrize("text", ["", "stdin", "unix:relative", "unix://relative", "host", "host:", ":1", "host:65536", "http://h:1"])
    def test_anything_else_is_refused(self, text: str) -> None:
        with pytest.raises(HoldfastError, match="HOLDFAST_HARNESS_LISTEN: must be stdio"):
            parse_listen(text)


class TestMessages:
    def test_text_and_calls_of_a_message(self) -> None:
        call = ToolCall(id="c1", tool="t")
        message = Message(
            role="assistant", parts=[*text_message("user", "a").parts, Part(tool_call=call), *text_message("user", "b").parts]
        )
        assert (message_text(message), tool_calls(message)) == ("ab", [call])
        assert tool_message([ToolResult(id="c1")]).parts[0].tool_result.id == "c1"

    def test_structs_are_json_objects_there_and_back(self) -> None:
        value = {"a": [1, 2.5, None, True, {"b": "c"}], "n": 2**53 - 1}
        assert dict_of(struct_of(value)) == value

    def test_an_integer_that_a_double_cannot_hold_is_refused(self) -> None:
        with pytest.raises(HoldfastError, match=r"within 2\^53-1"):
            struct_of({"a": [{"b": 2**53}]})


class TestTheHarness:
    def test_a_run_must_be_an_async_function_and_come_once(self) -> None:
        harness = Harness(id="x", version="1")
        with pytest.raises(TypeError, match="it has no run"):
            _ = harness.runner
        with pytest.raises(TypeError, match="must be an async function"):
            harness.run(lambda start, sink: None)  # type: ignore[type-var]

        @harness.run
        async def run(start: object, sink: object) -> None:
            return None

        with pytest.raises(TypeError, match="has its run already"):
            harness.run(run)

    def test_it_needs_an_id(self) -> None:
        with pytest.raises(ValueError, match="id must not be empty"):
            Harness(id="", version="1")

    def test_its_tools_have_a_name_each(self) -> None:
        with pytest.raises(ValueError, match="one entry for each name"):
            Harness(id="x", version="1", tools=[ToolSpec(name="t"), ToolSpec(name="t")])

    def test_a_failure_takes_a_code_or_a_number(self) -> None:
        assert HarnessFailure("not_found", "x").grpc_code == HarnessFailure(5, "x").grpc_code == 5
        with pytest.raises(ValueError, match="must not be 0"):
            HarnessFailure(0, "x")
