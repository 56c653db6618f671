"""The probe harness of the wire's conformance suite (src/testing/harness-wire), play by play, as a program.

The suite compares what a host sees of it with what it sees of the TypeScript one in process: effects in their order, and the outcome.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from types import MappingProxyType

from holdfast_harness import (
    ApprovalParked,
    Harness,
    HarnessFailure,
    HoldfastError,
    Mediation,
    Sink,
    Start,
    ToolResult,
    ToolSpec,
    dict_of,
    message_text,
    serve,
    struct_of,
    text_message,
)

Play = Callable[[Start, Sink], Awaitable[None]]


class Several(Exception):
    """What Python 3.11 has ExceptionGroup for."""

    def __init__(self, *exceptions: BaseException) -> None:
        super().__init__("several")
        self.exceptions = exceptions


async def model_and_usage(start: Start, sink: Sink) -> None:
    response = await sink.model(start.inputs, params={"temperature": "0"})
    await sink.usage(response.usage)
    await sink.output(f"it said {message_text(response.message)}")


async def nothing(start: Start, sink: Sink) -> None:
    return None


async def what_it_was_given(start: Start, sink: Sink) -> None:
    principal = start.identity.principal.principal if start.identity.principal else "nobody"
    texts = ",".join(message_text(message) for message in start.inputs)
    can_mint = "true" if start.identity.can_mint_tokens else "false"
    given = [start.execution_id, start.session_uid, start.model, start.resume_from_seq, texts, principal, can_mint, start.history.last_seq]
    await sink.output(" ".join(str(one) for one in given))


async def history_text(start: Start, from_seq: int = 1, to_seq: int | None = None) -> str:
    texts = [f"{seq}:{event.kind}:{message_text(event.message)}" async for seq, event in start.history.events(from_seq, to_seq)]
    return " ".join(texts) or "no history"


async def whole_history(start: Start, sink: Sink) -> None:
    await sink.output(await history_text(start))


async def length_of_the_history(start: Start, sink: Sink) -> None:
    seq = 0
    async with aclosing(start.history.pages()) as pages:
        async for page in pages:
            if page.first_seq != seq + 1:
                raise RuntimeError("a page is missing")
            seq += len(page.events)
    await sink.output(f"{seq} of {start.history.last_seq} events")


async def part_of_the_history(start: Start, sink: Sink) -> None:
    await sink.output(await history_text(start, 3, 5))


async def history_left_early(start: Start, sink: Sink) -> None:
    async with aclosing(start.history.pages()) as pages:
        async for page in pages:
            await sink.output(f"first {page.first_seq}")
            break
    await sink.output(await history_text(start, 2, 2))


async def two_reads(start: Start, sink: Sink) -> None:
    await sink.output("|".join(await asyncio.gather(history_text(start), history_text(start, 4))))


def compact(result: ToolResult) -> str:
    return json.dumps(dict_of(result.output), separators=(",", ":"))


async def tools_in_turn(start: Start, sink: Sink) -> None:
    for which in ("a", "b"):
        await sink.output(compact(await sink.tool_call("look", {"which": which})))


async def tools_at_once(start: Start, sink: Sink) -> None:
    results = await asyncio.gather(*(sink.tool_call("look", {"which": which}, id=which) for which in ("a", "b", "c")))
    await sink.output(" ".join(f"{result.id}:{compact(result)}" for result in results))


async def own_tool(start: Start, sink: Sink) -> None:
    await sink.report(ToolResult(id="own", output=struct_of({"done": True})))
    await sink.report(ToolResult(id="own-2", is_error=True, error="it broke"))


async def parked(start: Start, sink: Sink) -> None:
    await sink.output("before")
    await sink.tool_call("pay", id="park")
    await sink.output("after")


async def park_wrapped(start: Start, sink: Sink) -> None:
    try:
        await sink.tool_call("pay", id="park")
    except ApprovalParked as park:
        raise RuntimeError("while paying") from park


async def park_beside_another_failure(start: Start, sink: Sink) -> None:
    try:
        await sink.tool_call("pay", id="park")
    except ApprovalParked as park:
        raise Several(park, HoldfastError("aborted", "x: lost")) from None


async def park_swallowed(start: Start, sink: Sink) -> None:
    (settled,) = await asyncio.gather(sink.tool_call("pay", id="park"), return_exceptions=True)
    await sink.output(f"parked: {'true' if isinstance(settled, ApprovalParked) else 'false'}")


async def refused(start: Start, sink: Sink) -> None:
    await sink.tool_call("look", id="refuse")


async def refused_and_caught(start: Start, sink: Sink) -> None:
    try:
        await sink.tool_call("look", id="refuse")
    except HoldfastError as error:
        await sink.output(f"{error.code} {error.message}")


async def model_refused(start: Start, sink: Sink) -> None:
    await sink.model(start.inputs, model="none")


async def output_that_nobody_can_record(start: Start, sink: Sink) -> None:
    await sink.output("lone \ud800 half")


async def output_refused(start: Start, sink: Sink) -> None:
    await sink.output("refuse me")
    await sink.model([text_message("user", "never asked")])


async def report_of_the_hosts(start: Start, sink: Sink) -> None:
    await sink.report(ToolResult(id="x", approval_request_seq=3))


async def report_of_a_host_call(start: Start, sink: Sink) -> None:
    await sink.tool_call("look", id="x")
    try:
        await sink.report(ToolResult(id="x"))
    except HoldfastError as error:
        await sink.output(f"{error.code} {error.message}")


async def report_of_a_refused_call(start: Start, sink: Sink) -> None:
    with suppress(HoldfastError):
        await sink.tool_call("look", id="refuse")
    await sink.report(ToolResult(id="refuse", is_error=True, error="it was not run"))


async def failed(start: Start, sink: Sink) -> None:
    await sink.output("so far")
    raise HarnessFailure("failed_precondition", "it cannot be done")


async def error_with_a_code(start: Start, sink: Sink) -> None:
    raise HoldfastError("not_found", "page: there is none")


async def error_without_a_code(start: Start, sink: Sink) -> None:
    await sink.output("so far")
    raise TypeError("oops")


async def many_outputs(start: Start, sink: Sink) -> None:
    for index in range(300):
        await sink.output(f"line {index}")


async def many_outputs_at_once(start: Start, sink: Sink) -> None:
    await asyncio.gather(*(sink.output(f"line {index}") for index in range(300)))


async def large_output(start: Start, sink: Sink) -> None:
    await sink.output("x" * 1_000_000)


async def token(start: Start, sink: Sink) -> None:
    await sink.output(await start.identity.mint_token(["files", "mail"]) if start.identity.can_mint_tokens else "none")


async def token_refused(start: Start, sink: Sink) -> None:
    await sink.output(await start.identity.mint_token("secrets") if start.identity.can_mint_tokens else "none")


async def wait(start: Start, sink: Sink) -> None:
    await asyncio.Event().wait()


async def wait_that_hears_nothing(start: Start, sink: Sink) -> None:
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            continue


PLAYS = MappingProxyType[str, Play](
    {
        "a model call and its usage": model_and_usage,
        "nothing at all": nothing,
        "what it was given": what_it_was_given,
        "the whole history": whole_history,
        "how long the history is": length_of_the_history,
        "a part of the history": part_of_the_history,
        "a history that is left early": history_left_early,
        "two reads of the history at once": two_reads,
        "tools one after the other": tools_in_turn,
        "tools at once": tools_at_once,
        "a tool that it runs itself": own_tool,
        "a call that is parked": parked,
        "a park that is wrapped": park_wrapped,
        "a park beside another failure": park_beside_another_failure,
        "a park that is swallowed": park_swallowed,
        "an effect that is refused": refused,
        "an effect that is refused, and caught": refused_and_caught,
        "a model that is refused": model_refused,
        "an output that nobody can record": output_that_nobody_can_record,
        "an output that is refused": output_refused,
        "a report of what is the host's": report_of_the_hosts,
        "a report of a call that the host runs, and caught": report_of_a_host_call,
        "a report of a call that the host refused": report_of_a_refused_call,
        "an end that failed": failed,
        "an error with a code": error_with_a_code,
        "an error without a code": error_without_a_code,
        "many outputs": many_outputs,
        "many outputs at once": many_outputs_at_once,
        "a large output": large_output,
        "a token": token,
        "a token that is refused": token_refused,
        "a wait": wait,
        "a wait that hears nothing": wait_that_hears_nothing,
    }
)

harness = Harness(
    id="probe",
    version="1",
    tools=[
        ToolSpec(name="look", mediation=Mediation.MEDIATION_CONTROLLER_MEDIATED),
        ToolSpec(name="pay", mediation=Mediation.MEDIATION_REQUIRES_APPROVAL),
    ],
)


@harness.run
async def run(start: Start, sink: Sink) -> None:
    name = start.config.decode()
    play = PLAYS.get(name)
    if play is None:
        raise HarnessFailure("invalid_argument", f"no play is called {name}")
    await play(start, sink)


if __name__ == "__main__":
    serve(harness)
