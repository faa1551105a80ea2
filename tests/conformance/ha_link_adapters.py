"""Families ha_client and ha_master: the two ends of an HA link in controller mode.

Our ends take values and the real ones bytes, so the bytes are put together and taken apart here. A byte of the log is
its offset, modulo 256.
"""

import struct

from conformance.epoch_file_adapter import shown
from conformance.executing import Adapter
from conformance.java_errors import throwing
from nodes.broker.tables.ha.auto_switch_link import (
    LogBatch,
    MasterEnd,
    MasterHandshake,
    RefusedFrameError,
    SlaveAck,
    SlaveEnd,
    SlaveHandshake,
)
from nodes.broker.tables.ha.epoch_file import EpochFile
from nodes.broker.tables.ha.sync_state_set import MasterSyncStateSet, NoEpochError

HANDSHAKE, TRANSFER = 1, 2
SLAVE_HANDSHAKE = struct.Struct(">ihhq")
ACK = struct.Struct(">iq")
MASTER_HANDSHAKE = struct.Struct(">iiqi")
ENTRY = struct.Struct(">iq")
BATCH = struct.Struct(">iiqiqq")
SHOWN_BYTES = 72
MASTER_ID = 1
STATES = 5
"""Of HAConnectionState; a number beyond them is an ArrayIndexOutOfBoundsException."""
HEARTBEAT_INTERVAL_MS = 5_000


def log(offset, size):
    return bytes(place % 256 for place in range(offset, offset + size))


class HaClient(Adapter):
    def __init__(self, sync_from_last_file=False, async_learner=False):
        self.flags = {"sync_from_last_file": sync_from_last_file, "async_learner": async_learner}
        self.epochs, self.end, self.received = EpochFile(), None, b""

    def tables(self):
        if self.end is None:
            return {}
        return {
            "client": {
                "confirmOffset": self.end.confirm_offset,
                "maxOffset": self.max_offset,
                "receivedEpoch": self.end.received_epoch,
                "reported": self.end.reported_offset,
                "state": "TRANSFER" if self.end.is_transferring else "HANDSHAKE",
            },
            "epochs": {str(entry.epoch): shown(entry)[1:] for entry in self.epochs.entries},
        }

    def connect(self, max_offset, epochs, broker_id):
        self.max_offset, self.broker_id = max_offset, broker_id
        self.epochs = EpochFile.of(epochs)
        self.end = SlaveEnd(self.epochs, max_offset)
        return {"ok": True}

    def send_handshake(self):
        answer = SlaveHandshake(self.broker_id, **self.flags)
        raw = SLAVE_HANDSHAKE.pack(HANDSHAKE, answer.sync_from_last_file, answer.async_learner, answer.broker_id)
        return {"ok": True, "sentHex": raw.hex()}

    def receive(self, hex):  # noqa: A002 - as the case calls it
        self.received += bytes.fromhex(hex)
        self.calls, self.sent = [], b""
        try:
            while self.take_frame():
                pass
        except RefusedFrameError:
            return {"ok": False}
        return {"ok": True, "calls": self.calls or None, "sentHex": self.sent.hex() or None}

    def report_if_progress(self):
        self.sent = b""
        self.send(self.end.due_report(self.max_offset))
        return {"ok": True, "sentHex": self.sent.hex() or None}

    def take_frame(self):
        """Whether a whole frame was there."""
        state = int.from_bytes(self.received[:4], "big")
        is_batch = state == TRANSFER
        header = BATCH if is_batch else MASTER_HANDSHAKE
        if len(self.received) < header.size:
            return False
        _, size, *fields = header.unpack_from(self.received)
        if state not in (HANDSHAKE, TRANSFER):
            self.received = self.received[header.size + size :]
            if state < STATES:
                raise RefusedFrameError("another state than that of the slave")
            return False
        if len(self.received) < header.size + size:
            return False
        body, self.received = self.received[header.size :][:size], self.received[header.size + size :]
        if is_batch:
            offset, epoch, epoch_start, confirm_offset = fields
            self.take_batch(LogBatch(offset, epoch, epoch_start, confirm_offset, size), body)
        else:
            self.take_handshake(MasterHandshake(*fields, tuple(ENTRY.iter_unpack(body))))
        return True

    def take_handshake(self, handshake):
        point = self.end.on_handshake(handshake, self.max_offset)
        if point is not None:
            self.calls.append(["truncateFiles", point])
            self.max_offset = min(self.max_offset, point)
        self.send(self.end.due_report(self.max_offset))

    def take_batch(self, batch, body):
        assert body == log(batch.offset, batch.size)
        report = self.end.on_batch(batch, self.max_offset)
        if body:
            self.calls.append(["appendToCommitLog", batch.offset, batch.size])
            self.max_offset = batch.offset + batch.size
        self.send(report)

    def send(self, ack):
        if ack is not None:
            self.sent += ACK.pack(TRANSFER, ack.max_offset)


