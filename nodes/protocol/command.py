"""The one message of the control plane: RocketMQ's remoting command.

A codec turns bytes into a `Command` and back (`nodes.rpc.codec` for our own
msgpack frames); nothing in a node may assume which codec carried it.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from nodes.cause import NO_CAUSE, cause

VERSION: Final = 479
VERSION_DESC: Final = "V5_3_3"
"""Ordinal of RocketMQ's version; 479 is 5.3.3."""
LANGUAGE: Final = "PYTHON"
REMARK_CHARS_MAX: Final = 1_000
NO_FIELDS: Mapping[str, str] = {}
"""No header fields; never changed (a plain dict, because msgpack packs no read-only mapping)."""


new_tuple: Any = tuple.__new__
"""Makes a named tuple from a tuple of all its fields, in a third of the time that its own constructor takes: for what
is made with every message."""


class CommandFlag:
    """The bits of `Command.flag`; plain integers, since enum arithmetic would cost more than the rest of a dispatch."""

    RESPONSE: Final = 1
    ONEWAY: Final = 2


class Command(NamedTuple):
    """One request or response, immutable.

    A named tuple rather than an attrs class: this is the hottest value of the
    emulator, and a tuple is built and packed in C.

    Mirrors:
        `org.apache.rocketmq.remoting.protocol.RemotingCommand`.
    """

    code: int
    """Request code of a request, response code of a response."""
    flag: int = 0
    """Bits of `CommandFlag`."""
    opaque: int = 0
    """Chosen by the caller, unique among its open requests; a response repeats it."""
    version: int = VERSION
    language: str = LANGUAGE
    remark: str | None = None
    """The reason of an error, for people."""
    ext_fields: Mapping[str, str] = NO_FIELDS
    """The header, text to text, under RocketMQ's camelCase names."""
    body: bytes | None = None
    cause: int = NO_CAUSE
    """Trace field, not RocketMQ's: seq of the trace row that led to this frame."""
    request_code: int = 0
    """Trace field: in a response, the code of the request that it answers."""

    @property
    def is_response(self) -> bool:
        """Whether this answers a request."""
        return bool(self.flag & CommandFlag.RESPONSE)

    @property
    def is_oneway(self) -> bool:
        """Whether the caller expects no answer."""
        return bool(self.flag & CommandFlag.ONEWAY)

    def with_content(self, ext_fields: Mapping[str, str], body: bytes | None) -> "Command":
        """The same frame with another header and body."""
        return new_tuple(Command, (*self[:6], ext_fields, body, *self[8:]))  # type: ignore[no-any-return]

    def answer(
        self,
        code: int = 0,
        remark: str | None = None,
        ext_fields: Mapping[str, str] = NO_FIELDS,
        body: bytes | None = None,
    ) -> "Command":
        """The response to this request; code 0 is SUCCESS. A long remark, which repeats what a peer sent, is cut."""
        if remark is not None and len(remark) > REMARK_CHARS_MAX:
            remark = remark[: REMARK_CHARS_MAX - 1] + "…"
        requested = (VERSION, LANGUAGE, remark, ext_fields, body, cause.get(), self.code)
        return new_tuple(Command, (code, CommandFlag.RESPONSE, self.opaque, *requested))  # type: ignore[no-any-return]
