"""A history that is pulled, one that is pushed, and tokens."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from holdfast_harness import Event, EventKind, HoldfastError, Sink, Start, history_of, text_message
from holdfast_harness._gen.holdfast.v1.harness_wire_pb2 import ReadHistoryRequest

from .support import ExecutionOpening, HistoryPage, Host, IdentityContext, WireError


def event_at(seq: int) -> Event:
    return Event(kind=EventKind.EVENT_INPUT, message=text_message("user", str(seq)))


def pulled(last_seq: int) -> ExecutionOpening:
    return ExecutionOpening(history_last_seq=last_seq, history_pulled=True)


class PagingHost(Host):
    """Answers reads, no faster than it is asked."""

    def __init__(self, run, *, page_events: int) -> None:  # type: ignore[no-untyped-def]
        super().__init__(run)
        self.page_events = page_events
        self.ahead_max = 0

    async def feed(self) -> None:
        """Serves one read to its end."""
        request = await self.request()
        at, last, credit = request.from_seq, request.to_seq, request.pages
        while at <= last:
            while credit == 0:
                credit += (await self.request()).pages
            credit -= 1
            self.ahead_max = max(self.ahead_max, credit + 1)
            end = min(at + self.page_events - 1, last)
            events = [event_at(seq) for seq in range(at, end + 1)]
            self.page(request.read, at, events, last=end == last)
            at = end + 1

    async def request(self) -> ReadHistoryRequest:
        frame = await self.next()
        assert frame.HasField("read_history"), frame
        return frame.read_history

    def page(self, read: int, first_seq: int, events: list[Event], *, last: bool = False) -> None:
        self.send(1, history=HistoryPage(read=read, first_seq=first_seq, events=events, last=last))


async def skip_requests(host: Host) -> None:
    """Reads the requests for more that were under way when the last page came."""
    while True:
        frame = await host.next()
        if frame.HasField("event"):
            assert frame.event.end.state == "COMPLETED"
            assert (await host.ended()).code == 0
            return
        assert frame.HasField("read_history")


class TestAPulledHistory:
    async def test_is_read_on_demand_and_in_order(self) -> None:
        seen: list[int] = []

        async def run(start: Start, sink: Sink) -> None:
            assert start.history.last_seq == 10
            async for seq, event in start.history:
                assert event == event_at(seq)
                seen.append(seq)

        host = PagingHost(run, page_events=3)
        host.begin(opening=pulled(10))
        await host.feed()
        await skip_requests(host)
        assert seen == list(range(1, 11))

    async def test_costs_nothing_unless_it_is_read(self) -> None:
        async def run(start: Start, sink: Sink) -> None:
            return None

        host = Host(run)
        host.begin(opening=pulled(1_000_000))
        await host.completed()

    async def test_is_read_in_a_range_that_is_cut_to_what_there_is(self) -> None:
        pages: list[tuple[int, int]] = []

        async def run(start: Start, sink: Sink) -> None:
            async for page in start.history.pages(4, 1_000):
                pages.append((page.first_seq, len(page.events)))
            async for page in start.history.pages(11):
                raise AssertionError(page)

        host = PagingHost(run, page_events=5)
        host.begin(opening=pulled(10))
        await host.feed()
        await skip_requests(host)
        assert pages == [(4, 5), (9, 2)]

    async def test_a_read_that_is_left_early_is_given_up_and_its_late_pages_are_passed_over(self) -> None:
        async def run(start: Start, sink: Sink) -> None:
            async with aclosing(start.history.events()) as events:
                async for seq, _ in events:
                    if seq == 2:
                        break
            await sink.output("enough")

        host = PagingHost(run, page_events=2)
        host.begin(opening=pulled(10))
        request = await host.request()
        host.page(request.read, 1, [event_at(1), event_at(2)])
        gave_up = await host.request()
        assert (gave_up.read, gave_up.more, gave_up.pages) == (request.read, True, 0)
        await host.event()
        host.page(request.read, 3, [event_at(3), event_at(4)])
        await host.completed()

    async def test_several_reads_run_at_once(self) -> None:
        async def count(start: Start) -> int:
            return len([seq async for seq, _ in start.history])

        async def run(start: Start, sink: Sink) -> None:
            counts = await asyncio.gather(count(start), count(start))
            await sink.output(str(counts))

        host = PagingHost(run, page_events=1)
        host.begin(opening=pulled(2))
        first, second = await host.request(), await host.request()
        assert first.read != second.read
        for read in (second.read, first.read):
            host.page(read, 1, [event_at(1), event_at(2)], last=True)
        while (frame := await host.next()).HasField("read_history"):
            pass
        assert frame.event.message == text_message("assistant", "[2, 2]")
        await host.completed()

    async def test_a_read_that_failed_raises_the_hosts_error(self) -> None:
        async def run(start: Start, sink: Sink) -> None:
            async for _ in start.history:
                pass

        host = PagingHost(run, page_events=1)
        host.begin(opening=pulled(2))
        request = await host.request()
        error = WireError(code=14, description="history: try later")
        host.send(1, history=HistoryPage(read=request.read, last=True, error=error))
        end = await host.ended()
        assert (end.code, end.description) == (14, "history: try later")

    async def test_more_open_reads_than_a_host_takes_are_refused(self) -> None:
        async def run(start: Start, sink: Sink) -> None:
            results = await asyncio.gather(*(anext(start.history.pages()) for _ in range(17)), return_exceptions=True)
            error = results[16]
            assert isinstance(error, HoldfastError)
            assert error.code == "resource_exhausted"
            await sink.output("done")

        host = PagingHost(run, page_events=1)
        host.begin(opening=pulled(1))
        requests = [await host.request() for _ in range(16)]
        for request in requests:
            host.page(request.read, 1, [event_at(1)], last=True)
        await host.event()
        await host.completed()

    @pytest.mark.parametrize(
        ("pages", "rule"),
        [
            ([(2, 1, False)], "not the next one of its read"),
            ([(1, 2, False), (2, 1, False)], "not the next one of its read"),
            ([(1, 11, False)], "not the next one of its read"),
            ([(1, 0, False)], "has no events"),
            ([(1, 3, True)], "ended before the last event"),
            ([(1, 1, False), (2, 1, False), (3, 1, False), (4, 1, False), (5, 1, False)], "was not asked for"),
        ],
    )
    async def test_a_page_that_is_not_the_next_is_a_fault_of_the_host(self, pages: list[tuple[int, int, bool]], rule: str) -> None:
        async def run(start: Start, sink: Sink) -> None:
            async for _ in start.history:
                await asyncio.Event().wait()

        host = PagingHost(run, page_events=1)
        host.begin(opening=pulled(10))
        request = await host.request()
        for first, count, last in pages:
            host.page(request.read, first, [event_at(first + offset) for offset in range(count)], last=last)
        end = await host.ended()
        assert (end.code, rule in end.description) == (13, True)

    async def test_never_has_more_than_four_pages_ahead_of_its_reader(self) -> None:
        total = 0

        async def run(start: Start, sink: Sink) -> None:
            nonlocal total
            async for _ in start.history:
                total += 1

        host = PagingHost(run, page_events=10)
        host.begin(opening=pulled(1_000))
        await host.feed()
        await skip_requests(host)
        assert (total, host.ahead_max) == (1_000, 4)


class TestAPushedHistory:
    async def test_is_read_in_the_same_way(self) -> None:
        seen: list[int] = []

        async def run(start: Start, sink: Sink) -> None:
            seen.extend([seq async for seq, _ in start.history.events(2)])

        host = Host(run)
        host.begin(opening=ExecutionOpening(history_last_seq=3), history=[event_at(seq) for seq in (1, 2, 3)])
        await host.completed()
        assert seen == [2, 3]

    async def test_comes_in_pages_of_a_bounded_size(self) -> None:
        pages = [(page.first_seq, len(page.events)) async for page in history_of([event_at(1)] * 1_030).pages(3, 1_028)]
        assert pages == [(3, 512), (515, 512), (1_027, 2)]


class TestTokens:
    async def test_are_minted_by_the_host_for_an_audience(self) -> None:
        async def run(start: Start, sink: Sink) -> None:
            assert start.identity.can_mint_tokens
            tokens = await asyncio.gather(start.identity.mint_token("a"), start.identity.mint_token(["b", "c"]))
            await sink.output(" ".join(tokens))

        host = Host(run)
        host.begin(identity=IdentityContext(can_mint_tokens=True))
        first, second = (await host.next()).mint_token, (await host.next()).mint_token
        assert (list(first.audience), list(second.audience)) == (["a"], ["b", "c"])
        host.send(1, token={"request": second.request, "token": "two"})
        host.send(1, token={"request": first.request, "token": "one"})
        assert (await host.event()).message == text_message("assistant", "one two")
        await host.completed()

    async def test_that_are_refused_raise_the_hosts_error(self) -> None:
        async def run(start: Start, sink: Sink) -> None:
            await start.identity.mint_token("a")

        host = Host(run)
        host.begin(identity=IdentityContext(can_mint_tokens=True))
        request = (await host.next()).mint_token.request
        host.send(1, token={"request": request, "error": {"code": 7, "description": "identity: not for this audience"}})
        assert (await host.ended()).code == 7

    @pytest.mark.parametrize(
        ("can", "audience", "code"),
        [(False, "a", "failed_precondition"), (True, [], "invalid_argument"), (True, "", "invalid_argument")],
    )
    async def test_that_cannot_be_had_are_not_asked_for(self, can: bool, audience: str | list[str], code: str) -> None:
        async def run(start: Start, sink: Sink) -> None:
            with pytest.raises(HoldfastError) as caught:
                await start.identity.mint_token(audience)
            assert caught.value.code == code

        host = Host(run)
        host.begin(identity=IdentityContext(can_mint_tokens=can))
        await host.completed()

    async def test_no_more_are_under_way_than_a_host_takes(self) -> None:
        async def run(start: Start, sink: Sink) -> None:
            await asyncio.gather(*(start.identity.mint_token("a") for _ in range(40)))

        host = Host(run)
        host.begin(identity=IdentityContext(can_mint_tokens=True))
        waiting: list[int] = []
        for answered in range(40):
            while len(waiting) < min(16, 40 - answered):
                waiting.append((await host.next()).mint_token.request)
            await host.silent()
            host.send(1, token={"request": waiting.pop(0), "token": "t"})
        await host.completed()