class HaMaster(Adapter):
    def __init__(self, ha_transfer_batch_size=32_768, ha_send_heartbeat_interval=HEARTBEAT_INTERVAL_MS):
        self.batch_size = ha_transfer_batch_size
        self.heartbeat_interval_ms, self.written_ms = ha_send_heartbeat_interval, 0
        self.end, self.received, self.missing = None, b"", 0

    def ordered(self, op, out):
        """Of much that was sent a case shows the beginning."""
        return out | {"sentHex": out.get("sentHex") and out["sentHex"][: 2 * SHOWN_BYTES]}

    def accept(self, max_offset, epochs):
        self.max_offset, self.epochs, self.written_ms = max_offset, EpochFile.of(epochs), self.at_ms
        in_sync = MasterSyncStateSet(
            self.epochs, all_ack_in_sync_state_set=False, ha_max_time_slave_not_catchup_ms=15_000
        )
        in_sync.broker_id = MASTER_ID
        in_sync.set_sync_state_set([MASTER_ID], max_offset)
        self.end = MasterEnd(self.epochs, in_sync, ha_transfer_batch_size=self.batch_size)

    def tables(self):
        end = self.end
        if end is None:
            return {}
        return {
            "conn": {
                "currentTransferEpoch": end.transfer_epoch,
                "currentTransferEpochEndOffset": end.transfer_epoch_end,
                "isAsyncLearner": end.link.is_async_learner,
                "isSlaveSendHandshake": end.owes_handshake,
                "isSyncFromLastFile": end.sync_from_last_file,
                "lastMasterMaxOffset": end.link.last_master_max_offset,
                "next": end.next_offset,
                "slaveAckOffset": end.link.ack_offset,
                "slaveId": end.link.slave_id,
                "slaveRequestOffset": end.slave_request_offset,
                "state": "TRANSFER" if end.is_transferring else "HANDSHAKE",
            }
        }

    def set_max_offset(self, max):  # noqa: A002 - as above
        self.max_offset = max

    def append_epoch(self, epoch, start):
        self.epochs.append(epoch, start)

    def receive(self, hex):  # noqa: A002 - as above
        return throwing(
            {NoEpochError: "NullPointerException", IndexError: "ArrayIndexOutOfBoundsException"},
            self.take_frames,
            bytes.fromhex(hex),
            quoting=IndexError,
        )

    def take_frames(self, raw):
        """Frames of 12 bytes and more: a handshake, which has 16, may be read before its last ones are there."""
        self.received += raw
        skipped = min(self.missing, len(self.received))
        self.received, self.missing = self.received[skipped:], self.missing - skipped
        reports = []
        while len(self.received) >= ACK.size:
            state = int.from_bytes(self.received[:4], "big")
            if state == HANDSHAKE:
                self.missing = max(0, SLAVE_HANDSHAKE.size - len(self.received))
                raw = self.received.ljust(SLAVE_HANDSHAKE.size, b"\0")
                _, from_last_file, learner, broker_id = SLAVE_HANDSHAKE.unpack_from(raw)
                self.end.on_handshake(SlaveHandshake(broker_id, bool(from_last_file), bool(learner)))
                self.received = self.received[SLAVE_HANDSHAKE.size :]
            elif state == TRANSFER:
                ack = SlaveAck(ACK.unpack_from(self.received)[1])
                report = self.end.on_ack(ack, max_offset=self.max_offset, now_ms=self.at_ms)
                reports += [] if report is None else [sorted(report)]
                self.received = self.received[ACK.size :]
            elif state >= STATES:
                raise IndexError(f"Index {state} out of bounds for length {STATES}")
            else:
                return {"ok": False}
        return {"ok": True, "reports": reports or None}

    def send_handshake(self):
        answer = self.end.handshake(self.max_offset)
        entries = b"".join(ENTRY.pack(*entry) for entry in answer.entries)
        header = MASTER_HANDSHAKE.pack(HANDSHAKE, len(entries), answer.log_end, answer.last_epoch)
        self.written_ms = self.at_ms
        return {"ok": True, **sent(header + entries)}

    def start_transfer(self):
        offset = self.end.slave_request_offset
        self.end.start_transfer(offset)
        return {"entry": shown(self.epochs.at(offset))}

    def transfer(self):
        raw = b""
        if self.at_ms - self.written_ms > self.heartbeat_interval_ms:
            raw += bytes_of(self.end.heartbeat(self.max_offset))
        batch = self.end.next_batch(max_offset=self.max_offset, confirm_offset=self.max_offset, now_ms=self.at_ms)
        if batch is not None:
            raw += bytes_of(batch)
        if not raw:
            return {}
        self.written_ms = self.at_ms
        return sent(raw)


def bytes_of(batch):
    fields = (batch.offset, batch.epoch, batch.epoch_start_offset, batch.confirm_offset)
    return BATCH.pack(TRANSFER, batch.size, *fields) + log(batch.offset, batch.size)


def sent(raw):
    return {"sentLen": len(raw), "sentHex": raw.hex()}
