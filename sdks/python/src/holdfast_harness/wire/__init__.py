"""The harness's end of the line protocol: frames in, frames out. Nothing here touches a socket, a pipe or a clock."""

from .end import HarnessEnd
from .line import FRAME_BYTES_MAX, PROTOCOL, HarnessLine

__all__ = ["FRAME_BYTES_MAX", "PROTOCOL", "HarnessEnd", "HarnessLine"]
