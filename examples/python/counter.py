"""The counter harness: it keeps a count in memory and nowhere else, adds one in each turn and outputs it.

It does what `src/harnesses/counter.ts` does, for one session in a process of its own. What a runtime does with memory shows in what it
says: after a fork of its memory, the child goes on from the parent's count.
"""

from holdfast_harness import Capabilities, Harness, Resumability, Sink, Start, serve

harness = Harness(
    id="counter",
    version="1",
    capabilities=Capabilities(resumability=Resumability.RESUMABILITY_REQUIRES_MEMORY_SNAPSHOT, fork_safe=True),
)

count = 0


@harness.run
async def run(start: Start, sink: Sink) -> None:
    global count
    count += 1
    await sink.output(str(count))


if __name__ == "__main__":
    serve(harness)
