"""Requests for tokens that are under way on one exchange."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from .._gen.holdfast.v1.harness_wire_pb2 import HarnessFrame, MintTokenRequest, MintTokenResponse
from ..errors import HoldfastError, ProtocolFault
from .line import TOKEN_REQUESTS_MAX
from .pending import refusal_of


class Tokens:
    def __init__(self, send: Callable[[HarnessFrame], None]) -> None:
        self._send = send
        self._last_request = 0
        self._room = asyncio.Semaphore(TOKEN_REQUESTS_MAX)
        self._waiting: dict[int, asyncio.Future[str]] = {}

    async def mint(self, audience: Sequence[str]) -> str:
        async with self._room:
            self._last_request += 1
            request = self._last_request
            self._send(HarnessFrame(mint_token=MintTokenRequest(request=request, audience=audience)))
            waiting: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            self._waiting[request] = waiting
            return await waiting

    def receive(self, response: MintTokenResponse) -> None:
        waiting = self._waiting.pop(response.request, None)
        if waiting is None:
            raise ProtocolFault("a token answers no request")
        if waiting.done():
            return
        if response.HasField("error"):
            waiting.set_exception(refusal_of(response.error.code, response.error.description))
        elif response.token == "":
            waiting.set_exception(HoldfastError("internal", "identity: the host answered without a token"))
        else:
            waiting.set_result(response.token)

    def close(self, error: HoldfastError) -> None:
        for waiting in self._waiting.values():
            waiting.cancel(error.message)
        self._waiting.clear()
