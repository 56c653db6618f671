"""Reads of the history that are under way on one exchange.

Invariant: a read holds at most HISTORY_PAGES_AHEAD pages, and they continue each other without a gap.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable

from .._gen.holdfast.v1.harness_wire_pb2 import HarnessFrame, ReadHistoryRequest
from .._gen.holdfast.v1.harness_wire_pb2 import HistoryPage as HistoryPageFrame
from ..errors import HoldfastError, ProtocolFault
from ..history import HistoryPage
from .line import HISTORY_PAGES_AHEAD, READS_MAX
from .pending import refusal_of

Ending = HoldfastError | None
"""None is the end of a read in order."""


class Read:
    """One read: what has come of it, and what may still come."""

    def __init__(self, number: int, first: int, last: int) -> None:
        self.number = number
        self.next_seq = first
        self.last_seq = last
        self.credit = HISTORY_PAGES_AHEAD
        self.pages: asyncio.Queue[HistoryPage | Ending] = asyncio.Queue()

    def take(self, page: HistoryPageFrame) -> None:
        """Keeps a page. Raises ProtocolFault for one that is not the next."""
        if self.credit == 0:
            raise ProtocolFault("a page of history came that was not asked for")
        self.credit -= 1
        if page.HasField("error"):
            self.pages.put_nowait(refusal_of(page.error.code, page.error.description))
            return
        if page.events:
            if page.first_seq != self.next_seq or page.first_seq + len(page.events) - 1 > self.last_seq:
                raise ProtocolFault("a page of history is not the next one of its read")
            self.next_seq += len(page.events)
            self.pages.put_nowait(HistoryPage(page.first_seq, page.events))
        elif not page.last:
            raise ProtocolFault("a page of history that is not the last has no events")
        if page.last:
            if self.next_seq <= self.last_seq:
                raise ProtocolFault("the history ended before the last event that was asked for")
            self.pages.put_nowait(None)


class Reads:
    """All reads of one exchange."""

    def __init__(self, send: Callable[[HarnessFrame], None]) -> None:
        self._send = send
        self._last_number = 0
        self._reads: dict[int, Read] = {}
        self._given_up: set[int] = set()

    async def read(self, first: int, last: int) -> AsyncGenerator[HistoryPage, None]:
        read = self._open(first, last)
        try:
            while True:
                page = await read.pages.get()
                if page is None:
                    return
                if isinstance(page, HoldfastError):
                    raise page
                yield page
                self._ask_more(read)
        finally:
            self._close(read)

    def receive(self, page: HistoryPageFrame) -> None:
        read = self._reads.get(page.read)
        if read is None:
            if page.read not in self._given_up:
                raise ProtocolFault("a page of history answers no read")
            return
        read.take(page)
        if page.last or page.HasField("error"):
            del self._reads[page.read]

    def close(self, error: HoldfastError) -> None:
        """Ends every read with the error."""
        for read in self._reads.values():
            read.pages.put_nowait(error)
        self._reads.clear()

    def _open(self, first: int, last: int) -> Read:
        if len(self._reads) >= READS_MAX:
            raise HoldfastError("resource_exhausted", f"history: at most {READS_MAX} reads may be open")
        self._last_number += 1
        read = Read(self._last_number, first, last)
        request = ReadHistoryRequest(read=read.number, from_seq=first, to_seq=last, pages=HISTORY_PAGES_AHEAD)
        self._send(HarnessFrame(read_history=request))
        self._reads[read.number] = read
        return read

    def _ask_more(self, read: Read) -> None:
        if read.number not in self._reads:
            return
        read.credit += 1
        self._send(HarnessFrame(read_history=ReadHistoryRequest(read=read.number, pages=1, more=True)))

    def _close(self, read: Read) -> None:
        """Gives up a read that is not at its end; pages of it that are on their way are passed over."""
        if self._reads.pop(read.number, None) is None:
            return
        self._given_up.add(read.number)
        with contextlib.suppress(HoldfastError):
            self._send(HarnessFrame(read_history=ReadHistoryRequest(read=read.number, pages=0, more=True)))
