"""Family queue_locks: `RebalanceLockManager`."""

from conformance.executing import Adapter
from conformance.queue_texts import queue, queues, text, texts
from nodes.broker.tables.clients.queue_locks import LOCK_MAX_LIVE_TIME_MS, RebalanceLockManager


class QueueLocks(Adapter):
    def __init__(self, lock_max_live_time_ms=LOCK_MAX_LIVE_TIME_MS):
        self.locks = RebalanceLockManager(lock_max_live_time_ms=lock_max_live_time_ms)

    def tables(self):
        return {"locks": lock_rows(self.locks)}

    def try_lock(self, group, client, mq):
        return {"result": self.locks.try_lock(group, queue(mq), client, self.at_ms)}

    def try_lock_batch(self, group, client, mqs):
        return {"locked": texts(self.locks.try_lock_batch(group, queues(mqs), client, self.at_ms))}

    def unlock_batch(self, group, client, mqs):
        self.locks.unlock_batch(group, queues(mqs), client)

    def is_lock_all_expired(self, group):
        return {"result": self.locks.is_lock_all_expired(group, self.at_ms)}


def lock_rows(locks):
    return {
        group: {text(mq): [lock.client_id, lock.last_update_ms] for mq, lock in held.items()}
        for group, held in locks.locks.items()
    }
