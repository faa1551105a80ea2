"""Family pop_kv: pops whose records stand in a sorted map."""

import attrs
import trio

from conformance.pop_flow_adapter import BROKER, PopFlow, flat
from conformance.revive_log import ORIGIN_MS
from nodes.broker.pop.queue_pop import Pop
from nodes.broker.tables.pop.check_point import PopCheckPoint
from nodes.broker.tables.pop.consumer_records import PopConsumerRecord, encode_pop_records
from nodes.broker.tables.pop.queue_locks import group_lock_key
from nodes.protocol.extra_info import RetryMark, join_infos
from nodes.protocol.headers_pop import PopMessageRequestHeader

TOPIC, GROUP, QUEUES = "tA", "g", 2
BACKOFF = "revive_backoff_attempt_"
"""Cases that begin with a record that was tried so often already, and whose log refuses the copy."""


class PopKv(PopFlow):
    def __init__(self, **options):
        super().__init__(pop_consumer_kv_service_init=True, pop_consumer_kv_service_enable=True, **options)
        self.service = self.pops._service
        self.store_.min_offset_of_unknown = -1
        self.create_topic(TOPIC, QUEUES)
        self.create_group(GROUP)

    def tables(self):
        reported = super().tables()
        return {
            "offsets": reported["offsets"],
            "pullOffsets": flat(self.clients.offsets.pull_offsets),
            "records": {
                f"{found.visibility_timeout_ms - ORIGIN_MS}|{place(found)}": row(found)
                for found in self.pop_tables.records.records
            },
            "cache": {
                place(found): row(found) for queue in self.pop_tables.cache.queues.values() for found in queue.values()
            },
            "log": {key: found for key, found in reported["log"].items() if key.startswith("%RETRY%")},
        }

    def send(self, topic, queue_id, n):
        super().send(topic, queue_id, n, None)
        if self.case.startswith(BACKOFF):
            before = PopConsumerRecord(ORIGIN_MS, GROUP, topic, queue_id, RetryMark.NORMAL, 1_000, 0)
            attempts = int(self.case.removeprefix(BACKOFF))
            self.pop_tables.records.write_records([attrs.evolve(before, attempt_times=attempts)])
            self.put_status = "OS_PAGE_CACHE_BUSY"

    def pop(self, queue_id, max, invisible_time, fifo, attempt_id):  # noqa: A002
        times = (invisible_time, 0, 0)
        header = PopMessageRequestHeader(GROUP, TOPIC, queue_id, max, *times, 0, None, None, fifo, attempt_id)
        pop = Pop(header, "<addr>", self.host.now_ms(), 0, None)
        trio.run(self.pops._pops._from_records.take, pop, self.broker.topics.select_topic_config(TOPIC))
        return {
            "restCount": pop.rest_num,
            "startOffsetInfo": join_infos(pop.start_offset_infos),
            "msgOffsetInfo": join_infos(pop.msg_offset_infos),
            "orderCountInfo": join_infos(pop.order_count_infos),
            "messages": [[found.topic, found.queue_id, found.queue_offset] for found in pop.messages],
        }

    def lock(self, group, topic):
        """Another pop of the group reads the topic."""
        assert self.service.locks.try_lock(group_lock_key(group, topic))

    def record(self, pop_time, group, topic, queue_id, retry_flag, invisible_time, offset, attempt_times, attempt_id):
        handle = (pop_time, group, topic, queue_id, RetryMark(str(retry_flag)), invisible_time)
        record = PopConsumerRecord(*handle, offset, attempt_times, attempt_id)
        return {
            "keyHex": record.key.hex(),
            "json": encode_pop_records((record,)).decode().removeprefix("[").removesuffix("]"),
            "visibilityTimeout": record.visibility_timeout_ms,
        }

    def ack(self, record):
        trio.run(self.service.ack, *check_point(record))

    def change_invisible(self, record, pop_time, invisible_time):
        old, offset = check_point(record)
        new = attrs.evolve(old, pop_time_ms=ORIGIN_MS + pop_time, invisible_time_ms=invisible_time)
        trio.run(self.service.change_invisible_time, old, new, offset)

    def revive(self):
        count = trio.run(self.service.revive)
        return {"count": count, "currentTime": self.service.current_time_ms - ORIGIN_MS, **self._taken()}

    def cache_tick(self):
        return {"remain": trio.run(self.service.cleanup_cache), **self._taken()}


def check_point(record):
    popped, invisible, topic, queue_id, offset, _attempts, _flag = record
    return PopCheckPoint(topic, GROUP, queue_id, offset, ORIGIN_MS + popped, invisible, 1, BROKER), offset


def place(found):
    return f"{found.group}@{found.topic}@{found.queue_id}@{found.offset}"


def row(found):
    times = (found.pop_time_ms - ORIGIN_MS, found.invisible_time_ms)
    return [*times, found.topic, found.queue_id, found.offset, found.attempt_times, int(found.retry_flag)]
