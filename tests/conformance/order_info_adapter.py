"""Family order_info: `ConsumerOrderInfoManager`."""

import re

from conformance.executing import Adapter
from conformance.pretended_time import ORIGIN_MS
from nodes.broker.tables.pop.consumer_order_info import ConsumerOrderInfoManager

TOPIC, GROUP = "tA", "g"
WITHOUT_GROUP = "auto_clean_group_gone"
"""The case whose group does not exist, which it only says by its name."""
READ_QUEUES = 4
BIG_NUMBER = re.compile(r"\d{13}")
OFFSETS = re.compile(r'("o[ct]":)\{([^}]*)\}')


class OrderInfos(Adapter):
    def __init__(self):
        self.orders = ConsumerOrderInfoManager()

    @property
    def now_ms(self):
        return ORIGIN_MS + self.at_ms

    def ordered(self, op, out):
        # Java writes maps of offsets in the order of their hashes.
        return out | {"json": OFFSETS.sub(sorted_entries, out["json"])} if "json" in out else out

    def tables(self):
        rows = {
            f"{key}@{queue_id}": row(found)
            for key, queues in self.orders.table.items()
            for queue_id, found in queues.items()
        }
        return {"order": rows}

    def update(self, attempt_id, queue_id, pop_time, invisible_time, offsets, topic=TOPIC, group=GROUP):
        entries = self.orders.update(
            attempt_id,
            topic,
            group,
            queue_id,
            pop_time_ms=ORIGIN_MS + pop_time,
            invisible_time_ms=invisible_time,
            offsets=offsets,
            now_ms=self.now_ms,
        )
        *counted, minimum = entries
        return {"orderCountInfo": ";".join([*sorted(counted), minimum]), **self._free(topic, group, queue_id)}

    def check_block(self, attempt_id, queue_id, invisible_time, topic=TOPIC, group=GROUP):
        blocked = self.orders.check_block(
            attempt_id, topic, group, queue_id, invisible_time_ms=invisible_time, now_ms=self.now_ms
        )
        return {"result": blocked}

    def commit_and_next(self, queue_id, offset, pop_time, topic=TOPIC, group=GROUP):
        result = self.orders.commit_and_next(topic, group, queue_id, offset, ORIGIN_MS + pop_time)
        return {"result": result, **self._free(topic, group, queue_id)}

    def update_next_visible_time(self, queue_id, offset, pop_time, next_visible_time, topic=TOPIC, group=GROUP):
        self.orders.update_next_visible_time(
            topic, group, queue_id, offset, ORIGIN_MS + pop_time, ORIGIN_MS + next_visible_time
        )
        return self._free(topic, group, queue_id)

    def clear_block(self, queue_id, topic=TOPIC, group=GROUP):
        self.orders.clear_block(topic, group, queue_id)

    def auto_clean(self, topic_exists):
        group_exists = self.case != WITHOUT_GROUP
        self.orders.auto_clean(lambda _: READ_QUEUES if topic_exists else None, lambda _: group_exists, self.now_ms)

    def encode(self):
        return {"json": BIG_NUMBER.sub(lambda found: f"now+{int(found[0]) - ORIGIN_MS}", self.orders.encode())}

    def decode_encode(self):
        before = self.orders.encode()
        self.orders.decode(before)
        return {"same": self.orders.encode() == before}

    def _free(self, topic, group, queue_id):
        found = self.orders.info(topic, group, queue_id)
        free = found and found.lock_free_ms(self.now_ms)
        return {"lockFreeAt": None if free is None else free - ORIGIN_MS}


def row(found, origin_ms=ORIGIN_MS):
    first, *others = found.offsets
    visible, counts = found.next_visible_ms, found.consumed_counts
    return {
        "popTime": found.pop_time_ms - origin_ms,
        "i": found.invisible_time_ms,
        "o": [first, *(offset - first for offset in others)],
        "ot": None if visible is None else {str(offset): time - origin_ms for offset, time in visible.items()},
        "oc": None if counts is None else {str(offset): count for offset, count in counts.items()},
        "l": found.last_consume_ms - origin_ms,
        "cm": found.commit_offset_bit,
        "a": found.attempt_id,
    }


def sorted_entries(found):
    return f"{found[1]}{{{','.join(sorted(found[2].split(',')))}}}"
