"""Serving until the host closes the line, or the program is told to end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Protocol

from ..errors import HoldfastError
from ..harness import Harness
from .listen import DEFAULT_LISTEN, VARIABLE, Stdio, parse_listen
from .stdio import StdioServing, is_claimed

LOG = logging.getLogger("holdfast_harness")

UNWIND_S: Final = 5.0
"""How long runs that were cancelled may take to clean up."""


class Serving(Protocol):
    """A harness that is served."""

    @property
    def address(self) -> str: ...
    async def ended(self) -> None:
        """Returns when the host has closed the line; never for a socket, which serves many."""

    async def idle(self) -> None:
        """Returns when no run is left."""

    async def close(self, unwind_s: float) -> None:
        """Cancels what runs, and waits for it."""


def serve(harness: Harness, listen: str | None = None, *, grace_s: float = 5.0) -> None:
    """Serves a harness until its host closes the line (stdio), or SIGTERM or SIGINT comes. It ends the process on a fault.

    `listen` is `stdio`, `unix:///path` or `host:port`. Default: what the environment variable HOLDFAST_HARNESS_LISTEN says, otherwise
    127.0.0.1:7070. A program that is told to end lets its turns go on for `grace_s` seconds, then cancels them.
    """
    with contextlib.suppress(KeyboardInterrupt):
        try:
            asyncio.run(serve_async(harness, listen, grace_s=grace_s))
        except HoldfastError as fault:
            sys.stderr.write(f"holdfast_harness: {fault.message}\n")
            sys.exit(1)


async def serve_async(
    harness: Harness,
    listen: str | None = None,
    *,
    grace_s: float = 5.0,
    ready: Callable[[str], None] | None = None,
) -> None:
    """The same, within a running event loop; cancelling it cancels what runs. `ready` is told the address once it can be dialled."""
    serving = await _open(harness, _listen_text(listen))
    if serving.address != "stdio":
        sys.stderr.write(f"harness served at {serving.address}\n")
    try:
        if ready is not None:
            ready(serving.address)
        with _told_to_end() as told:
            await _until(serving, told, grace_s)
    finally:
        await serving.close(UNWIND_S)


def _listen_text(listen: str | None) -> str:
    if listen is not None:
        return listen
    return "stdio" if is_claimed() else os.environ.get(VARIABLE, DEFAULT_LISTEN)


async def _open(harness: Harness, listen: str) -> Serving:
    _ = harness.runner
    where = parse_listen(listen)
    if isinstance(where, Stdio):
        return await StdioServing.open(harness)
    # grpcio takes a while to load, which a harness on stdio need not wait for.
    from .grpc_server import GrpcServing

    return await GrpcServing.open(harness, where)


async def _until(serving: Serving, told: asyncio.Event, grace_s: float) -> None:
    """Returns when the host has closed the line, or when the program was told to end and no turn is left, or none may go on."""
    ended = asyncio.ensure_future(serving.ended())
    waiting = asyncio.ensure_future(told.wait())
    idle = asyncio.ensure_future(_idle_after(told, serving))
    try:
        await asyncio.wait((ended, waiting), return_when=asyncio.FIRST_COMPLETED)
        if not ended.done():
            await asyncio.wait((ended, idle), timeout=grace_s, return_when=asyncio.FIRST_COMPLETED)
        if ended.done():
            ended.result()
    finally:
        for task in (ended, waiting, idle):
            task.cancel()


async def _idle_after(told: asyncio.Event, serving: Serving) -> None:
    await told.wait()
    await serving.idle()


@contextmanager
def _told_to_end() -> Iterator[asyncio.Event]:
    """An event that SIGTERM and SIGINT set, where signals can be had."""
    loop = asyncio.get_running_loop()
    told = asyncio.Event()
    handled: list[signal.Signals] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(number, told.set)
            handled.append(number)
    try:
        yield told
    finally:
        for number in handled:
            loop.remove_signal_handler(number)
