"""Serving until told to stop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from typing import Any, Final

from ..errors import HoldfastError
from ..harness import Harness
from .listen import VARIABLE, Stdio, Tcp, UnixSocket, parse_listen
from .stdio import serve_stdio

LOG = logging.getLogger("holdfast_harness")

STOP_GRACE_S: Final = 5.0


def serve(harness: Harness, listen: str | None = None) -> None:
    """Serves a harness until its host closes the line (stdio), or SIGTERM or SIGINT comes. It ends the process on a fault.

    `listen` is `stdio`, `unix:///path` or `host:port`; by default what the environment variable HOLDFAST_HARNESS_LISTEN says.
    """
    with contextlib.suppress(KeyboardInterrupt):
        try:
            asyncio.run(serve_async(harness, listen))
        except HoldfastError as fault:
            sys.stderr.write(f"holdfast_harness: {fault.message}\n")
            sys.exit(1)


async def serve_async(harness: Harness, listen: str | None = None, *, ready: Callable[[str], None] | None = None) -> None:
    """The same, within a running event loop, until the task is cancelled. `ready` is told the address once it can be dialled."""
    _ = harness.runner
    where = parse_listen(_listen_text(listen))
    if isinstance(where, Stdio):
        await _until_stopped(serve_stdio(harness))
    else:
        await _until_stopped(_serve_grpc(harness, where, ready))


def _listen_text(listen: str | None) -> str:
    text = listen if listen is not None else os.environ.get(VARIABLE)
    if text is None:
        raise HoldfastError("invalid_argument", f"{VARIABLE}: must be set to stdio, unix:///an/absolute/path or host:port")
    return text


async def _serve_grpc(harness: Harness, where: UnixSocket | Tcp, ready: Callable[[str], None] | None) -> None:
    # grpcio takes 50 ms to load, which a harness on stdio need not wait for.
    from .grpc_server import HarnessServer

    server = HarnessServer(harness)
    try:
        where.refuse_taken()
        port = await server.start(where.address())
        LOG.info("harness %s is served", harness.descriptor.id)
        if ready is not None:
            ready(where.address(port))
        await asyncio.get_running_loop().create_future()
    finally:
        await server.stop(STOP_GRACE_S)


async def _until_stopped(work: Coroutine[Any, Any, None]) -> None:
    """Runs the work; SIGTERM and SIGINT cancel it, and it returns when it has unwound."""
    loop = asyncio.get_running_loop()
    task = loop.create_task(work)
    stopping = False

    def stop() -> None:
        nonlocal stopping
        stopping = True
        task.cancel()

    handled = []
    for number in (signal.SIGTERM, signal.SIGINT):
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(number, stop)
            handled.append(number)
    try:
        await task
    except asyncio.CancelledError:
        if not stopping:
            raise
    finally:
        for number in handled:
            loop.remove_signal_handler(number)
