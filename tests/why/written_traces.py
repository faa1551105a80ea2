"""Tiny traces with causes: every method writes one row and returns its seq."""

import json

from emulator.history.rows.lookup import TraceRows
from emulator.trace.batches import batch_of
from emulator.trace.schema import BELIEFS, CAUSES, FAULTS, LIFECYCLE, MESSAGES, OWNERSHIP, RPC, TABLES
from emulator.trace.segments import SegmentWriter
from emulator.why.answer import answer
from emulator.why.words import NodeNames

NS = 1_000_000_000
IPS = {"127.1.10.1": "c1", "127.1.10.2": "c2", "127.1.2.1": "broker-a", "127.1.2.2": "broker-b", "127.1.1.1": "ns-1"}


def client_id(node):
    return f"{next(ip for ip, name in IPS.items() if name == node)}@1401#7"


def address(node):
    return f"{next(ip for ip, name in IPS.items() if name == node)}:10911"


class TracedByHand:
    """Rows of a run, written to segments when somebody asks."""

    def __init__(self, run):
        self.run = run
        self.now_ns = 0
        self.seq = 0
        self.rows = {table.name: [] for table in TABLES}
        self._incarnation = {}
        """Mapping node -> its newest process; 1 unless a row of its life says more."""

    def at(self, seconds):
        self.now_ns = round(seconds * NS)
        return self

    def _row(self, table, *fields):
        self.seq += 1
        self.rows[table.name].append((self.seq, self.now_ns, *fields))
        return self.seq

    def _of(self, node):
        return self._incarnation.get(node, 1)

    def belief(self, node, kind, subject, value, cause=0, source=""):
        return self._row(BELIEFS, node, "", self._of(node), kind, subject, json.dumps(value), "", source, cause)

    def owned(self, node, event, queue="orders/broker-a/3", group="g", cause=0, offset=5):
        topic, broker_name, queue_id = queue.split("/")
        place = (group, topic, broker_name, int(queue_id))
        return self._row(OWNERSHIP, node, "consumer", self._of(node), event, *place, offset, cause)

    def message(
        self, node, event, queue="orders/broker-a/3", *, group="", offset=0, tags="", key="", cause=0, stored_ms=1_000
    ):
        topic, broker_name, queue_id = queue.split("/")
        role = "broker" if node.startswith("broker") else "consumer"
        place = (group, topic, broker_name, int(queue_id), offset)
        return self._row(MESSAGES, node, role, self._of(node), event, *place, "", stored_ms, tags, key, cause)

    def timer(self, node, name):
        return self._row(CAUSES, node, name)

    def fault(self, event, fault_id, kind, subject, parameters=None):
        cause = self._row(CAUSES, "", f"{event} {fault_id}")
        self._row(FAULTS, event, fault_id, kind, subject, json.dumps(parameters or {}), 0, cause)
        return cause

    def life(self, node, event, cause=0, incarnation=None, detail=""):
        incarnation = self._incarnation[node] = incarnation or self._of(node)
        return self._row(LIFECYCLE, node, "", incarnation, event, detail, cause)

    def frame(
        self,
        src,
        dst,
        code,
        *,
        kind="request",
        event="delivered",
        cause=0,
        status=-1,
        detail="",
        connection=1,
        opaque=1,
    ):
        """Whatever became of it 1 ms after it was sent."""
        return self._row(
            RPC, self.now_ns - NS // 1_000, event, connection, src, dst, kind, code, status, opaque, detail, cause
        )

    def call(self, src, dst, code, *, cause, opaque):
        """A request and its answer; returns the seq of the answer."""
        request = self.frame(src, dst, code, cause=cause, opaque=opaque)
        self.now_ns += NS // 1_000
        return self.frame(dst, src, code, kind="response", status=0, cause=request, opaque=opaque)

    def why(self, text):
        """All lines of the answer."""
        return answer([text], TraceRows(self.written()), NodeNames(IPS))

    def written(self):
        """The run directory, with all rows in segments."""
        writer = SegmentWriter(self.run)
        for table in TABLES:
            if self.rows[table.name]:
                writer.write(batch_of(table, self.rows[table.name]))
        writer.close_segments()
        return self.run
