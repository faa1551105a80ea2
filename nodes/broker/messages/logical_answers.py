"""Answers about physical queues as answers about the logical ones that they belong to."""

import attrs

from nodes.broker.tables.metadata.static_topics import LogicalQueue
from nodes.protocol.codes import ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.headers import PullMessageResponseHeader, SendMessageResponseHeader
from nodes.protocol.registry import decode_header, encode_header
from nodes.protocol.static_topics import LogicQueueMappingItem, find_item, find_next

_C = ResponseCode
_STORED = (_C.SUCCESS, _C.FLUSH_DISK_TIMEOUT, _C.SLAVE_NOT_AVAILABLE, _C.FLUSH_SLAVE_TIMEOUT)
_READ = (_C.SUCCESS, _C.PULL_NOT_FOUND, _C.PULL_RETRY_IMMEDIATELY, _C.PULL_OFFSET_MOVED)


def logical_send_answer(queue: LogicalQueue, answer: Command) -> Command:
    """Where a message was stored, in its logical queue; the offset is -1 as long as the leader's is not decided.

    Mirrors:
        `SendMessageProcessor#rewriteResponseForStaticTopic`.
    """
    if answer.code not in _STORED:
        return answer
    stored = decode_header(SendMessageResponseHeader, answer.ext_fields)
    offset = queue.leader.static_offset_loosely(stored.queue_offset)
    header = attrs.evolve(stored, queue_id=queue.global_id, queue_offset=offset)
    return answer._replace(ext_fields=encode_header(header))


def logical_pull_answer(
    queue: LogicalQueue, item: LogicQueueMappingItem, requested_offset: int, answer: Command
) -> Command:
    """What was read of a physical queue, as a part of its logical queue; at its end the next part follows.

    Args:
        item: that was read.
        requested_offset: in the physical queue.

    Mirrors:
        `PullMessageProcessor#rewriteResponseForStaticTopic`.
    """
    if answer.code not in _READ:
        return answer
    read = decode_header(PullMessageResponseHeader, answer.ext_fields)
    code, current = _C(answer.code), item
    if code is not _C.SUCCESS:
        code, current, read = _revised(queue, item, requested_offset, code, read)
    next_offset = min(read.next_begin_offset, current.end_offset) if current.has_end else read.next_begin_offset
    header = attrs.evolve(
        read,
        next_begin_offset=current.static_offset(next_offset),
        min_offset=current.static_offset(max(current.start_offset, read.min_offset)),
        max_offset=max(current.static_offset(read.max_offset), queue.leader.max_static_offset),
        offset_delta=current.logic_offset - current.start_offset,
    )
    return answer._replace(code=int(code), ext_fields=encode_header(header))


_Revised = tuple[ResponseCode, LogicQueueMappingItem, PullMessageResponseHeader]


def _revised(
    queue: LogicalQueue,
    item: LogicQueueMappingItem,
    requested: int,
    code: ResponseCode,
    read: PullMessageResponseHeader,
) -> _Revised:
    """Code, item and offsets of a pull that found nothing, by the place of its item: leader, first, or between."""
    earliest = find_item(queue.items, 0)
    is_leader, is_earliest = item.gen == queue.leader.gen, earliest is not None and item.gen == earliest.gen
    if is_leader:
        revised = _of_leader(item, requested, code, read)
        if not is_earliest:
            return revised
        read = revised[2]
    if requested < read.min_offset:
        below = _C.PULL_OFFSET_MOVED if is_earliest else _C.PULL_RETRY_IMMEDIATELY
        return below, item, attrs.evolve(read, next_begin_offset=read.min_offset)
    return _moved_on(queue, item, read) if requested >= read.max_offset else (code, item, read)


def _of_leader(
    item: LogicQueueMappingItem, requested: int, code: ResponseCode, read: PullMessageResponseHeader
) -> _Revised:
    if requested > read.max_offset and code is _C.PULL_OFFSET_MOVED:
        return code, item, attrs.evolve(read, next_begin_offset=read.max_offset)
    if requested < read.min_offset:
        return _C.PULL_RETRY_IMMEDIATELY, item, attrs.evolve(read, next_begin_offset=read.min_offset)
    return code, item, read


def _moved_on(queue: LogicalQueue, item: LogicQueueMappingItem, read: PullMessageResponseHeader) -> _Revised:
    """The beginning of the next part; without one that is decided there is nothing to read."""
    following = find_next(queue.items, item)
    if following is None:
        return _C.PULL_NOT_FOUND, item, read
    start = following.start_offset
    moved = attrs.evolve(read, next_begin_offset=start, min_offset=start, max_offset=start)
    return _C.PULL_RETRY_IMMEDIATELY, following, moved
