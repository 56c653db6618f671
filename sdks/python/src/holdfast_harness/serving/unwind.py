"""Waiting for runs that were cancelled."""

from __future__ import annotations

import asyncio
import logging

from ..wire import HarnessEnd

LOG = logging.getLogger("holdfast_harness")


async def unwind(end: HarnessEnd, grace_s: float) -> None:
    """Gives the cancelled runs of a line a while to clean up."""
    try:
        await asyncio.wait_for(end.unwound(), grace_s)
    except asyncio.TimeoutError:
        LOG.error("a run did not unwind within %s s after its line was closed", grace_s)
