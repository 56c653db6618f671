"""What an end stands on, and the numbers of the protocol."""

from __future__ import annotations

from typing import Final, Protocol

from .._gen.holdfast.v1.harness_wire_pb2 import HarnessFrame

PROTOCOL: Final = 1
"""The version of the protocol that both ends speak."""

FRAME_BYTES_MAX: Final = 64 * 1024 * 1024
"""The most bytes of one encoded frame that this end takes."""

HISTORY_PAGES_AHEAD: Final = 4
"""Pages of one read that may be under way or unread: the memory that a long history takes."""

READS_MAX: Final = 16
"""Reads of the history that one execution may have open; a host takes no more."""

TOKEN_REQUESTS_MAX: Final = 16
"""Requests for tokens that are sent before the first is answered; further ones wait."""


class HarnessLine(Protocol):
    """Moves frames to the host, whole and in the order written."""

    def write(self, frame: HarnessFrame) -> None:
        """Takes the frame. Raises UNAVAILABLE once the line is closed."""

    async def drain(self) -> None:
        """Returns when the line can take the next frame, so that nothing grows without bound."""
