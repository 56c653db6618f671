"""An agent: what it is, and the function that drives one execution."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeVar

from .sink import Sink
from .start import Start
from .types import Capabilities, HarnessDescriptor, Mediation, Resumability, ToolSpec

RunFunction = Callable[[Start, Sink], Awaitable[None]]
R = TypeVar("R", bound=RunFunction)


class Harness:
    """An agent. One object drives any number of executions of any number of sessions, at once.

    `version` is recorded with every turn, and an interrupted turn is resumed by the same version only. Without `capabilities`
    the harness keeps nothing that the journal does not hold, and may be forked.
    """

    def __init__(
        self,
        *,
        id: str,
        version: str,
        models: Iterable[str] = (),
        tools: Iterable[ToolSpec] = (),
        capabilities: Capabilities | None = None,
    ) -> None:
        if id == "":
            raise ValueError("Harness: id must not be empty")
        tools = list(tools)
        if len({tool.name for tool in tools}) < len(tools):
            raise ValueError("Harness: tools must have one entry for each name")
        self._descriptor = HarnessDescriptor(
            id=id,
            version=version,
            models=models,
            tools=tools,
            capabilities=capabilities or Capabilities(resumability=Resumability.RESUMABILITY_STATELESS_REPLAY, fork_safe=True),
        )
        self._run: RunFunction | None = None

    def run(self, function: R) -> R:
        """Decorates the run: `async def run(start, sink)`. It drives exactly one execution.

        Returning means COMPLETED. `HarnessFailure` means END FAILED, for good. Any other exception leaves ERROR, and the turn can
        be resumed. On a cancel or at the deadline the run gets `asyncio.CancelledError`.
        """
        target = function if inspect.isroutine(function) else type(function).__call__
        if not inspect.iscoroutinefunction(target):
            raise TypeError("Harness.run: the run must be an async function of (start, sink)")
        if self._run is not None:
            raise TypeError("Harness.run: this harness has its run already")
        self._run = function
        return function

    @property
    def descriptor(self) -> HarnessDescriptor:
        """What the host is told: a copy."""
        copy = HarnessDescriptor()
        copy.CopyFrom(self._descriptor)
        return copy

    @property
    def mediations(self) -> Mapping[str, Mediation]:
        """Who runs each of the harness's tools."""
        return {tool.name: tool.mediation for tool in self._descriptor.tools}

    @property
    def runner(self) -> RunFunction:
        """The run. Raises TypeError when there is none."""
        if self._run is None:
            raise TypeError("Harness: it has no run; decorate an async function with @harness.run")
        return self._run
