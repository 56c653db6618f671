"""A harness that prints wherever it can, and does what its config says; a child process of the tests."""

import asyncio
import os
import subprocess
import sys

from holdfast_harness import Harness, Sink, Start, serve

print("printed before serving", flush=True)
harness = Harness(id="talkative", version="1")


@harness.run
async def run(start: Start, sink: Sink) -> None:
    task = start.config.decode()
    if task == "print":
        print("printed while running")
        os.write(1, b"written to descriptor 1\n")
        subprocess.run([sys.executable, "-c", "print('printed by a child')"], check=True)  # noqa: ASYNC221
        await sink.output(f"stdin is {sys.stdin.read()!r}")
    elif task == "count":
        total = 0
        async for _ in start.history:
            total += 1
        await sink.output(str(total))
    elif task == "clean up":
        try:
            await sink.model(start.inputs, model="m")
        finally:
            await asyncio.sleep(0)
            print("cleaned up")
    elif task == "stall":
        print("stalled")
        await sink.output("x" * 900_000)
    elif task == "finish":
        await sink.model(start.inputs, model="m")
        await sink.output("finished")
    elif task == "flood":
        for _ in range(200):
            await sink.output("x" * 100_000)
        print("flooded")


if __name__ == "__main__":
    serve(harness, grace_s=float(os.environ.get("GRACE_S", "5")))
