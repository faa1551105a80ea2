"""Family pop_revive: passes of `PopReviveService` over one queue of the revive topic."""

from conformance.executing import Adapter
from conformance.revive_log import ORIGIN_MS, REVIVE_TOPIC, ReviveLog, body_of, relative_key
from nodes.broker.tables.pop.check_point import AckMsg, BatchAckMsg, PopCheckPoint
from nodes.broker.tables.pop.revive import (
    IDLE_SLEEP_MS,
    REVIVE_BATCH,
    InflightRevives,
    ReviveOptions,
    ReviveRecord,
    ReviveScan,
    re_put_ck,
    revived_message,
    unacked_offsets,
)
from nodes.protocol.model import RETRY_TOPIC_PREFIX, Message
from nodes.protocol.properties import FIRST_POP_TIME

BROKER = "bk-a"
REVIVE_GROUP = "CID_RMQ_SYS_REVIVE_GROUP"


class PopRevive(Adapter):
    def __init__(
        self,
        enable_skip_long_awaiting_ack=False,
        revive_ack_wait_ms=180_000,
        enable_retry_topic_v2=False,
        skip_when_ck_re_put_reach_max_times=False,
    ):
        self.options = ReviveOptions(BROKER, 10_000, revive_ack_wait_ms, enable_skip_long_awaiting_ack)
        self.v2 = enable_retry_topic_v2
        self.skip_at_max = skip_when_ck_re_put_reach_max_times
        self.log = ReviveLog()
        self.revives = InflightRevives()
        self.queues = {}
        self.offsets = {}
        self.min_offsets = {}
        self.routes = {}
        self.groups = []
        self.revive_offsets = {}
        self.timer_behind = False
        self.slept_ms = 0

    @property
    def now_ms(self):
        return ORIGIN_MS + self.at_ms + self.slept_ms

    def tables(self):
        return {**self.log.tables(), "offsets": dict(self.offsets)}

    def create_topic(self, topic, queues):
        self.queues |= {(topic, queue_id): {} for queue_id in range(queues)}

    def create_group(self, group):
        self.groups.append(group)

    def send(self, topic, queue_id, n, tag):
        queue = self.queues[topic, queue_id]
        for offset in range(len(queue), len(queue) + n):
            queue[offset] = tag
            if topic.startswith(RETRY_TOPIC_PREFIX):
                place = f"{topic}#{queue_id}#{offset}"
                row = {"reconsumeTimes": 0, "tag": tag, "firstPopTime": None, "origin": place}
                self.log.append(topic, queue_id, row)
        return {"maxOffset": len(queue)}

    def remove_message(self, topic, queue_id, offset):
        del self.queues[topic, queue_id][offset]

    def set_min_offset(self, topic, queue_id, min):  # noqa: A002
        gone = [place for place in self.log.log if place[:2] == (topic, queue_id) and place[2] < min]
        for place in gone:
            del self.log.log[place]
        self.min_offsets[topic, queue_id] = min

    def set_offset(self, group, topic, queue_id, offset):
        self.offsets[f"{topic}@{group}@{queue_id}"] = offset

    def set_route(self, topic, rows):
        self.routes[topic] = {row["brokerName"]: row["addrs"]["0"] for row in rows}

    def store(self, dequeue_behind_s):
        self.timer_behind = dequeue_behind_s > 0

    def deliver_due(self):
        return {"delivered": self.log.deliver_due(self.now_ms)}

    def append_ck(self, revive_queue_id, diffs, re_put_times, deliver_at, start_offset, num, invisible_time, **handle):
        ck = PopCheckPoint(
            handle["topic"],
            handle["group"],
            handle["queue_id"],
            start_offset,
            ORIGIN_MS + handle["pop_time"],
            invisible_time,
            num,
            handle["broker_name"],
            None if diffs is None else tuple(diffs),
            re_put_times=re_put_times,
        )
        self._append(revive_queue_id, "ck", ck, deliver_at)

    def append_ack(
        self, revive_queue_id, ack_offset, deliver_at, start_offset, group, topic, queue_id, pop_time, broker_name
    ):
        ack = AckMsg(ack_offset, start_offset, group, topic, queue_id, ORIGIN_MS + pop_time, broker_name)
        self._append(revive_queue_id, "ack", ack, deliver_at)

    def append_batch_ack(
        self, revive_queue_id, ack_offsets, deliver_at, start_offset, group, topic, queue_id, pop_time, broker_name
    ):
        handle = (start_offset, group, topic, queue_id, ORIGIN_MS + pop_time, broker_name)
        self._append(revive_queue_id, "bAck", BatchAckMsg(0, *handle, tuple(ack_offsets)), deliver_at)

    def _append(self, queue_id, tag, record, deliver_at):
        self.log.put(queue_id, tag, ORIGIN_MS + deliver_at, None, record.to_json(), ORIGIN_MS + deliver_at)

    def revive_pass(self, revive_queue_id):
        self.slept_ms = 0
        committed = f"{REVIVE_TOPIC}@{REVIVE_GROUP}@{revive_queue_id}"
        before = self.revive_offsets.get(revive_queue_id, -1)
        scan = ReviveScan(max(before, self.offsets.get(committed, -1)), self.now_ms, self.options)
        self._scan(scan, revive_queue_id, committed)
        new_offset = scan.old_offset
        for ck, revive in scan.due(lambda topic: (topic, 0) in self.queues, self.groups.__contains__):
            if revive:
                self._revive(ck, revive_queue_id, committed)
            new_offset = ck.revive_offset
        if new_offset > scan.old_offset:
            self.offsets[committed] = new_offset
        self.revive_offsets[revive_queue_id] = new_offset
        slept, self.slept_ms = self.slept_ms, 0
        return {
            "scanSleptMs": slept,
            "oldOffset": scan.old_offset,
            "endTime": scan.end_time_ms and scan.end_time_ms - ORIGIN_MS,
            "checkPoints": {
                relative_key(key, ck): [ck.revive_offset, ck.num, ck.bit_map]
                for key, ck in sorted(scan.check_points.items())
            },
            "newOffset": new_offset,
            "reviveOffset": new_offset,
            "leftInflight": len(self.revives),
            **self.log.take_calls(),
        }

    def _scan(self, scan, queue_id, committed):
        while True:
            records = self._records(scan.offset, queue_id, committed)
            if records:
                if not scan.read(records, self.now_ms):
                    return
                continue
            if scan.nothing_read(self.now_ms, timer_behind=self.timer_behind):
                return
            scan.slept(1)
            self.slept_ms += IDLE_SLEEP_MS
            self.log.deliver_due(self.now_ms)
            if scan.is_idle_too_long:
                return

    def _records(self, offset, queue_id, committed):
        """What a read of the log gives; an offset outside it is corrected for the next pass."""
        first, end = (
            self.min_offsets.get((REVIVE_TOPIC, queue_id), 0),
            self.log.next_offsets.get((REVIVE_TOPIC, queue_id), 0),
        )
        if end and not first <= offset <= end:
            self.offsets[committed] = (first if offset < first else end) - 1
            return []
        places = [(REVIVE_TOPIC, queue_id, at) for at in range(offset, min(offset + REVIVE_BATCH, end))]
        rows = [(place[2], self.log.log[place]) for place in places if place in self.log.log]
        return [ReviveRecord(row["tag"], body_of(row), at, row["deliverAt"] + ORIGIN_MS) for at, row in rows]

    def _revive(self, ck, queue_id, committed):
        self.revives.begin(ck, self.now_ms)
        failed = [offset for offset in unacked_offsets(ck) if not self._revive_message(ck, offset)]
        for offset in failed:
            again = re_put_ck(ck, offset, self.now_ms, skip_at_max=self.skip_at_max)
            if again is not None:
                self.log.put_ck(again, queue_id, self.now_ms)
        for offset in self.revives.complete(ck):
            self.offsets[committed] = offset

    def _revive_message(self, ck, offset):
        """Whether nothing is left to do for a message."""
        if ck.broker_name == BROKER:
            # A read of one message from an offset on finds the next one if there is a hole.
            queue = self.queues.get((ck.topic, ck.queue_id), {})
            beyond = offset < self.min_offsets.get((ck.topic, ck.queue_id), 0)
            found = None if beyond else min((at for at in queue if at >= offset), default=None)
            if found is None:
                return True
            origin, tag = f"{ck.topic}#{ck.queue_id}#{found}", queue[found]
        elif ck.broker_name in self.routes.get(ck.topic, {}):
            address = self.routes[ck.topic][ck.broker_name]
            self.log.calls.append(["pullAsync", address, ck.broker_name, ck.topic, ck.queue_id, offset])
            origin, tag = None, None
        else:
            self.log.calls.append(["fetchRoute", ck.topic])
            return False
        blank = Message(ck.topic, ck.queue_id, offset, 0, 0, 0, b"", {})
        revived = revived_message(ck, blank, v2=self.v2)
        row = {
            "reconsumeTimes": revived.reconsume_times,
            "tag": tag,
            "firstPopTime": int(revived.properties[FIRST_POP_TIME]) - ORIGIN_MS,
            "origin": origin,
        }
        if (revived.topic, revived.queue_id) not in self.queues:
            self.queues[revived.topic, revived.queue_id] = {}
            self.offsets.setdefault(f"{revived.topic}@{ck.cid}@{revived.queue_id}", 0)
        self.log.append(revived.topic, revived.queue_id, row)
        return True
