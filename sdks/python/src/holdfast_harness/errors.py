"""What can go wrong, and how a run says how it ended.

An operating fault is a `HoldfastError` with a code of a closed set. `HarnessFailure` is the author's own: the turn has failed for
good. `ApprovalParked` is no failure at all: the turn waits for a decision, and the SDK handles it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, get_args

if TYPE_CHECKING:
    from ._gen.agentsessions.v1.common_pb2 import ApprovalRef

ErrorCode = Literal[
    "cancelled",
    "invalid_argument",
    "deadline_exceeded",
    "not_found",
    "already_exists",
    "permission_denied",
    "resource_exhausted",
    "failed_precondition",
    "aborted",
    "unimplemented",
    "internal",
    "unavailable",
    "data_loss",
    "unauthenticated",
]
"""The closed set of fault codes."""

_GRPC: Final[dict[ErrorCode, int]] = {
    "cancelled": 1,
    "invalid_argument": 3,
    "deadline_exceeded": 4,
    "not_found": 5,
    "already_exists": 6,
    "permission_denied": 7,
    "resource_exhausted": 8,
    "failed_precondition": 9,
    "aborted": 10,
    "unimplemented": 12,
    "internal": 13,
    "unavailable": 14,
    "data_loss": 15,
    "unauthenticated": 16,
}

ERROR_CODES: Final[tuple[ErrorCode, ...]] = get_args(ErrorCode)


def grpc_code_of(code: ErrorCode) -> int:
    """The gRPC status number of a code."""
    return _GRPC[code]


def code_of_grpc(status: int) -> ErrorCode:
    """The code of a gRPC status number; `internal` for one outside the closed set."""
    for code, number in _GRPC.items():
        if number == status:
            return code
    return "internal"


class HoldfastError(Exception):
    """An operating fault. `code` is one of the closed set; the message names what is wrong and what would be right."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code: Final = code
        self.message: Final = message

    @property
    def grpc_code(self) -> int:
        return _GRPC[self.code]

    def __repr__(self) -> str:
        return f"HoldfastError({self.code!r}, {self.message!r})"


class ProtocolFault(HoldfastError):
    """The host sent what it may not send. The message names the rule."""

    def __init__(self, rule: str) -> None:
        super().__init__("internal", f"harness wire: {rule}")


class HarnessFailure(Exception):
    """Raised by an author: the turn has failed for good and is recorded as END FAILED.

    `code` is a code of the closed set or a gRPC status number from 1 on. The description is journaled: it is no place for secrets.
    """

    def __init__(self, code: ErrorCode | int, description: str) -> None:
        super().__init__(description)
        self.grpc_code: Final[int] = code if isinstance(code, int) else _GRPC[code]
        if self.grpc_code == 0:
            raise ValueError("HarnessFailure: code must not be 0, which is success")
        self.description: Final = description


class ApprovalParked(BaseException):
    """Unwinds a run whose tool call waits for a decision. Let it pass: the SDK parks the turn, and the run is made again later.

    It is a BaseException, like `asyncio.CancelledError`, so that `except Exception` does not swallow it. A run that does swallow
    it fails, with an error that says so.
    """

    def __init__(self, ref: ApprovalRef) -> None:
        super().__init__("the turn is parked until its approval request is decided")
        self.ref: Final = ref


def park_of(error: BaseException) -> ApprovalRef | None:
    """The first park in `error`, where it is nothing but parks, however grouped or wrapped; None where anything else failed too."""
    if isinstance(error, ApprovalParked):
        return error.ref
    # BaseExceptionGroup is Python 3.11's, and of back-ports; both have `exceptions`.
    grouped = getattr(error, "exceptions", None)
    if isinstance(grouped, tuple):
        refs = [park_of(inner) for inner in grouped]
        return refs[0] if refs and None not in refs else None
    return None if error.__cause__ is None else park_of(error.__cause__)
