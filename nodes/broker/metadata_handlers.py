"""What a broker tells others of its tables: a slave that copies them, a master that takes them back."""

from nodes.broker.context import BrokerContext
from nodes.host import Channel
from nodes.protocol.bodies import ConsumerOffsetSerializeWrapper
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.rpc.server import RpcServer
from nodes.rpc.typed import success


class MetadataHandlers:
    """Answers whoever asks, whatever this broker's role.

    Mirrors:
        `org.apache.rocketmq.broker.processor.AdminBrokerProcessor` for 21, 43, 45, 60, 201 and 402.
    """

    def __init__(self, broker: BrokerContext, server: RpcServer) -> None:
        self._broker = broker
        server.register(RequestCode.GET_ALL_TOPIC_CONFIG, self._get_all_topic_config)
        server.register(RequestCode.GET_ALL_CONSUMER_OFFSET, self._get_all_consumer_offset)
        server.register(RequestCode.GET_ALL_DELAY_OFFSET, self._get_all_delay_offset)
        server.register(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, self._get_all_subscription_group)
        server.register(RequestCode.GET_ALL_MESSAGE_REQUEST_MODE, self._get_all_message_request_mode)
        server.register(RequestCode.GET_TIMER_CHECK_POINT, self._get_timer_check_point)

    def _get_all_topic_config(self, _channel: Channel, request: Command) -> Command:
        return success(request, None, self._broker.topics.wrapper())

    def _get_all_consumer_offset(self, _channel: Channel, request: Command) -> Command:
        offsets = self._broker.offsets
        body = ConsumerOffsetSerializeWrapper(offsets.offsets, offsets.data_version, offsets.group_topic_map())
        return success(request, None, body)

    def _get_all_delay_offset(self, _channel: Channel, request: Command) -> Command:
        return success(request, None, self._broker.delay_offsets.wrapper())

    def _get_all_subscription_group(self, _channel: Channel, request: Command) -> Command:
        return success(request, None, self._broker.groups.wrapper())

    def _get_all_message_request_mode(self, _channel: Channel, request: Command) -> Command:
        return success(request, None, self._broker.request_modes.wrapper())

    def _get_timer_check_point(self, _channel: Channel, request: Command) -> Command:
        timer = self._broker.timer
        if timer is None:
            return request.answer(ResponseCode.SYSTEM_ERROR, "this broker has no timer, so no check point of one")
        return success(request, None, timer.check_point.encode())
