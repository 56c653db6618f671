"""Frames on a stream of bytes: a length in 4 bytes, big-endian, then the frame."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, Generic, TypeVar

from google.protobuf.message import DecodeError, Message

from ..errors import HoldfastError

HEAD_BYTES: Final = 4
M = TypeVar("M", bound=Message)


def encode_frame(frame: Message) -> bytes:
    """The bytes of a frame, its length before it."""
    body = frame.SerializeToString()
    return len(body).to_bytes(HEAD_BYTES, "big") + body


class FrameDecoder(Generic[M]):
    """Cuts a stream into frames, however its bytes come. It holds one frame at most, and none that is larger than allowed."""

    def __init__(self, frame_type: Callable[[], M], frame_bytes_max: int) -> None:
        self._frame_type = frame_type
        self._frame_bytes_max = frame_bytes_max
        self._buffer = bytearray()

    @property
    def is_between_frames(self) -> bool:
        """Whether a stream may end here."""
        return not self._buffer

    def feed(self, data: bytes) -> Iterator[M]:
        """The frames that end within `data`. Raises RESOURCE_EXHAUSTED for a length over the limit, before its bytes are taken,
        and INVALID_ARGUMENT for bytes that are no frame; the stream cannot go on then."""
        self._buffer += data
        while len(self._buffer) >= HEAD_BYTES:
            size = int.from_bytes(self._buffer[:HEAD_BYTES], "big")
            if size > self._frame_bytes_max:
                message = f"harness wire: a frame has {size} bytes; at most {self._frame_bytes_max} are allowed"
                raise HoldfastError("resource_exhausted", message)
            if len(self._buffer) < HEAD_BYTES + size:
                return
            body = bytes(self._buffer[HEAD_BYTES : HEAD_BYTES + size])
            del self._buffer[: HEAD_BYTES + size]
            yield self._decode(body)

    def _decode(self, body: bytes) -> M:
        frame = self._frame_type()
        try:
            frame.ParseFromString(body)
        except DecodeError:
            raise HoldfastError("invalid_argument", "harness wire: the host sent bytes that are no frame") from None
        return frame
