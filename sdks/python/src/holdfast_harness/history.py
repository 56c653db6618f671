"""The past of a session as an author sees it: read in pages, on demand; nothing is loaded that is not asked for."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Final, NamedTuple

from .types import Event


class HistoryPage(NamedTuple):
    """Consecutive events: `events[i]` has seq `first_seq + i`."""

    first_seq: int
    events: Sequence[Event]


class HistoryEvent(NamedTuple):
    """One event and its place in the journal."""

    seq: int
    event: Event


PAGE_EVENTS: Final = 512
"""Events of a page of a history that came as a whole."""

PageReader = Callable[[int, int], AsyncGenerator[HistoryPage, None]]
"""Reads from the first seq to the last, both within the history."""


class History:
    """Every event before this execution. It may be read any number of times, also by several tasks at once.

    `async for seq, event in start.history:` goes through all of it, holding a page or two at a time. Breaking off early is fine;
    a read that is not taken to its end is given up when its generator is closed.
    """

    def __init__(self, last_seq: int, read: PageReader) -> None:
        self.last_seq: Final = last_seq
        """The seq of the last event before this execution; 0 when there is none."""
        self._read = read

    async def pages(self, from_seq: int = 1, to_seq: int | None = None) -> AsyncGenerator[HistoryPage, None]:
        """Pages, oldest first, from `from_seq` to `to_seq` (default: the last); what lies outside the history is passed over."""
        first = max(from_seq, 1)
        last = self.last_seq if to_seq is None else min(to_seq, self.last_seq)
        if first > last:
            return
        pages = self._read(first, last)
        try:
            async for page in pages:
                yield page
        finally:
            await pages.aclose()

    async def events(self, from_seq: int = 1, to_seq: int | None = None) -> AsyncGenerator[HistoryEvent, None]:
        """The events one by one, oldest first."""
        pages = self.pages(from_seq, to_seq)
        try:
            async for page in pages:
                for offset, event in enumerate(page.events):
                    yield HistoryEvent(page.first_seq + offset, event)
        finally:
            await pages.aclose()

    def __aiter__(self) -> AsyncGenerator[HistoryEvent, None]:
        return self.events()


def history_of(events: Sequence[Event]) -> History:
    """A history that is there as a whole; for tests of a harness, and for hosts that push it."""

    async def read(first: int, last: int) -> AsyncGenerator[HistoryPage, None]:
        for at in range(first, last + 1, PAGE_EVENTS):
            yield HistoryPage(at, events[at - 1 : min(at - 1 + PAGE_EVENTS, last)])

    return History(len(events), read)
