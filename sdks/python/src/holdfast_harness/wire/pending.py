"""What an execution has asked for and was not answered yet."""

from __future__ import annotations

import asyncio
from typing import Final

from ..errors import HoldfastError, ProtocolFault, code_of_grpc
from ..sink import ModelResponse
from ..types import ToolResult


class Effect:
    """One event that was sent: `model` and `tool` wait for an answer; the others hear of a refusal only."""

    def __init__(self, ordinal: int, key: str) -> None:
        self.ordinal: Final = ordinal
        self.key: Final = key
        self.answer: Final[asyncio.Future[ModelResponse | ToolResult]] = asyncio.get_running_loop().create_future()


class Pending:
    """Effects by their id and by their ordinal. Ids are told apart by what was asked: `model:…` and `tool:…`."""

    def __init__(self) -> None:
        self._by_key: dict[str, Effect] = {}
        self._by_ordinal: dict[int, Effect] = {}

    def add(self, ordinal: int, key: str) -> Effect:
        effect = Effect(ordinal, key)
        self._by_key[key] = effect
        self._by_ordinal[ordinal] = effect
        return effect

    def holds(self, key: str) -> bool:
        return key in self._by_key

    def get(self, key: str, what: str) -> Effect:
        """The effect, which stays. Raises ProtocolFault when nothing was asked under this key."""
        effect = self._by_key.get(key)
        if effect is None:
            raise ProtocolFault(f"{what} answers nothing that was asked")
        return effect

    def answer(self, key: str, what: str, value: ModelResponse | ToolResult) -> None:
        self._settle(self.get(key, what), value)

    def fail(self, effect: Effect, error: BaseException) -> None:
        self._settle(effect, error)

    def at(self, ordinal: int) -> Effect | None:
        return self._by_ordinal.get(ordinal)

    def forget_all(self, reason: str) -> None:
        """Cancels whatever still waits."""
        for effect in list(self._by_ordinal.values()):
            effect.answer.cancel(reason)
        self._by_key.clear()
        self._by_ordinal.clear()

    def _settle(self, effect: Effect, outcome: ModelResponse | ToolResult | BaseException) -> None:
        del self._by_key[effect.key]
        del self._by_ordinal[effect.ordinal]
        # A waiter that was cancelled has gone; its answer is for nobody.
        if effect.answer.done():
            return
        if isinstance(outcome, BaseException):
            effect.answer.set_exception(outcome)
        else:
            effect.answer.set_result(outcome)


def refusal_of(code: int, description: str) -> HoldfastError:
    """The error that the host sent."""
    return HoldfastError(code_of_grpc(code), description or "the host refused the effect")
