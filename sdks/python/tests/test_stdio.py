"""A harness on the standard streams of a real child process."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast_harness import Event, EventKind, text_message
from holdfast_harness._gen.agentsessions.v1.harness_pb2 import ControllerFrame
from holdfast_harness._gen.holdfast.v1.harness_wire_pb2 import HarnessFrame, HostFrame
from holdfast_harness.serving.framing import FrameDecoder, encode_frame

from .support import EXECUTION, SESSION

TALKATIVE = Path(__file__).parent / "talkative.py"
EXAMPLES = Path(__file__).parents[3] / "examples" / "python"
SOURCES = Path(__file__).parents[1] / "src"


class Child:
    """A child that serves a harness, and the host's end of its line."""

    def __init__(self, script: Path = TALKATIVE, *, hello: bool = True, grace_s: str = "5") -> None:
        self._grace_s = grace_s
        self._script = script
        self._hello = hello
        self._decoder = FrameDecoder(HarnessFrame, 10_000_000)
        self._frames: list[HarnessFrame] = []

    async def __aenter__(self) -> Child:
        env = {**os.environ, "HOLDFAST_HARNESS_LISTEN": "stdio", "PYTHONPATH": str(SOURCES), "GRACE_S": self._grace_s}
        pipe = asyncio.subprocess.PIPE
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, str(self._script), stdin=pipe, stdout=pipe, stderr=pipe, env=env
        )
        if self._hello:
            self.send(HostFrame(hello={"protocol": 1, "frame_bytes_max": 1_000_000}))
            assert (await self.next()).hello.pulls_history
        return self

    async def __aexit__(self, *_: object) -> None:
        if self.process.returncode is None:
            self.process.kill()
        await self.process.communicate()

    def send(self, frame: HostFrame) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(encode_frame(frame))

    def run(self, config: str = "", exchange: int = 1, **opening: Any) -> None:
        self.send(HostFrame(exchange=exchange, open=opening))
        self.control(exchange, start={"config": config.encode()})

    def control(self, exchange: int = 1, **body: Any) -> None:
        self.send(HostFrame(exchange=exchange, controller=ControllerFrame(session=SESSION, execution_id=EXECUTION, **body)))

    async def next(self) -> HarnessFrame:
        assert self.process.stdout is not None
        while not self._frames:
            data = await asyncio.wait_for(self.process.stdout.read(65_536), 20)
            if not data:
                raise EOFError
            self._frames.extend(self._decoder.feed(data))
        return self._frames.pop(0)

    @property
    def is_between_frames(self) -> bool:
        return self._decoder.is_between_frames

    async def leave(self) -> tuple[int, str]:
        """Closes the line; the exit code and standard error."""
        assert self.process.stdin is not None and self.process.stderr is not None
        self.process.stdin.close()
        errors = await asyncio.wait_for(self.process.stderr.read(), 20)
        return await asyncio.wait_for(self.process.wait(), 20), errors.decode()


