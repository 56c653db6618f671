"""A harness whose turn needs approvals: as many gated calls at once as its config says, then a word on each. As gated.ts."""

import asyncio
import json

from holdfast_harness import Harness, Mediation, Sink, Start, ToolSpec, serve

harness = Harness(
    id="gated",
    version="1",
    tools=[ToolSpec(name="act", mediation=Mediation.MEDIATION_REQUIRES_APPROVAL)],
)


@harness.run
async def run(start: Start, sink: Sink) -> None:
    config = json.loads(start.config)
    numbers = range(1, config["calls"] + 1)
    calls = (sink.tool_call("act", {"number": number, "fails": config["fails"]}) for number in numbers)
    for number, result in zip(numbers, await asyncio.gather(*calls), strict=True):
        await sink.output(f"{number} failed {result.code}" if result.is_error else f"{number} done")


if __name__ == "__main__":
    serve(harness)
