"""Families process_queue and pq_clean_expired: `ProcessQueue`."""

from nodes.client.tables.process_queue import EXPIRED_AT_ONCE_MAX, NothingTakenError, ProcessQueue
from nodes.protocol.model import Message

NOW_MS = 1_000_000_000
SEND_BACK_DELAY_LEVEL = 3


def process_queue(requested):
    queue = ProcessQueue(now_ms=NOW_MS)
    columns = (
        *("ret", "msgCount", "msgSize", "queueOffsetMax", "consuming", "maxSpan"),
        *("treeSize", "treeFirst", "treeLast", "takenKeys"),
    )
    results = [[STEPS[op](queue, *args), *_counters(queue)] for op, *args in requested["steps"]]
    return {"columns": list(columns), "results": results, "final": _final(queue)}


def pq_clean_expired(requested):
    rows = requested["messages_offset_consumeStartAgeMs_sendBackFails"]
    queue = ProcessQueue(now_ms=NOW_MS)
    queue.put_messages([_message(offset) for offset, _, _ in rows])
    for offset, age_ms, _ in rows:
        if age_ms is not None:
            queue.start_consuming([_message(offset)], now_ms=NOW_MS - age_ms)
    fails = {offset: is_failing for offset, _, is_failing in rows}
    sent = []
    heads = queue.expired_heads(lambda: NOW_MS, requested["consumeTimeoutMinutes"] * 60_000)
    for head in () if requested["orderly"] else heads:
        sent.append([head.queue_offset, SEND_BACK_DELAY_LEVEL])
        if not fails[head.queue_offset]:
            queue.remove_messages([head], now_ms=NOW_MS)
    assert len(sent) <= EXPIRED_AT_ONCE_MAX
    return {
        "sendMessageBack_offset_delayLevel": sent,
        "remaining": list(queue.offsets),
        "msgCount": queue.msg_count,
    }


def _message(offset, size=0, end=None):
    properties = {} if end is None else {"MAX_OFFSET": str(end)}
    return Message("t", 0, offset, 0, 0, 0, b"x" * (size or 0), properties)


def _messages(rows):
    return [_message(*row) for row in rows]


def _commit(queue):
    try:
        return queue.commit()
    except NothingTakenError:
        return {"error": "NoSuchElementException"}


def _expired(queue):
    return [queue.is_lock_expired(NOW_MS), queue.is_pull_expired(NOW_MS)]


def _age_lock(queue, age_ms):
    queue.last_lock_ms = NOW_MS - age_ms
    return _expired(queue)


def _age_pull(queue, age_ms):
    queue.last_pull_ms = NOW_MS - age_ms
    return _expired(queue)


def _set_locked(queue, locked):
    queue.locked = locked
    return [queue.locked, queue.dropped]


def _set_dropped(queue, dropped):
    queue.dropped = dropped
    return [queue.locked, queue.dropped]


STEPS = {
    "put": lambda queue, rows: queue.put_messages(_messages(rows)),
    "remove": lambda queue, rows: queue.remove_messages(_messages(rows), now_ms=NOW_MS),
    "take": lambda queue, n: [message.queue_offset for message in queue.take_messages(n, now_ms=NOW_MS)],
    "commit": _commit,
    "rollback": lambda queue: queue.rollback(),
    "again": lambda queue, rows: queue.make_messages_to_consume_again(_messages(rows)),
    "clear": lambda queue: queue.clear(),
    "contains": lambda queue, offset: queue.contains_message(_message(offset)),
    "lastLockTimestamp_age_ms": _age_lock,
    "lastPullTimestamp_age_ms": _age_pull,
    "setLocked": _set_locked,
    "setDropped": _set_dropped,
}


def _counters(queue):
    offsets = list(queue.offsets)
    first, last = (offsets[0], offsets[-1]) if offsets else (None, None)
    return (
        *(queue.msg_count, queue.msg_size_bytes, queue.queue_offset_max, queue.consuming),
        *(queue.max_span, len(offsets), first, last, list(queue.taken_offsets)),
    )


def _final(queue):
    offsets, taken = list(queue.offsets), list(queue.taken_offsets)
    return {
        "cachedMsgMinOffset": offsets[0] if offsets else 0,
        "cachedMsgMaxOffset": offsets[-1] if offsets else 0,
        "cachedMsgCount": len(offsets),
        "cachedMsgSizeInMiB": queue.msg_size_mib,
        "transactionMsgMinOffset": taken[0] if taken else 0,
        "transactionMsgMaxOffset": taken[-1] if taken else 0,
        "transactionMsgCount": len(taken),
        "locked": queue.locked,
        "droped": queue.dropped,
        "treeKeys": offsets,
    }
