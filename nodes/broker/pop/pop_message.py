"""Pops: messages of the retry topic and of the normal one, or a request that is held."""

from functools import lru_cache

import attrs

from nodes.broker.clients.denied_beliefs import Denial, DeniedBeliefs
from nodes.broker.context import BrokerContext
from nodes.broker.part import RequestRefusedError
from nodes.broker.pop.consumer_pop import PopFromRecords
from nodes.broker.pop.consumer_service import PopConsumerService
from nodes.broker.pop.long_polling import HeldRequest, PopLongPollingService
from nodes.broker.pop.permission import readable_topic, require_readable_broker
from nodes.broker.pop.queue_pop import Pop, QueuePop
from nodes.broker.tables.clients.consumers import ConsumerManager
from nodes.broker.tables.pop.polling import PollingResult
from nodes.broker.tables.store.message_filter import filter_refusal, matcher
from nodes.broker.tables.store.message_store import PULL_BYTES_MAX
from nodes.filter.filter_api import SUB_ALL, TAG, build
from nodes.host import Channel
from nodes.protocol import headers_pop as headers
from nodes.protocol.acl_signature import ACCESS_KEY
from nodes.protocol.bodies import PullMessageResponseBody
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.extra_info import POP_ORDER_REVIVE_QUEUE, join_infos
from nodes.protocol.model import ConsumeType, MessageModel, SubscriptionData, TopicConfig
from nodes.protocol.names import build_pop_retry_topic
from nodes.protocol.registry import decode_header, encode_header, encode_shared_body
from nodes.rpc.server import Handlers, InTask, Wake

_MAX_MESSAGES = 32
_LATE_MS = 500
_DICE = 100
_NO_BORN_TIME = "the pop has no bornTime, and is too late where permissions are checked (issue 9518)"


