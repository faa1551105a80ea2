"""Families pop_inflight and pop_locks: `PopInflightMessageCounter`, and the two kinds of locks of pops."""

from conformance.executing import Adapter
from nodes.broker.tables.pop.in_flight import PopInflightMessageCounter
from nodes.broker.tables.pop.queue_locks import PopQueueLocks
from nodes.protocol.names import build_polling_key, parse_normal_topic


class PopInFlight(Adapter):
    def __init__(self, should_start_time=0):
        self.counter = PopInflightMessageCounter(should_start_ms=should_start_time)

    def tables(self):
        counts = self.counter.counts
        return {
            "inflight": {f"{key}@{queue}": count for key, queues in counts.items() for queue, count in queues.items()},
            "keys": {key: len(queues) for key, queues in counts.items()},
        }

    def get(self, topic, group, queue_id):
        return {"result": self.counter.get(topic, group, queue_id)}

    def increment(self, topic, group, queue_id, n):
        self.counter.increment(topic, group, queue_id, n)

    def decrement(self, topic, group, queue_id, pop_time, n):
        self.counter.decrement(topic, group, queue_id, pop_time, n)

    def decrement_check_point(self, topic, group, queue_id, pop_time):
        self.counter.decrement(topic, group, queue_id, pop_time)

    def clear_queue(self, topic, group, queue_id):
        self.counter.clear_queue(topic, group, queue_id)

    def clear_group(self, group):
        self.counter.clear_group(group)

    def clear_topic(self, topic):
        self.counter.clear_topic(topic)


class PopLocks(Adapter):
    """The locks per group and topic, of the variant with a database, keep the same rules, and expire after a time."""

    def __init__(self, timeout_ms=None):
        self.locks = PopQueueLocks()
        self.timeout_ms = timeout_ms

    def tables(self):
        return {"locks": {key: [lock.held, lock.lock_time_ms] for key, lock in self.locks.locks.items()}}

    def try_lock(self, topic, group, queue_id=None):
        return {"result": self.locks.try_lock(lock_key(topic, group, queue_id), self.at_ms)}

    def un_lock(self, topic, group, queue_id):
        self.locks.unlock(lock_key(topic, group, queue_id))

    def unlock(self, topic, group):
        self.locks.unlock(lock_key(topic, group, None))

    def clean_unused_lock(self, expire_ms):
        return {"result": self.locks.clean_unused_lock(self.at_ms, expire_ms)}

    def remove_timeout(self):
        self.locks.clean_unused_lock(self.at_ms, self.timeout_ms)

    def is_lock_timeout(self, group, topic):
        key = lock_key(parse_normal_topic(topic, group), group, None)
        return {"result": self.locks.is_timeout(key, self.at_ms, self.timeout_ms)}


def lock_key(topic, group, queue_id):
    return f"{group}@{topic}" if queue_id is None else build_polling_key(topic, group, queue_id)
