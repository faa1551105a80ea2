"""Requests for logical queues: rewritten for a physical queue here, or sent on to the broker that has it.

Mirrors:
    `rewriteRequestForStaticTopic` and `rewriteResponseForStaticTopic` of `SendMessageProcessor`,
    `PullMessageProcessor`, `ConsumerManageProcessor` and `AdminBrokerProcessor`;
    `AdminBrokerProcessor#updateAndCreateStaticTopic`.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Any, cast

import attrs

from nodes.broker.context import BrokerContext
from nodes.broker.files import persist_topics
from nodes.broker.messages.clean_static_topics import CleanStaticTopics
from nodes.broker.messages.logical_answers import logical_pull_answer, logical_send_answer
from nodes.broker.messages.other_masters import OtherMasters
from nodes.broker.part import Part
from nodes.broker.registration.registration import NameserverRegistration
from nodes.broker.tables.clients.consumer_offsets import ConsumerOffsetManager
from nodes.broker.tables.metadata.static_topics import LogicalQueue, TopicQueueMappingManager
from nodes.host import Channel
from nodes.protocol import headers
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.headers import BoundaryType
from nodes.protocol.headers_admin import CreateTopicRequestHeader
from nodes.protocol.headers_message import GetEarliestMsgStoretimeRequestHeader
from nodes.protocol.model import TopicConfig, TopicQueueMappingInfo
from nodes.protocol.names import is_system_topic, validate_topic
from nodes.protocol.registry import EXCHANGES, decode_body, decode_header, encode_header
from nodes.protocol.static_topics import LogicQueueMappingItem, MappingRefusedError, TopicQueueMappingDetail, find_item
from nodes.protocol.sys_flags import PullSysFlag
from nodes.protocol.widths import INT64_MAX
from nodes.rpc.errors import BrokerError, RemotingError
from nodes.rpc.nameservers import Nameservers
from nodes.rpc.server import Handler, Handlers, InTask
from nodes.rpc.typed import succeeded, success

MAPPING_FILE = "topicQueueMapping.json"
_SENDS = (RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE)
_PULLS = (RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE)
_Answer = Command | InTask | None
_Rule = Callable[[LogicalQueue, Any, Handler, Channel, Command], _Answer]


class StaticTopics(Part):
    """The static topics of a broker; a broker without any handles each request as it is.

    A slave has no mappings: RocketMQ copies only their version.
    """

    def __init__(
        self,
        broker: BrokerContext,
        offsets: ConsumerOffsetManager,
        registration: NameserverRegistration,
        others: OtherMasters,
        nameservers: Nameservers,
    ) -> None:
        self._broker = broker
        self._offsets = offsets
        self._registration = registration
        self._others = others
        self._mappings = TopicQueueMappingManager(broker.broker_name, now_ms=broker.host.clock.now_ms())
        self._cleaning = CleanStaticTopics(broker, self._mappings, others, nameservers, self._persist)
        registration.mapping_infos = self.infos
        self._rules: Mapping[RequestCode, _Rule] = {
            **dict.fromkeys(_SENDS, self._send),
            **dict.fromkeys(_PULLS, self._pull),
            RequestCode.UPDATE_CONSUMER_OFFSET: self._update_consumer_offset,
            RequestCode.QUERY_CONSUMER_OFFSET: self._query_consumer_offset,
            RequestCode.GET_MAX_OFFSET: self._get_max_offset,
            RequestCode.GET_MIN_OFFSET: self._get_min_offset,
            RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: self._search_offset,
            RequestCode.GET_EARLIEST_MSG_STORETIME: self._get_earliest,
        }

    # The table

    @property
    def mappings(self) -> Mapping[str, TopicQueueMappingDetail]:
        """Topic -> mapping."""
        return self._mappings.table

    def infos(self, topics: Iterable[str]) -> Mapping[str, TopicQueueMappingInfo]:
        """What nameservers are to know of the static ones among topics."""
        return {topic: self._mappings.table[topic].info() for topic in topics if topic in self._mappings.table}

    def load(self) -> None:
        """Read the file of an earlier process."""
        content = self._broker.host.disk.read(MAPPING_FILE)
        if content is not None:
            self._mappings.decode(content)

    async def start(self) -> None:
        """Begin to clean mappings."""
        self._cleaning.begin()

    def forget(self, topic: str) -> None:
        """A topic was deleted."""
        if self._mappings.delete(topic, now_ms=self._broker.host.clock.now_ms()):
            self._persist()

    def _persist(self) -> None:
        self._broker.host.disk.write(MAPPING_FILE, self._mappings.encode)

    # Requests

    def handlers(self) -> Handlers:
        """What makes and changes a static topic."""
        return self._registration.answered_when_registered(
            {RequestCode.UPDATE_AND_CREATE_STATIC_TOPIC: self._update_and_create}
        )

    def around(self, handlers: Handlers) -> Handlers:
        """The same handlers; those of requests that may be for a logical queue are called with a physical one."""
        return {
            code: partial(self._rewritten, code, cast("Handler", handler)) if code in self._rules else handler
            for code, handler in handlers.items()
        }

    def _update_and_create(self, _channel: Channel, request: Command) -> Command:
        header = decode_header(CreateTopicRequestHeader, request.ext_fields)
        valid, broker = validate_topic(header.topic), self._broker
        if not valid.valid:
            return request.answer(ResponseCode.INVALID_PARAMETER, valid.remark)
        if is_system_topic(header.topic):
            remark = f"The topic[{header.topic}] is conflict with system topic."
            return request.answer(ResponseCode.INVALID_PARAMETER, remark)
        queues = (header.read_queue_nums, header.write_queue_nums)
        config = TopicConfig(header.topic, *queues, header.perm, header.topic_sys_flag or 0)
        now_ms = broker.host.clock.now_ms()
        broker.topics.require_room(config)
        # The topic has changed already when its mapping is refused.
        broker.topics.update_topic_config(config, now_ms=now_ms)
        persist_topics(broker)
        broker.versions.believe()
        try:
            detail = decode_body(TopicQueueMappingDetail, request.body)
            self._mappings.update(detail, force=bool(header.force), now_ms=now_ms)
        except MappingRefusedError as error:
            return request.answer(ResponseCode.SYSTEM_ERROR, str(error))
        self._persist()
        self._cleaning.start_when_needed()
        self._registration.register_increment((header.topic,))
        return success(request)

    def _rewritten(self, code: RequestCode, handler: Handler, channel: Channel, request: Command) -> _Answer:
        if not self._mappings.table:
            return handler(channel, request)
        header: Any = decode_header(EXCHANGES[code].request_header, request.ext_fields)
        queue_id = -1 if header.queue_id is None else header.queue_id
        queue = self._mappings.logical_queue(
            header.topic, queue_id, is_logical=getattr(header, "lo", None), selects=code in _SENDS
        )
        if queue is None:
            return handler(channel, request)
        if not queue.is_led_here:
            remark = queue.not_leader_remark
            if code in _PULLS:
                remark = remark.replace("does not exit", "cannot find mapping item")
            return request.answer(ResponseCode.NOT_LEADER_FOR_QUEUE, remark)
        return self._rules[code](queue, header, handler, channel, request)

    # Messages

    def _send(self, queue: LogicalQueue, header: Any, handler: Handler, channel: Channel, request: Command) -> _Answer:
        physical = attrs.evolve(header, queue_id=queue.leader.queue_id)
        return _handled(handler, channel, request, physical, partial(logical_send_answer, queue))

    def _pull(
        self,
        queue: LogicalQueue,
        header: headers.PullMessageRequestHeader,
        handler: Handler,
        channel: Channel,
        request: Command,
    ) -> _Answer:
        item = find_item(queue.items, header.queue_offset)
        if item is None:
            return request.answer(ResponseCode.SYSTEM_ERROR, "java.lang.NullPointerException")
        length = item.end_offset - item.start_offset
        physical = attrs.evolve(
            header,
            queue_id=item.queue_id,
            queue_offset=item.physical_offset(header.queue_offset),
            max_msg_nums=min(length, header.max_msg_nums) if item.has_end else header.max_msg_nums,
        )
        rewrite = partial(logical_pull_answer, queue, item, physical.queue_offset)
        if item.bname == queue.broker_name:
            return _handled(handler, channel, request, physical, rewrite)
        flags = physical.sys_flag & ~(PullSysFlag.SUSPEND | PullSysFlag.COMMIT_OFFSET)
        sent_on = attrs.evolve(physical, lo=False, bname=item.bname, sys_flag=flags)

        async def ask() -> Command:
            answer = await self._others.ask(item.bname, RequestCode.PULL_MESSAGE, sent_on)
            return rewrite(request.answer(answer.code, answer.remark, answer.ext_fields, answer.body))

        return _in_task(request, ask)

    # Offsets of consumers

    def _update_consumer_offset(
        self,
        queue: LogicalQueue,
        header: headers.UpdateConsumerOffsetRequestHeader,
        handler: Handler,
        channel: Channel,
        request: Command,
    ) -> _Answer:
        item = None if header.commit_offset is None else find_item(queue.items, header.commit_offset)
        if item is None or header.commit_offset is None:
            return request.answer(ResponseCode.SYSTEM_ERROR, None)
        offset = item.physical_offset(header.commit_offset)
        physical = attrs.evolve(_of_part(header, item), commit_offset=offset)
        if item.bname == queue.broker_name:
            return _handled(handler, channel, request, physical, lambda answer: answer)

        async def ask() -> Command:
            answer = await self._others.ask(item.bname, RequestCode.UPDATE_CONSUMER_OFFSET, physical)
            return request.answer(answer.code, answer.remark)

        return _in_task(request, ask)

    def _query_consumer_offset(
        self,
        queue: LogicalQueue,
        header: headers.QueryConsumerOffsetRequestHeader,
        handler: Handler,
        channel: Channel,
        request: Command,
    ) -> _Answer:
        if len(queue.items) == 1 and queue.leader.logic_offset == 0:
            physical = attrs.evolve(header, queue_id=queue.leader.queue_id)
            return _handled(handler, channel, request, physical, lambda answer: answer)

        async def ask() -> Command:
            """From the leader back to the first: where a group has an offset, there it is."""
            for item in reversed(queue.items):
                offset = await self._offset_at(queue, item, header)
                if offset >= 0:
                    return success(request, headers.OffsetResponseHeader(item.static_offset(offset)))
            return request.answer(ResponseCode.QUERY_NOT_FOUND, "Not found, maybe this group consumer boot first")

        return _in_task(request, ask)

    async def _offset_at(
        self, queue: LogicalQueue, item: LogicQueueMappingItem, header: headers.QueryConsumerOffsetRequestHeader
    ) -> int:
        if item.bname == queue.broker_name:
            return self._offsets.query_offset(header.consumer_group, queue.topic, item.queue_id)
        asked = attrs.evolve(_of_part(header, item), set_zero_if_not_found=False)
        answer = await self._others.ask(item.bname, RequestCode.QUERY_CONSUMER_OFFSET, asked)
        return -1 if answer.code == ResponseCode.QUERY_NOT_FOUND else _offset(answer)

    # Offsets of queues

    def _get_max_offset(
        self,
        queue: LogicalQueue,
        header: headers.GetMaxOffsetRequestHeader,
        _handler: Handler,
        _channel: Channel,
        request: Command,
    ) -> _Answer:
        item = find_item(queue.items, INT64_MAX)
        if item is None:
            return request.answer(ResponseCode.SYSTEM_ERROR, None)

        async def ask() -> Command:
            # As in RocketMQ the queue is that of the leader, also while the leader's offset is not decided.
            asked = attrs.evolve(header, queue_id=queue.leader.queue_id, bname=item.bname, lo=False)
            if item.bname == queue.broker_name:
                offset = self._broker.store.max_offset(queue.topic, asked.queue_id)
            else:
                offset = _offset(await self._others.ask(item.bname, RequestCode.GET_MAX_OFFSET, asked))
            return success(request, headers.OffsetResponseHeader(item.static_offset(offset)))

        return _in_task(request, ask)

    def _get_min_offset(
        self,
        queue: LogicalQueue,
        header: headers.GetMinOffsetRequestHeader,
        _handler: Handler,
        _channel: Channel,
        request: Command,
    ) -> _Answer:
        item = find_item(queue.items, 0)
        if item is None:
            return request.answer(ResponseCode.SYSTEM_ERROR, None)

        async def ask() -> Command:
            asked = _of_part(header, item)
            if item.bname == queue.broker_name:
                offset = self._broker.store.min_offset(queue.topic, item.queue_id)
            else:
                offset = _offset(await self._others.ask(item.bname, RequestCode.GET_MIN_OFFSET, asked))
            return success(request, headers.OffsetResponseHeader(item.static_offset_loosely(offset)))

        return _in_task(request, ask)

    def _search_offset(
        self,
        queue: LogicalQueue,
        header: headers.SearchOffsetRequestHeader,
        _handler: Handler,
        _channel: Channel,
        request: Command,
    ) -> _Answer:
        async def ask() -> Command:
            offset, boundary = -1, header.boundary_type or BoundaryType.LOWER
            for item in (found for found in queue.items if found.is_decided):
                if item.bname == queue.broker_name:
                    offset = self._broker.store.offset_by_time(queue.topic, item.queue_id, header.timestamp, boundary)
                    if offset > 0:
                        offset = item.static_offset(offset)
                        break
                else:
                    asked = _of_part(header, item)
                    found = _offset(await self._others.ask(item.bname, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, asked))
                    if found >= 0 and not (item.has_end and found >= item.end_offset):
                        # The search goes on: a later item may replace it.
                        offset = item.static_offset(found)
            return success(request, headers.OffsetResponseHeader(offset))

        return _in_task(request, ask)

    def _get_earliest(
        self,
        queue: LogicalQueue,
        header: GetEarliestMsgStoretimeRequestHeader,
        _handler: Handler,
        _channel: Channel,
        request: Command,
    ) -> _Answer:
        item = find_item(queue.items, 0)
        if item is None:
            return request.answer(ResponseCode.SYSTEM_ERROR, None)

        async def ask() -> Command:
            # The id stays that of the logical queue, and a broker asks itself, too, as in RocketMQ.
            asked = attrs.evolve(header, bname=item.bname, lo=False)
            answer = await self._others.ask(item.bname, RequestCode.GET_EARLIEST_MSG_STORETIME, asked)
            return request.answer(answer.code, answer.remark, answer.ext_fields)

        return _in_task(request, ask)


def _of_part(header: Any, item: LogicQueueMappingItem) -> Any:
    """The header of a request for a physical queue, which no broker takes for a logical one again."""
    return attrs.evolve(header, queue_id=item.queue_id, bname=item.bname, lo=False)


def _offset(answer: Command) -> int:
    return decode_header(headers.OffsetResponseHeader, succeeded(answer).ext_fields).offset


def _in_task(request: Command, ask: Callable[[], Awaitable[Command]]) -> InTask:
    """The answer of a request that may have to ask another broker; without its answer it is SYSTEM_ERROR."""

    async def answer(_channel: Channel, _request: Command) -> Command:
        try:
            return await ask()
        except (RemotingError, BrokerError) as error:
            return request.answer(ResponseCode.SYSTEM_ERROR, str(error))

    return InTask(answer)


class _RewritingChannel:
    """A channel whose answers are rewritten; all else is that of the real one."""

    def __init__(self, channel: Channel, rewrite: Callable[[Command], Command]) -> None:
        self._channel = channel
        self._rewrite = rewrite

    def __getattr__(self, name: str) -> Any:
        return getattr(self._channel, name)

    def send(self, command: Command) -> None:
        """Send the rewritten answer."""
        self._channel.send(self._rewrite(command))


def _handled(
    handler: Handler,
    channel: Channel,
    request: Command,
    header: "attrs.AttrsInstance",
    rewrite: Callable[[Command], Command],
) -> _Answer:
    """What a handler makes of a request with another header, its answer rewritten whenever it comes."""
    answering = cast("Channel", _RewritingChannel(channel, rewrite))
    answer = handler(answering, request._replace(ext_fields=encode_header(header)))
    if isinstance(answer, Command):
        return rewrite(answer)
    if answer is None:
        return None
    handle = answer.handle

    async def later(_channel: Channel, _request: Command) -> Command | None:
        found = await handle(answering, request._replace(ext_fields=encode_header(header)))
        return None if found is None else rewrite(found)

    return InTask(later)