class PopMessage:
    """Answers pops; neither the role of the broker nor the mode of the group matters.

    One number out of a hundred decides whether the retry topic is read first, which of its names is read, and with
    which queue a pop of all queues begins.

    Mirrors:
        `org.apache.rocketmq.broker.processor.PopMessageProcessor`.
    """

    def __init__(
        self,
        broker: BrokerContext,
        consumers: ConsumerManager,
        queues: QueuePop,
        service: PopConsumerService,
        from_records: PopFromRecords,
        denied: DeniedBeliefs,
        wake: Wake | None,
    ) -> None:
        self._broker = broker
        self._consumers = consumers
        self._queues = queues
        self._service = service
        self._from_records = from_records
        self._denied = denied
        self._chance = broker.host.rng("popQueue")
        self._ck_message_number = 0
        self.polling = PopLongPollingService(broker, self._carry_out, wake)
        """Pops that wait for messages."""

    def handlers(self) -> Handlers:
        """Pops."""
        return {RequestCode.POP_MESSAGE: InTask(self._pop)}

    async def _pop(self, channel: Channel, request: Command) -> Command | None:
        header = decode_header(headers.PopMessageRequestHeader, request.ext_fields)
        # The broker adds what a proxy left out to the fields, and uses the header that was decoded for the check of
        # permissions: such a pop is refused as too late (issue 9518 of RocketMQ, mended in 5.4.0).
        if self._broker.config.authorization_enabled:
            user, ip = request.ext_fields.get(ACCESS_KEY) or "", channel.remote_address.rpartition(":")[0]
            denial = Denial(user, ip, request.code, f"Group:{header.consumer_group}", is_late=True)
            if header.born_time:
                self._denied.end(denial)
            else:
                self._denied.on_denied(denial, _NO_BORN_TIME)
        elif not header.born_time:
            header = attrs.evolve(header, born_time=self._broker.host.clock.now_ms())
        return await self._carry_out(HeldRequest(channel, request, header))

    async def _carry_out(self, held: HeldRequest) -> Command | None:
        header = held.header
        assert isinstance(header, headers.PopMessageRequestHeader)
        try:
            topic, subscription = self._permitted(held.channel, header)
            with_records = self._service.is_enabled
        except RequestRefusedError as refusal:
            return held.request.answer(refusal.code, refusal.remark)
        pop = Pop(
            header,
            held.channel.remote_address,
            self._broker.host.clock.now_ms(),
            self._next_revive_qid(is_order=bool(header.order)),
            matcher(subscription),
        )
        dice = self._chance.randrange(_DICE)
        if with_records:
            await self._from_records.take(pop, topic)
        else:
            await self._read_queues(pop, topic, dice)
        return self._answer(held, pop)

    def _permitted(
        self, channel: Channel, header: headers.PopMessageRequestHeader
    ) -> tuple[TopicConfig, SubscriptionData | None]:
        """The topic and the subscription of a pop; without expression there is none.

        Raises:
            RequestRefusedError: a check fails; they are made in RocketMQ's order.
        """
        broker, group = self._broker, header.consumer_group
        self._consumers.compensate_basic_consumer_info(group, ConsumeType.CONSUME_POP, MessageModel.CLUSTERING)
        if broker.host.clock.now_ms() - header.born_time - header.poll_time > _LATE_MS:
            remark = f"the broker[{broker.ip}] pop message is timeout too much"
            raise RequestRefusedError(ResponseCode.POLLING_TIMEOUT, remark)
        require_readable_broker(broker, "pop")
        if header.max_msg_nums > _MAX_MESSAGES:
            remark = f"the broker[{broker.ip}] pop message's num is greater than {_MAX_MESSAGES}"
            raise RequestRefusedError(ResponseCode.INVALID_PARAMETER, remark)
        if not broker.config.timer_wheel_enable:
            remark = f"the broker[{broker.ip}] pop message is forbidden because timerWheelEnable is false"
            raise RequestRefusedError(ResponseCode.SYSTEM_ERROR, remark)
        topic = readable_topic(broker, channel, header.topic, header.queue_id, group)
        return topic, self._subscription(header)

    def _subscription(self, header: headers.PopMessageRequestHeader) -> SubscriptionData | None:
        """Note the subscription of a pop to its topic and to the retry topic.

        Raises:
            RequestRefusedError: the expression cannot be read.
        """
        broker, group = self._broker, header.consumer_group
        retry = build_pop_retry_topic(header.topic, group, v2=broker.config.enable_retry_topic_v2)
        subscriptions = _subscriptions(header.topic, retry, header.exp, header.exp_type)
        if subscriptions is None:
            remark = "parse the consumer's subscription failed"
            raise RequestRefusedError(ResponseCode.SUBSCRIPTION_PARSE_FAILED, remark)
        now_ms = broker.host.clock.now_ms()
        for each in subscriptions:
            expression = (each.topic, each.sub_string, each.tags_set, each.code_set)
            noted = SubscriptionData(*expression, now_ms, each.expression_type)
            self._consumers.compensate_subscribe_data(group, noted)
        return subscriptions[0] if header.exp else None

    def _next_revive_qid(self, *, is_order: bool) -> int:
        """The queue of the revive topic for a pop; each pop counts, also an empty one."""
        if is_order:
            return POP_ORDER_REVIVE_QUEUE
        number = self._ck_message_number
        self._ck_message_number += 1
        return number % self._broker.config.revive_queue_num

    async def _read_queues(self, pop: Pop, topic: TopicConfig, dice: int) -> None:
        config = self._broker.config
        retry_first = dice < config.pop_from_retry_probability
        v2 = config.enable_retry_topic_v2
        if v2 and config.retrieve_message_from_pop_retry_topic_v1 and dice % 2 == 0:
            v2 = False
        retry = self._broker.topics.select_topic_config(build_pop_retry_topic(topic.topic_name, pop.group, v2=v2))
        if retry_first and not pop.is_order:
            await self._read_topic(pop, retry, dice, is_retry=True)
        if pop.header.queue_id < 0:
            await self._read_topic(pop, topic, dice, is_retry=False)
        else:
            await self._queues.take(pop, topic.topic_name, pop.header.queue_id, is_retry=False)
        if not retry_first and not pop.is_order and pop.wanted > 0:
            await self._read_topic(pop, retry, dice, is_retry=True)

    async def _read_topic(self, pop: Pop, topic: TopicConfig | None, dice: int, *, is_retry: bool) -> None:
        count = 0 if topic is None else topic.read_queue_nums
        for place in range(count):
            assert topic is not None
            await self._queues.take(pop, topic.topic_name, (dice + place) % count, is_retry=is_retry)

    def _answer(self, held: HeldRequest, pop: Pop) -> Command | None:
        """The answer; None: there is no message yet, and the pop is held."""
        header, body, remark, code = pop.header, None, "FOUND", ResponseCode.SUCCESS
        if pop.messages:
            if pop.rest_num > 0:
                self.polling.notify(header.topic, pop.group, header.queue_id)
            is_short = pop.found_bytes <= PULL_BYTES_MAX
            body = encode_shared_body(PullMessageResponseBody(tuple(pop.messages)), is_short=is_short)
        else:
            result = self.polling.hold(held, pop.matches)
            if result is PollingResult.POLLING_SUC:
                if pop.rest_num > 0:
                    self.polling.notify_after_hold(header)
                return None
            is_full = result is PollingResult.POLLING_FULL
            code = ResponseCode.POLLING_FULL if is_full else ResponseCode.POLLING_TIMEOUT
            remark = "NO_MESSAGE_IN_QUEUE"
        reported = headers.PopMessageResponseHeader(
            pop.pop_time_ms,
            header.invisible_time,
            pop.revive_qid,
            pop.rest_num,
            join_infos(pop.start_offset_infos),
            join_infos(pop.msg_offset_infos),
            join_infos(pop.order_count_infos) if pop.is_order else None,
        )
        return held.request.answer(int(code), remark, encode_header(reported), body)


@lru_cache(maxsize=256)
def _subscriptions(
    topic: str, retry: str, expression: str | None, expression_type: str | None
) -> tuple[SubscriptionData, SubscriptionData] | None:
    """The subscriptions of a pop to its topic and to its retry topic; None: the expression cannot be read."""
    kind = expression_type if expression else TAG
    try:
        built, of_retry = build(topic, expression or SUB_ALL, kind), build(retry, SUB_ALL, kind)
        refusal = filter_refusal(built, enable_property_filter=True)
    except ValueError:
        return None
    return (built, of_retry) if refusal is None else None
