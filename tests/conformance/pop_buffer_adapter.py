"""Family pop_buffer: `PopBufferMergeService`."""

from collections import Counter

from conformance.executing import Adapter
from conformance.revive_log import ORIGIN_MS, ReviveLog, relative_key
from nodes.broker.tables.pop.buffer import STORING, PopBufferMerge, PopBufferOptions
from nodes.broker.tables.pop.check_point import AckMsg, BatchAckMsg, PopCheckPoint
from nodes.broker.tables.pop.in_flight import PopInflightMessageCounter
from nodes.protocol.extra_info import msg_offset_info, parse_extra_info, start_offset_info

BROKER = "bk-a"
TOPIC, GROUP = "tA", "g"


class PopBuffer(Adapter):
    def __init__(
        self,
        enable_pop_buffer_merge=False,
        enable_pop_batch_ack=False,
        pop_ck_stay_buffer_time=10_000,
        pop_ck_stay_buffer_time_out=3000,
        pop_ck_max_buffer_size=200_000,
        pop_ck_offset_max_queue_size=20_000,
    ):
        self.pops = PopBufferMerge(
            PopBufferOptions(
                enable_pop_buffer_merge,
                enable_pop_batch_ack,
                pop_ck_stay_buffer_time,
                pop_ck_stay_buffer_time_out,
                pop_ck_max_buffer_size,
                pop_ck_offset_max_queue_size,
            )
        )
        self.log = ReviveLog()
        self.in_flight = PopInflightMessageCounter()
        self.offsets = {}
        self.max_offsets = Counter()
        self.requested = 0
        self.topics, self.groups = {}, {}

    @property
    def now_ms(self):
        return ORIGIN_MS + self.at_ms

    def tables(self):
        counts = self.in_flight.counts
        return {
            **self.log.tables(),
            "offsets": dict(self.offsets),
            "inflight": {f"{key}@{queue}": count for key, queues in counts.items() for queue, count in queues.items()},
            "buffer": {relative_key(key, found.ck): wrapper_row(found) for key, found in self.pops.buffer.items()},
            "offsetQueues": {
                key: [found.next_begin_offset for found in queue] for key, queue in self.pops.offset_queues.items()
            },
        }

    def create_topic(self, topic, queues):
        self.topics[topic] = queues

    def create_group(self, group):
        self.groups[group] = True

    def delete_topic(self, topic):
        self.topics.pop(topic, None)

    def delete_group(self, group):
        self.groups.pop(group, None)

    def buffer_garbage(self):
        self.pops.scan_garbage(self.topics.__contains__, self.groups.__contains__, self.now_ms)

    def send(self, topic, queue_id, n, tag):
        self.max_offsets[topic, queue_id] += n
        return {"maxOffset": self.max_offsets[topic, queue_id]}

    def store(self, put_status):
        self.log.put_status = put_status

    def add_ck(self, **requested):
        ck, queue_id, begin = check_point(**requested)
        return {"result": self.pops.add_ck(ck, queue_id, begin, self.now_ms) is not None}

    def add_ck_just_offset(self, **requested):
        ck, queue_id, begin = check_point(**requested)
        found = self.pops.add_ck_just_offset(ck, queue_id, begin)
        if found is not None:
            self._put_ck(found)
        return {"result": found is not None, **self.log.take_calls()}

    def add_ck_mock(self, start_offset, next_begin_offset):
        ck = PopCheckPoint(TOPIC, GROUP, 0, start_offset, self.now_ms, 60_000, 0, BROKER)
        self.pops.add_ck_mock(ck, 0, next_begin_offset)

    def add_ak(self, start_offset, pop_time, ack_offset, ack_offsets):
        handle = (start_offset, GROUP, TOPIC, 0, ORIGIN_MS + pop_time, BROKER)
        single = ack_offsets is None
        ack = AckMsg(ack_offset, *handle) if single else BatchAckMsg(0, *handle, tuple(ack_offsets))
        return {"result": self.pops.add_ak(ack, self.now_ms)}

    def get_latest_offset(self, key):
        return {"result": self.pops.get_latest_offset(key)}

    def clear_offset_queue(self, key):
        self.pops.clear_offset_queue(key)

    def buffer_scan(self):
        for found in self.pops.scan():
            self._scan(found)
        self.pops.scan_commit_offset(self._commit)
        self.pops.scanned(0)
        return {"serving": self.pops.serving, "counter": self.pops.counter, **self.log.take_calls()}

    def _scan(self, found):
        leaves = self.pops.leaves_memory(found, self.now_ms)
        if found.revive_queue_offset < 0 and (found.just_offset or leaves):
            self._put_ck(found)
        if not leaves or not found.ck_stored:
            return
        for places, ack in self.pops.acks_of(found):
            batch = isinstance(ack, BatchAckMsg)
            key = relative_key(ack.batch_unique_id if batch else ack.unique_id, ack)
            tag = "bAck" if batch else "ack"
            put = self.log.put(found.revive_queue_id, tag, found.ck.revive_time_ms, key, ack.to_json(), self.now_ms)
            if put is not None:
                found.acks_stored(places)
        if found.is_finished:
            self.pops.drop(found)

    def _put_ck(self, found):
        found.storing()
        found.stored(self.log.put_ck(found.ck, found.revive_queue_id, self.now_ms))

    def _commit(self, found):
        self.offsets[found.lock_key] = found.next_begin_offset
        return True

    def pop(self, group, topic, queue_id, invisible_time, **_of_no_matter):
        """A pop of one message after the other, as the two cases have it that begin with pops."""
        lock_key = f"{topic}@{group}@{queue_id}"
        offset = max(self.offsets.setdefault(lock_key, 0), self.pops.get_latest_offset(lock_key))
        revive_qid, self.requested = self.requested, self.requested + 1
        ck = PopCheckPoint(topic, group, queue_id, offset, self.now_ms, invisible_time, 1, BROKER, (0,))
        if self.pops.add_ck(ck, revive_qid, offset + 1, self.now_ms) is None:
            self._put_ck(self.pops.add_ck_just_offset(ck, revive_qid, offset + 1))
        self.in_flight.increment(topic, group, queue_id, 1)
        return {
            "code": 0,
            "popTime": self.at_ms,
            "invisibleTime": invisible_time,
            "reviveQid": revive_qid,
            "restNum": self.max_offsets[topic, queue_id] - offset - 1,
            "startOffsetInfo": start_offset_info(topic, queue_id, offset),
            "msgOffsetInfo": msg_offset_info(topic, queue_id, [offset]),
            "messages": [[topic, queue_id, offset, 0, None]],
        }

    def ack(self, group, topic, queue_id, offset, extra_info):
        handle = parse_extra_info(extra_info.replace("now+", ""))
        pop_time_ms = ORIGIN_MS + handle.pop_time_ms
        ack = AckMsg(offset, handle.ck_queue_offset, group, topic, queue_id, pop_time_ms, handle.broker_name)
        assert self.pops.add_ak(ack, self.now_ms)
        self.in_flight.decrement(topic, group, queue_id, pop_time_ms)
        return {"code": 0}


def check_point(
    start_offset, pop_time, invisible_time, diffs, revive_queue_id, next_begin_offset, topic=TOPIC, group=GROUP
):
    popped_ms = ORIGIN_MS + pop_time
    ck = PopCheckPoint(topic, group, 0, start_offset, popped_ms, invisible_time, len(diffs), BROKER, tuple(diffs))
    return ck, revive_queue_id, next_begin_offset


def wrapper_row(found):
    return {
        "reviveQueueId": found.revive_queue_id,
        "reviveQueueOffset": "MAX" if found.revive_queue_offset == STORING else found.revive_queue_offset,
        "bits": found.bits,
        "toStoreBits": found.to_store_bits,
        "nextBeginOffset": found.next_begin_offset,
        "justOffset": found.just_offset,
        "ckStored": found.ck_stored,
    }
