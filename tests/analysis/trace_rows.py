"""Write traces by hand: a clock, a seq, and one method per kind of row."""

import json
from hashlib import blake2b
from pathlib import Path

from emulator.analysis.inputs.facts import RunFacts
from emulator.analysis.judge import judge_rows
from emulator.history.rows.row_classes import ROWS, FrameCount
from emulator.trace.batches import batch_of
from emulator.trace.run_directory import write_manifest
from emulator.trace.schema import (
    ADMIN,
    BELIEFS,
    COUNTS,
    FAULTS,
    LIFECYCLE,
    MESSAGES,
    OWNERSHIP,
    PASSES,
    SCHEMA_VERSION,
    TABLES,
)
from emulator.trace.segments import SegmentWriter

SECOND = 1_000_000_000
SCENARIO = {"scenario": {"name": "hand-made", "run_for_ms": 600_000}, "broker": [{"name": "broker-a"}]}
GROUP = "g"
TOPIC = "t"


class HandMadeTrace:
    """Rows of one run; `at` moves the clock, the other methods append."""

    def __init__(self, run="r"):
        self.run = run
        self.rows = {table.name: [] for table in TABLES}
        self.seq = 0
        self.t_ns = 0
        self.roles = {}
        self.incarnations = {}

    def at(self, seconds):
        self.t_ns = round(seconds * SECOND)
        return self

    def _next(self):
        self.seq += 1
        return self.seq, self.t_ns

    def _node(self, node):
        return node, self.roles.get(node, "consumer"), self.incarnations.get(node, 1)

    def believe(self, node, value, subject=f"{GROUP}/{TOPIC}", kind="view", source=""):
        text = json.dumps(value, separators=(",", ":"))
        digest = "" if value is None else blake2b(text.encode(), digest_size=8).hexdigest()
        row = (*self._next(), *self._node(node), kind, subject, text, digest, source, 0)
        self.rows[BELIEFS.name].append(row)
        return self

    def own(self, node, event, queue_id=0, topic=TOPIC, broker_name="broker-a", group=GROUP, offset=-1):
        row = (*self._next(), *self._node(node), event, group, topic, broker_name, queue_id, offset, 0)
        self.rows[OWNERSHIP.name].append(row)
        return self

    def passed(self, node, event="balanced", topic=TOPIC, group=GROUP, mode="client", requests=0, size=0):
        row = (*self._next(), *self._node(node), event, group, topic, mode, self.t_ns, 0, 0, 0, "", requests, size, 0)
        self.rows[PASSES.name].append(row)
        return self

    def message(
        self,
        node,
        event,
        offset,
        queue_id=0,
        topic=TOPIC,
        group=GROUP,
        client_id="",
        stored_ms=0,
        tags="",
        key="",
        broker_name="broker-a",
    ):
        group = "" if event == "stored" else group
        row = (
            *self._next(),
            *self._node(node),
            event,
            group,
            topic,
            broker_name,
            queue_id,
            offset,
            client_id or node,
            stored_ms,
            tags,
            key,
            0,
        )
        self.rows[MESSAGES.name].append(row)
        return self

    def store(self, *offsets, queue_id=0, topic=TOPIC):
        for offset in offsets:
            self.message("broker-a", "stored", offset, queue_id, topic)
        return self

    def consume(self, node, *offsets, queue_id=0):
        for offset in offsets:
            self.message(node, "consumed", offset, queue_id)
        return self

    def commit(self, node, offset, queue_id=0):
        return self.message("broker-a", "committed", offset, queue_id, client_id=node)

    def life(self, node, event, detail="", role=None):
        if role:
            self.roles[node] = role
        if event == "started":
            lived = any(row[2] == node for row in self.rows[LIFECYCLE.name])
            self.incarnations[node] = self.incarnations.get(node, 1) + (1 if lived else 0)
        self.rows[LIFECYCLE.name].append((*self._next(), *self._node(node), event, detail, 0))
        return self

    def subscribe(self, node, expression="*", model="CLUSTERING", group=GROUP, topic=TOPIC):
        value = {"expression": expression, "type": "TAG", "model": model}
        return self.believe(node, value, f"{group}/{topic}", "subscription")

    def ask(self, client, server, code, status=0, times=1, kind="response", event="delivered"):
        """So many exchanges in this second."""
        pair = (server, client) if kind == "response" else (client, server)
        number = len(self.rows[COUNTS.name]) + 1
        self.rows[COUNTS.name].append((number, self.t_ns, 0, "rpc", event, *pair, kind, code, status, times))
        return self

    def fault(self, event, fault_id, kind, subject, hits=0, **parameters):
        row = (*self._next(), event, fault_id, kind, subject, json.dumps(parameters, separators=(",", ":")), hits, 0)
        self.rows[FAULTS.name].append(row)
        return self

    def admin(
        self, node, request, topic="", group="", broker_name="broker-a", client="127.1.7.1:1", began_s=None, **detail
    ):
        """A node has carried out the request of an administrator; it arrived at `began_s`, or now."""
        began_ns = self.t_ns if began_s is None else round(began_s * SECOND)
        named = (topic, group, broker_name, client, began_ns, json.dumps(detail, separators=(",", ":")), 0)
        self.rows[ADMIN.name].append((*self._next(), *self._node(node), request, *named))
        return self


class RowsOf:
    """The rows of a hand-made trace as oracles read them."""

    def __init__(self, trace):
        self._trace = trace

    def rows(self, table):
        row_class = ROWS[table]
        places = [table.index(column) for column in row_class._fields]
        return [row_class(*(row[place] for place in places)) for row in self._trace.rows[table.name]]

    def frames(self):
        return [FrameCount(row[1] // SECOND, *row[4:]) for row in self._trace.rows[COUNTS.name]]


def found_in(trace, end_s, **facts):
    """What the oracles find in a hand-made trace that ends at `end_s`."""
    return judge_rows(RowsOf(trace), RunFacts(round(end_s * SECOND), **facts))


def write_run(trace, directory, end_s, segment_rows=1000, **manifest):
    """Write a hand-made trace as a run directory the emulator could have left."""
    directory = Path(directory)
    head = _head(directory)
    writer = SegmentWriter(directory, head)
    for table in TABLES:
        rows = trace.rows[table.name]
        for start in range(0, len(rows), segment_rows):
            writer.write(batch_of(table, rows[start : start + segment_rows]))
            writer.close_segments()
    content = {
        **head,
        "digest": "0" * 16,
        "rows": {name: len(rows) for name, rows in trace.rows.items()},
        "virtual_s": float(end_s),
        "wall_s": 1.0,
    }
    write_manifest(directory, content | manifest)
    writer.remove_journal()
    return directory


def killed_run(trace, directory, closed, **head):
    """Write a trace as an emulator that was killed would have left it.

    Args:
        closed: so many rows of each table are in a closed segment; the others wait in the journal.
        head: of the index, instead of what it would say.
    """
    writer = SegmentWriter(directory, _head(directory) | head)
    for table in TABLES:
        if rows := trace.rows[table.name][:closed]:
            writer.write(batch_of(table, rows))
    writer.close_segments()
    for table in TABLES:
        if rows := trace.rows[table.name][closed:]:
            writer.write(batch_of(table, rows))
    writer.save()
    return directory


def _head(directory):
    return {
        "run_id": directory.name,
        "schema_version": SCHEMA_VERSION,
        "seed": 1,
        "mode": "sim",
        "scenario": SCENARIO,
    }
