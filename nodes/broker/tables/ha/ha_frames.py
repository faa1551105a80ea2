"""Frames of an HA link, and the decisions that each end bases on them.

RocketMQ writes bare numbers and bytes of its log to this connection, no commands. Here they are sent as oneway
commands with codes of our own, far above RocketMQ's, so that faults and traces treat them like any other frame.
"""

from enum import IntEnum, StrEnum

from nodes.cause import cause
from nodes.protocol.bodies import PullMessageResponseBody
from nodes.protocol.command import LANGUAGE, VERSION, Command, CommandFlag
from nodes.protocol.errors import ProtocolError
from nodes.protocol.model import Message
from nodes.protocol.registry import decode_body, encode_body
from nodes.values import frozen

_OFFSET = "offset"


class HaFrame(IntEnum):
    """Codes of the frames on an HA link."""

    REPORT = 100_001
    """Slave to master: the end of its log."""
    TRANSFER = 100_002
    """Master to slave: the offset of a piece of the log, and the piece; without a piece it is a heartbeat."""
    HANDSHAKE = 100_003
    """Slave to master, in controller mode: who it is."""
    EPOCHS = 100_004
    """Master to slave, in controller mode: its epochs."""


class HAConnectionState(StrEnum):
    """State of one end of an HA link.

    Mirrors:
        `org.apache.rocketmq.store.ha.HAConnectionState`.
    """

    READY = "ready"
    """The slave has no connection."""
    HANDSHAKE = "handshake"
    """There is a connection, and the two ends, in controller mode, compare their epochs."""
    TRANSFER = "transfer"
    """There is a connection; the state of the other end may differ."""
    SHUTDOWN = "shutdown"


@frozen
class Transfer:
    """A piece of the master's log."""

    ordinal: int
    """Number of pieces before this one on the connection, without heartbeats."""
    master_phy_offset: int
    """Offset of its first byte."""
    messages: tuple[Message, ...] = ()


def encode_report(max_offset: int) -> Command:
    """A slave's report."""
    return _frame(HaFrame.REPORT, 0, max_offset, None)


def parse_report(command: Command) -> int | None:
    """The offset in a slave's report; None: the frame is no report."""
    return _offset(command) if command.code == HaFrame.REPORT else None


def encode_transfer(transfer: Transfer) -> Command:
    """A piece of the log, or a heartbeat."""
    body = encode_body(PullMessageResponseBody(transfer.messages)) if transfer.messages else None
    return _frame(HaFrame.TRANSFER, transfer.ordinal, transfer.master_phy_offset, body)


def parse_transfer(command: Command) -> Transfer | None:
    """The piece of the log in a frame; None: the frame is none."""
    offset = _offset(command)
    if command.code != HaFrame.TRANSFER or offset is None:
        return None
    if command.body is None:
        return Transfer(command.opaque, offset)
    try:
        return Transfer(command.opaque, offset, decode_body(PullMessageResponseBody, command.body).messages)
    except ProtocolError:
        return None


def refuse_transfer(transfer: Transfer | None, *, expected_ordinal: int, max_phy_offset: int) -> str | None:
    """Why a slave drops the connection instead of appending what it received.

    An empty log accepts any first piece. A missing ordinal means that a fault has removed a frame, which TCP would
    have retransmitted: here the loss of a frame costs the connection.

    Returns:
        The reason; None: the frame is accepted.

    Mirrors:
        `org.apache.rocketmq.store.ha.DefaultHAClient#dispatchReadRequest`.
    """
    if transfer is None:
        return "not a frame of a master"
    if transfer.ordinal != expected_ordinal:
        return "the network lost a piece"
    if max_phy_offset not in (0, transfer.master_phy_offset):
        return f"the master pushes offset {transfer.master_phy_offset}, the own log ends at {max_phy_offset}"
    return None


def start_position(slave_request_offset: int, *, max_phy_offset: int, mapped_file_size: int) -> int:
    """Where a master starts the transfer: at the slave's end, or at its last file if the slave's log is empty.

    Mirrors:
        `org.apache.rocketmq.store.ha.DefaultHAConnection.WriteSocketService#run`.
    """
    return slave_request_offset or max_phy_offset - max_phy_offset % mapped_file_size


def _frame(code: HaFrame, ordinal: int, offset: int, body: bytes | None) -> Command:
    fields = {_OFFSET: str(offset)}
    return Command(int(code), int(CommandFlag.ONEWAY), ordinal, VERSION, LANGUAGE, None, fields, body, cause.get())


def _offset(command: Command) -> int | None:
    try:
        offset = int(command.ext_fields[_OFFSET])
    except (KeyError, TypeError, ValueError):  # any program may connect
        return None
    return offset if offset >= 0 else None
