"""Pulls: permission checks, reads, answers."""

from nodes.broker.clients.offset_manage import OffsetManage
from nodes.broker.context import BrokerContext
from nodes.broker.messages.pull_request_hold import HeldPull, PullRequestHoldService
from nodes.broker.tables.broker_stats import StatsName
from nodes.broker.tables.consumer_offsets import TOPIC_GROUP_SEPARATOR
from nodes.broker.tables.message_filter import carried_subscription, filter_refusal, matcher
from nodes.broker.tables.message_store import GetMessageStatus, pull_response_code
from nodes.filter.filter_api import filtered_record
from nodes.host import Channel
from nodes.protocol import headers
from nodes.protocol.bodies import PullMessageResponseBody
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.model import MASTER_ID, Message, MessageModel, SubscriptionData, is_readable
from nodes.protocol.registry import decode_header
from nodes.protocol.sys_flags import PullSysFlag
from nodes.rpc.server import Handlers
from nodes.rpc.typed import success


class PullMessage:
    """Answers pulls; never checks whether the caller owns the queue or holds its lock.

    Mirrors:
        `org.apache.rocketmq.broker.processor.PullMessageProcessor`.
    """

    def __init__(self, broker: BrokerContext, offsets: OffsetManage) -> None:
        self._broker = broker
        self._offsets = offsets
        self.hold = PullRequestHoldService(broker, self._answer_held)
        """Pulls that wait for messages."""

    def handlers(self) -> Handlers:
        """Pulls of push and of lite pull consumers."""
        return {
            RequestCode.PULL_MESSAGE: self._pull,
            RequestCode.LITE_PULL_MESSAGE: self._pull,
        }

    def _pull(self, channel: Channel, request: Command) -> Command | None:
        header = decode_header(headers.PullMessageRequestHeader, request.ext_fields)
        answer = self._answer(channel, request, header)
        if header.sys_flag & PullSysFlag.COMMIT_OFFSET:
            self._offsets.commit(
                header.consumer_group, header.topic, header.queue_id, header.commit_offset, channel.remote_address
            )
        if answer.code == ResponseCode.PULL_NOT_FOUND and header.sys_flag & PullSysFlag.SUSPEND:
            self.hold.suspend(channel, request, header, matcher(self._subscription(header)))
            return None
        return answer

    def _answer(self, channel: Channel, request: Command, header: headers.PullMessageRequestHeader) -> Command:
        refusal = self._refusal(header)
        if refusal is not None:
            return request.answer(*refusal)
        broker = self._broker
        reset = broker.offsets.query_then_erase_reset_offset(header.consumer_group, header.topic, header.queue_id)
        if reset is not None:
            return self._compose(request, ResponseCode.PULL_OFFSET_MOVED, header, reset, (), MASTER_ID)
        result = broker.store.get_message(
            header.topic,
            header.queue_id,
            header.queue_offset,
            min(header.max_msg_nums, broker.config.max_transfer_count_on_message_in_memory),
            matches=matcher(self._subscription(header)),
            correct_offset=not self._is_lenient,
        )
        for message in result.filtered:
            broker.host.record(
                filtered_record(message, header.consumer_group, broker.broker_name, channel.remote_address)
            )
        code = pull_response_code(result.status, header.queue_offset)
        if code is ResponseCode.PULL_OFFSET_MOVED and self._is_lenient:
            code = ResponseCode.PULL_RETRY_IMMEDIATELY
        messages = result.messages if result.status is GetMessageStatus.FOUND else ()
        if messages:
            key = f"{header.topic}{TOPIC_GROUP_SEPARATOR}{header.consumer_group}"
            broker.stats.inc(StatsName.GROUP_GET_NUMS, key, len(messages), broker.host.clock.now_ms())
        suggested = self._suggested(header.consumer_group, result.fall_behind_bytes)
        return self._compose(request, code, header, result.next_begin_offset, messages, suggested)

    def _suggested(self, group: str, fall_behind_bytes: int) -> int:
        """The broker id for the next pull; the group has another one for messages that are no longer in memory here."""
        config = self._broker.config
        if not config.slave_read_enable:
            return MASTER_ID
        settings = self._broker.groups.find_subscription_group_config(group, now_ms=self._broker.host.clock.now_ms())
        if settings is None:
            return MASTER_ID
        memory_bytes = config.total_physical_memory_size * config.access_message_in_memory_max_ratio // 100
        behind = fall_behind_bytes > memory_bytes
        return settings.which_broker_when_consume_slowly if behind else settings.broker_id

    @property
    def _is_lenient(self) -> bool:
        """Whether a bad offset is left uncorrected: on a slave, whose log may lag behind."""
        return self._broker.broker_id != MASTER_ID and not self._broker.config.offset_check_in_slave

    def _compose(
        self,
        request: Command,
        code: ResponseCode,
        header: headers.PullMessageRequestHeader,
        next_begin_offset: int,
        messages: tuple[Message, ...],
        suggested: int,
    ) -> Command:
        store = self._broker.store
        answer_header = headers.PullMessageResponseHeader(
            suggested,
            next_begin_offset,
            store.min_offset(header.topic, header.queue_id),
            store.max_offset(header.topic, header.queue_id),
        )
        answer = success(request, answer_header, PullMessageResponseBody(messages) if messages else None)
        return answer if code == ResponseCode.SUCCESS else answer._replace(code=int(code))

    def _refusal(self, header: headers.PullMessageRequestHeader) -> tuple[ResponseCode, str] | None:
        """The first check that fails, in RocketMQ's order; None if all pass."""
        broker, group = self._broker, header.consumer_group
        if broker.broker_id != MASTER_ID and not broker.config.slave_read_enable:
            return ResponseCode.SYSTEM_BUSY, "this broker is a slave that does not serve reads"
        if not is_readable(broker.config.broker_permission):
            return ResponseCode.NO_PERMISSION, f"the broker[{broker.host.ip}] pulling message is forbidden"
        config = broker.groups.find_subscription_group_config(group, now_ms=broker.host.clock.now_ms())
        if config is None:
            return ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, f"group {group} does not exist here"
        if not config.consume_enable:
            return ResponseCode.NO_PERMISSION, f"group {group} may not consume"
        return self._topic_refusal(header) or self._subscription_refusal(
            header, broadcast_allowed=config.consume_broadcast_enable
        )

    def _topic_refusal(self, header: headers.PullMessageRequestHeader) -> tuple[ResponseCode, str] | None:
        topic, queue_id = header.topic, header.queue_id
        config = self._broker.topics.select_topic_config(topic)
        if config is None:
            return ResponseCode.TOPIC_NOT_EXIST, f"topic {topic} does not exist here"
        if not is_readable(config.perm):
            return ResponseCode.NO_PERMISSION, f"topic {topic} may not be read"
        if not 0 <= queue_id < config.read_queue_nums:
            return ResponseCode.INVALID_PARAMETER, f"topic {topic} has {config.read_queue_nums} queues, not {queue_id}"
        return None

    def _subscription_refusal(
        self, header: headers.PullMessageRequestHeader, *, broadcast_allowed: bool
    ) -> tuple[ResponseCode, str] | None:
        if header.sys_flag & PullSysFlag.SUBSCRIPTION:
            return self._carried_refusal(header)
        info = self._broker.consumers.group(header.consumer_group)
        if info is None:
            return ResponseCode.SUBSCRIPTION_NOT_EXIST, "the group has no member here"
        if not broadcast_allowed and info.message_model is MessageModel.BROADCASTING:
            return ResponseCode.NO_PERMISSION, f"group {header.consumer_group} may not broadcast"
        if self._broker.groups.is_read_forbidden(header.consumer_group, header.topic):
            return ResponseCode.NO_PERMISSION, f"group {header.consumer_group} may not read topic {header.topic}"
        return self._known_refusal(header, info.subscriptions.get(header.topic))

    def _carried_refusal(self, header: headers.PullMessageRequestHeader) -> tuple[ResponseCode, str] | None:
        try:
            carried = carried_subscription(header)
        except ValueError:
            return ResponseCode.SUBSCRIPTION_PARSE_FAILED, "parse the consumer's subscription failed"
        return filter_refusal(carried, enable_property_filter=self._broker.config.enable_property_filter)

    def _known_refusal(
        self, header: headers.PullMessageRequestHeader, known: SubscriptionData | None
    ) -> tuple[ResponseCode, str] | None:
        if known is None:
            return ResponseCode.SUBSCRIPTION_NOT_EXIST, "the group has not subscribed to the topic here"
        if known.sub_version < header.sub_version:
            return ResponseCode.SUBSCRIPTION_NOT_LATEST, "the group's subscription here is older than the caller's"
        by_properties = self._broker.config.enable_property_filter
        return filter_refusal(known, enable_property_filter=by_properties, is_known=True)

    def _subscription(self, header: headers.PullMessageRequestHeader) -> SubscriptionData | None:
        """The subscription of a pull: its own, or that of the group's heartbeats."""
        if header.sys_flag & PullSysFlag.SUBSCRIPTION:
            return carried_subscription(header)
        return self._broker.consumers.find_subscription(header.consumer_group, header.topic)

    def _answer_held(self, held: HeldPull) -> None:
        """Read again and answer without holding the pull again; a closed channel drops the answer."""
        if not held.channel.closed:
            held.channel.send(self._answer(held.channel, held.request, held.header))
