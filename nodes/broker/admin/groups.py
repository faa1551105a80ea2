"""Requests of operators that create, change and delete consumer groups."""

from nodes.broker.context import BrokerContext
from nodes.broker.files import persist_consumer_offsets, persist_groups
from nodes.broker.part import Part
from nodes.broker.tables.clients.consumer_offsets import ConsumerOffsetManager
from nodes.broker.tables.metadata.attributes import AttributeRefusedError
from nodes.broker.tables.metadata.subscription_groups import INDEX_PERM_READ
from nodes.broker.tables.pop.in_flight import PopInflightMessageCounter
from nodes.host import Channel
from nodes.protocol import headers_admin as headers
from nodes.protocol.bodies_admin import GroupForbidden, SubscriptionGroupList
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.model import SubscriptionGroupConfig
from nodes.protocol.registry import decode_body, decode_header
from nodes.rpc.server import Handlers
from nodes.rpc.typed import success


class AdminGroups(Part):
    """Changes consumer groups while the broker runs.

    Mirrors:
        `org.apache.rocketmq.broker.processor.AdminBrokerProcessor#updateAndCreateSubscriptionGroup`,
        `#updateAndCreateSubscriptionGroupList`, `#deleteSubscriptionGroup`, `#getSubscriptionGroup`,
        `#updateAndGetGroupForbidden`.
    """

    def __init__(
        self, broker: BrokerContext, offsets: ConsumerOffsetManager, in_flight: PopInflightMessageCounter
    ) -> None:
        self._broker = broker
        self._offsets = offsets
        self._in_flight = in_flight

    def handlers(self) -> Handlers:
        """The requests that it answers."""
        return {
            RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP: self._update_group,
            RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST: self._update_groups,
            RequestCode.DELETE_SUBSCRIPTIONGROUP: self._delete_group,
            RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG: self._get_group,
            RequestCode.UPDATE_AND_GET_GROUP_FORBIDDEN: self._update_forbidden,
        }

    def _update_group(self, _channel: Channel, request: Command) -> Command:
        return self._update(request, (decode_body(SubscriptionGroupConfig, request.body),))

    def _update_groups(self, _channel: Channel, request: Command) -> Command:
        return self._update(request, decode_body(SubscriptionGroupList, request.body).group_config_list)

    def _update(self, request: Command, configs: tuple[SubscriptionGroupConfig, ...]) -> Command:
        now_ms = self._broker.host.clock.now_ms()
        try:
            for config in configs:
                self._broker.groups.require_room(config.group_name)
                self._broker.groups.update_subscription_group_config(config, now_ms=now_ms)
        except AttributeRefusedError as error:
            return request.answer(ResponseCode.SYSTEM_ERROR, str(error))
        self._keep()
        return success(request)

    def _delete_group(self, _channel: Channel, request: Command) -> Command:
        header = decode_header(headers.DeleteSubscriptionGroupRequestHeader, request.ext_fields)
        broker = self._broker
        broker.groups.delete_subscription_group_config(header.group_name, now_ms=broker.host.clock.now_ms())
        if header.clean_offset:
            self._offsets.remove_offset(header.group_name)
            self._in_flight.clear_group(header.group_name)
            persist_consumer_offsets(broker, self._offsets)
        self._keep()
        return success(request)

    def _get_group(self, _channel: Channel, request: Command) -> Command:
        group = decode_header(headers.GroupHeader, request.ext_fields).group
        version = self._broker.groups.data_version
        config = self._broker.groups.find_subscription_group_config(group, now_ms=self._broker.host.clock.now_ms())
        if config is None:
            return request.answer(ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST, "No group in this broker")
        if self._broker.groups.data_version is not version:  # looking a group up may create it
            self._keep()
        return success(request, None, config)

    def _update_forbidden(self, _channel: Channel, request: Command) -> Command:
        header = decode_header(headers.UpdateGroupForbiddenRequestHeader, request.ext_fields)
        groups, group, topic = self._broker.groups, header.group, header.topic
        if header.readable is not None:
            now_ms = self._broker.host.clock.now_ms()
            groups.update_forbidden(group, topic, INDEX_PERM_READ, forbid=not header.readable, now_ms=now_ms)
            self._keep()
        return success(request, None, GroupForbidden(topic, group, not groups.is_read_forbidden(group, topic)))

    def _keep(self) -> None:
        persist_groups(self._broker)
        self._broker.versions.believe()
