"""The echo harness: one model call with this turn's inputs and nothing else, then its usage.

It does what `src/harnesses/echo.ts` does, effect by effect: both write the same journal.
"""

from holdfast_harness import Capabilities, Harness, ModelResponse, Resumability, Sink, Start, serve

ECHO_MODEL = "echo"

harness = Harness(
    id="echo",
    version="1",
    models=[ECHO_MODEL],
    capabilities=Capabilities(resumability=Resumability.RESUMABILITY_STATELESS_REPLAY, fork_safe=True, streaming=True),
)


@harness.run
async def run(start: Start, sink: Sink) -> None:
    response = await sink.model(start.inputs, model=start.model or ECHO_MODEL)
    await record_usage(sink, response)


async def record_usage(sink: Sink, response: ModelResponse) -> None:
    """Records what a completion cost. A usage of nothing is not recorded: a replayed completion without one is served with zero, and a
    record that its journal does not have would make the replay differ."""
    usage = response.usage
    if usage.input_tokens or usage.output_tokens or usage.reasoning_tokens:
        await sink.usage(usage)


if __name__ == "__main__":
    serve(harness)