class TestAChild:
    async def test_keeps_the_line_to_itself_whatever_prints(self) -> None:
        async with Child() as child:
            child.run("print")
            frame = await child.next()
            assert frame.event.message == text_message("assistant", "stdin is ''")
            assert (await child.next()).event.end.state == "COMPLETED"
            assert (await child.next()).end.code == 0
            code, errors = await child.leave()
        assert code == 0
        # The first is printed, and flushed, before the harness is served.
        printed = ["printed before serving", "printed while running", "written to descriptor 1", "printed by a child"]
        assert [line for line in errors.splitlines() if line in printed] == printed

    async def test_unwinds_its_runs_and_exits_when_the_host_closes_the_line(self) -> None:
        async with Child() as child:
            child.run("clean up")
            assert (await child.next()).event.kind == EventKind.EVENT_MODEL_CALL
            code, errors = await child.leave()
        assert (code, "cleaned up" in errors) == (0, True)

    async def test_lets_its_runs_finish_on_sigterm_and_exits_then(self) -> None:
        async with Child() as child:
            child.run("finish")
            asked = (await child.next()).event.model.id
            child.process.send_signal(signal.SIGTERM)
            child.control(model={"message": {}, "model_call_id": asked})
            assert (await child.next()).event.message == text_message("assistant", "finished")
            assert (await child.next()).event.end.state == "COMPLETED"
            assert (await child.next()).end.code == 0
            assert await asyncio.wait_for(child.process.wait(), 20) == 0

    async def test_cancels_runs_that_do_not_finish_within_the_grace(self) -> None:
        async with Child(grace_s="0.1") as child:
            child.run("clean up")
            await child.next()
            child.process.send_signal(signal.SIGTERM)
            assert await asyncio.wait_for(child.process.wait(), 20) == 0
            assert child.process.stderr is not None
            assert b"cleaned up" in await child.process.stderr.read()

    @pytest.mark.parametrize(
        ("sent", "words"),
        [
            (b"\0\0\0\x02\xff\xff", "bytes that are no frame"),
            (b"\xff\xff\xff\xff", "at most 67108864 are allowed"),
            (b"\0\0\0\x02\x08\x01", "the first frame must be the host's hello"),
            (b"\0\0\0\x02\x08", "the line ended in the middle of a frame"),
        ],
    )
    async def test_exits_with_an_error_when_the_line_breaks(self, sent: bytes, words: str) -> None:
        async with Child(hello=False) as child:
            assert child.process.stdin is not None
            child.process.stdin.write(sent)
            code, errors = await child.leave()
        assert (code, words in errors, "Traceback" in errors) == (1, True, False)

    async def test_waits_for_a_host_that_does_not_read(self) -> None:
        async with Child() as child:
            child.run("flood")
            assert child.process.stderr is not None
            assert await child.process.stderr.readline() == b"printed before serving\n"
            # 20 MB do not fit into the pipe: the run cannot be through before the host reads.
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(child.process.stderr.readline(), 0.3)
            count = 0
            while not (await child.next()).HasField("end"):
                count += 1
            assert count == 201
            assert await child.process.stderr.readline() == b"flooded\n"

    async def test_leaves_a_slow_host_whole_frames_when_it_is_told_to_end(self) -> None:
        async with Child(grace_s="0.1") as child:
            child.run("stall")
            assert child.process.stderr is not None
            while await child.process.stderr.readline() != b"stalled\n":
                pass
            child.process.send_signal(signal.SIGTERM)
            # The host reads when the grace is over and serving ends.
            await asyncio.sleep(0.4)
            assert len((await child.next()).event.message.parts[0].text.text) == 900_000
            with pytest.raises(EOFError):
                await child.next()
            assert child.is_between_frames
            assert await asyncio.wait_for(child.process.wait(), 20) == 0

    @pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak of a process's memory is read from /proc")
    async def test_reads_a_history_of_a_hundred_thousand_events_in_bounded_memory(self) -> None:
        page = [Event(kind=EventKind.EVENT_INPUT, message=text_message("user", "x" * 1_000))] * 250
        async with Child() as child:
            child.run("count", history_last_seq=100, history_pulled=True)
            await self.feed(child, 1, page[:1] * 100, 100)
            before = peak_bytes(child.process.pid)
            child.run("count", exchange=2, history_last_seq=100_000, history_pulled=True)
            await self.feed(child, 2, page, 100_000)
            after = peak_bytes(child.process.pid)
        # The history has 100 MB.
        assert after - before < 20_000_000

    async def feed(self, child: Child, exchange: int, page: list[Event], total: int) -> None:
        request = (await child.next()).read_history
        credit, at = request.pages, 1
        while at <= total:
            while credit == 0:
                credit += (await child.next()).read_history.pages
            last = at + len(page) > total
            child.send(HostFrame(exchange=exchange, history={"read": request.read, "first_seq": at, "events": page, "last": last}))
            at += len(page)
            credit -= 1
        while (frame := await child.next()).HasField("read_history"):
            pass
        assert frame.event.message == text_message("assistant", str(total))
        assert (await child.next()).event.end.state == "COMPLETED"
        assert (await child.next()).end.code == 0


def peak_bytes(pid: int) -> int:
    match = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert match is not None
    return int(match[1]) * 1_024


class TestTheExamples:
    @pytest.mark.parametrize("name", ["echo", "chat", "counter", "graph"])
    async def test_are_served_as_programs(self, name: str) -> None:
        async with Child(EXAMPLES / f"{name}.py") as child:
            child.send(HostFrame(exchange=1, describe={}))
            assert (await child.next()).descriptor.id == name
            assert (await child.leave())[0] == 0

    async def test_the_counter_counts_in_memory(self) -> None:
        async with Child(EXAMPLES / "counter.py") as child:
            for exchange in (1, 2, 3):
                child.run(exchange=exchange)
                assert (await child.next()).event.message == text_message("assistant", str(exchange))
                assert (await child.next()).event.end.state == "COMPLETED"
                assert (await child.next()).end.code == 0
