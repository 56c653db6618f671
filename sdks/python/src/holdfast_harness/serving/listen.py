"""Where a harness is served: `stdio`, `unix:///path` or `host:port`."""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass
from typing import Final

from ..errors import HoldfastError

VARIABLE: Final = "HOLDFAST_HARNESS_LISTEN"
DEFAULT_LISTEN: Final = "127.0.0.1:7070"


@dataclass(frozen=True)
class Stdio:
    """Frames on the standard streams of this process."""


@dataclass(frozen=True)
class UnixSocket:
    """gRPC on a unix socket."""

    path: str

    def address(self, port: int = 0) -> str:
        """What is bound and dialled."""
        return f"unix://{self.path}"

    def refuse_taken(self) -> None:
        """Raises UNAVAILABLE where another process answers on it; gRPC would take the path away from it. A socket that was left behind is
        no hindrance."""
        probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with probe:
            try:
                probe.connect(self.path)
            except OSError:
                return
        raise HoldfastError("unavailable", "harness: another process listens on its socket")


@dataclass(frozen=True)
class Tcp:
    """gRPC on TCP, without TLS. Port 0 is any free one."""

    host: str
    port: int

    def address(self, port: int = 0) -> str:
        """What is bound, or dialled once the port is known."""
        return f"{self.host}:{port or self.port}"

    def refuse_taken(self) -> None:
        """Binding finds out by itself."""


Listen = Stdio | UnixSocket | Tcp

_TCP = re.compile(r"(?P<host>\[[0-9A-Fa-f:.%]+\]|[A-Za-z0-9.-]+):(?P<port>[0-9]{1,5})")


def parse_listen(text: str) -> Listen:
    """Raises INVALID_ARGUMENT for anything else than the three forms."""
    if text == "stdio":
        return Stdio()
    if text.startswith("unix://"):
        path = text.removeprefix("unix://")
        if path.startswith("/") and "\0" not in path:
            return UnixSocket(path)
    match = _TCP.fullmatch(text)
    if match is not None and int(match["port"]) <= 65_535:
        return Tcp(match["host"], int(match["port"]))
    raise HoldfastError("invalid_argument", f"{VARIABLE}: must be stdio, unix:///an/absolute/path or host:port")
