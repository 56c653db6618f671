"""What the host hands a harness for one execution."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from .errors import HoldfastError
from .history import History
from .types import IdentityRef, Message, ToolDefinition

TokenMinter = Callable[[Sequence[str]], Awaitable[str]]


@dataclass(frozen=True)
class Identity:
    """On whose behalf the turn runs."""

    principal: IdentityRef | None = None
    """The session's principal; None when it has none."""
    minter: TokenMinter | None = field(default=None, repr=False)

    @property
    def can_mint_tokens(self) -> bool:
        """Whether the host has a key to sign tokens with."""
        return self.minter is not None

    async def mint_token(self, audience: str | Sequence[str]) -> str:
        """A short-lived, scoped token with which the harness acts for the principal, for the given audience only.

        Raises FAILED_PRECONDITION where the host cannot mint tokens. A token is a secret: do not put it into an effect.
        """
        if self.minter is None:
            raise HoldfastError("failed_precondition", "identity: this host mints no tokens; look at can_mint_tokens first")
        wanted = [audience] if isinstance(audience, str) else list(audience)
        if not wanted or "" in wanted:
            raise HoldfastError("invalid_argument", "audience: must name at least one, and none of them empty")
        return await self.minter(wanted)


class Cancellation:
    """Whether the turn was cancelled, and why. The run itself gets `asyncio.CancelledError`."""

    def __init__(self) -> None:
        self._reason: str | None = None

    @property
    def reason(self) -> str | None:
        """`USER`, `TIMEOUT` or `INTERNAL`; None while the turn goes on."""
        return self._reason

    def note(self, reason: str) -> None:
        """Keeps the first reason."""
        if self._reason is None:
            self._reason = reason


@dataclass(frozen=True)
class Start:
    """The invocation of one execution."""

    execution_id: str
    session_uid: str
    history: History
    """Every event before this execution, also after a memory restore."""
    inputs: Sequence[Message] = ()
    """The messages of this invocation, in order; none for a turn without input."""
    config: bytes = b""
    """Opaque, journaled verbatim and given again on recovery. No place for secrets."""
    identity: Identity = field(default_factory=Identity)
    resume_from_seq: int = 0
    """The harness's own opaque cursor."""
    model: str = ""
    """The session's default model; empty when it has none."""
    replayed: bool = False
    """True when the execution is a check of a recorded one. A harness has no need to look: it must do the same either way."""
    tools: Sequence[ToolDefinition] = ()
    """The host's tools as they were when the execution started, in a stable order; a replay is given the same."""
    cancellation: Cancellation = field(default_factory=Cancellation)
