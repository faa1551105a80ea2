"""Frames of an HA link in controller mode; like those of other links they are commands with codes of our own.

Mirrors:
    `org.apache.rocketmq.store.ha.autoswitch.AutoSwitchHAClient`, `AutoSwitchHAConnection`, their headers.
"""

import json
from collections.abc import Mapping

from nodes.broker.tables.ha.auto_switch_link import LogBatch, MasterHandshake, SlaveHandshake
from nodes.broker.tables.ha.ha_frames import HaFrame
from nodes.cause import cause
from nodes.protocol.bodies import PullMessageResponseBody
from nodes.protocol.command import LANGUAGE, VERSION, Command, CommandFlag
from nodes.protocol.errors import ProtocolError
from nodes.protocol.model import Message
from nodes.protocol.registry import decode_body, encode_body

_ID, _LEARNER, _LAST_FILE = "brokerId", "asyncLearner", "syncFromLastFile"
_END, _LAST_EPOCH, _ENTRIES = "logEnd", "lastEpoch", "entries"
_OFFSET, _EPOCH, _START, _CONFIRM, _SIZE = "offset", "epoch", "epochStartOffset", "confirmOffset", "size"


def encode_slave_handshake(slave_handshake: SlaveHandshake) -> Command:
    """Who a slave is."""
    fields = {
        _ID: slave_handshake.broker_id,
        _LEARNER: int(slave_handshake.async_learner),
        _LAST_FILE: int(slave_handshake.sync_from_last_file),
    }
    return _frame(HaFrame.HANDSHAKE, 0, fields)


def parse_slave_handshake(command: Command) -> SlaveHandshake | None:
    """None: the frame is none."""
    found = _numbers(command, HaFrame.HANDSHAKE, _ID, _LEARNER, _LAST_FILE)
    if found is None:
        return None
    return SlaveHandshake(found[0], async_learner=bool(found[1]), sync_from_last_file=bool(found[2]))


def encode_master_handshake(master_handshake: MasterHandshake) -> Command:
    """The epochs of a master."""
    entries = json.dumps([list(entry) for entry in master_handshake.entries])
    return _frame(
        HaFrame.EPOCHS, 0, {_END: master_handshake.log_end, _LAST_EPOCH: master_handshake.last_epoch, _ENTRIES: entries}
    )


def parse_master_handshake(command: Command) -> MasterHandshake | None:
    """None: the frame is none."""
    found = _numbers(command, HaFrame.EPOCHS, _END, _LAST_EPOCH)
    if found is None:
        return None
    try:
        entries = tuple((int(epoch), int(start)) for epoch, start in json.loads(command.ext_fields[_ENTRIES]))
    except (KeyError, TypeError, ValueError):  # any program may connect
        return None
    return MasterHandshake(found[0], found[1], entries)


def encode_batch(ordinal: int, batch: LogBatch, messages: tuple[Message, ...]) -> Command:
    """A piece of the log, or a heartbeat; `ordinal` counts the pieces before it."""
    fields = {
        _OFFSET: batch.offset,
        _EPOCH: batch.epoch,
        _START: batch.epoch_start_offset,
        _CONFIRM: batch.confirm_offset,
        _SIZE: batch.size,
    }
    body = encode_body(PullMessageResponseBody(messages)) if messages else None
    return _frame(HaFrame.TRANSFER, ordinal, fields, body)


def parse_batch(command: Command) -> tuple[LogBatch, tuple[Message, ...]] | None:
    """A piece of the log and its messages; None: the frame is none."""
    found = _numbers(command, HaFrame.TRANSFER, _OFFSET, _EPOCH, _START, _CONFIRM, _SIZE)
    if found is None:
        return None
    try:
        body = command.body
        messages = () if body is None else decode_body(PullMessageResponseBody, body).messages
    except ProtocolError:
        return None
    return LogBatch(*found), messages


def _frame(code: HaFrame, ordinal: int, fields: Mapping[str, int | str], body: bytes | None = None) -> Command:
    texts = {name: str(value) for name, value in fields.items()}
    return Command(int(code), int(CommandFlag.ONEWAY), ordinal, VERSION, LANGUAGE, None, texts, body, cause.get())


def _numbers(command: Command, code: HaFrame, *names: str) -> list[int] | None:
    if command.code != code:
        return None
    try:
        return [int(command.ext_fields[name]) for name in names]
    except (KeyError, TypeError, ValueError):
        return None
