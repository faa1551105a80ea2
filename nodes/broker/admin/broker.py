"""Requests of operators about the broker itself: runtime information, options, replication, statistics."""

import math
from collections.abc import Mapping

import attrs

from nodes.broker.admin.runtime_info import RuntimeInfo
from nodes.broker.context import BrokerContext
from nodes.broker.ha.service import HaService
from nodes.broker.part import Part
from nodes.broker.registration.nameserver_list import NameserverList
from nodes.broker.registration.registration import NameserverRegistration
from nodes.broker.tables.group.member_group import MemberGroup
from nodes.broker.tables.store.broker_stats import DAY_MS, HOUR_MS, MINUTE_MS, StatsItem
from nodes.cause import cause
from nodes.config import BrokerConfig
from nodes.config.auth import AuthConfig
from nodes.config.text import to_lines, values_of
from nodes.config_requests import update_config
from nodes.host import Channel
from nodes.live_config import LiveConfig
from nodes.protocol import headers_admin as headers
from nodes.protocol.bodies import KvTable
from nodes.protocol.bodies_admin import (
    BrokerStatsData,
    BrokerStatsItem,
    HAClientRuntimeInfo,
    HAConnectionRuntimeInfo,
    HARuntimeInfo,
)
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.json_text import to_json
from nodes.protocol.model import MASTER_ID
from nodes.protocol.names import is_lmq, is_system_topic
from nodes.protocol.registry import decode_header
from nodes.rpc.server import Handlers
from nodes.rpc.typed import success

_SLAVE = "SLAVE"
"""What `brokerRole` is at a slave."""
_AUTH_DEFAULTS = values_of(AuthConfig())
"""Options of ACL 2.0, which are printed only where they are set."""


class AdminBroker(Part):
    """Reports the state of a broker, and changes its options while it runs.

    Mirrors:
        `org.apache.rocketmq.broker.processor.AdminBrokerProcessor#getBrokerRuntimeInfo`, `#getBrokerConfig`,
        `#updateBrokerConfig`, `#getBrokerHaStatus`, `#getBrokerEpochCache`, `#ViewBrokerStatsData`,
        `#resetMasterFlushOffset`.
    """

    def __init__(
        self,
        broker: BrokerContext,
        runtime: RuntimeInfo,
        registration: NameserverRegistration,
        ha: HaService,
        nameserver_list: NameserverList,
        members: MemberGroup,
    ) -> None:
        self._broker = broker
        self._runtime = runtime
        self._registration = registration
        self._ha = ha
        self._nameserver_list = nameserver_list
        self._members = members
        self._config = LiveConfig(broker.host, broker.config, self._apply)

    def handlers(self) -> Handlers:
        """The requests that it answers."""
        refused = RequestCode.GET_BROKER_EPOCH_CACHE
        return {
            **({} if self._broker.config.enable_controller_mode else {refused: self._get_epoch_cache}),
            RequestCode.GET_BROKER_RUNTIME_INFO: self._get_runtime_info,
            RequestCode.GET_BROKER_CONFIG: self._get_config,
            RequestCode.UPDATE_BROKER_CONFIG: self._update_config,
            RequestCode.GET_BROKER_HA_STATUS: self._get_ha_status,
            RequestCode.RESET_MASTER_FLUSH_OFFSET: self._reset_master_flush_offset,
            RequestCode.VIEW_BROKER_STATS_DATA: self._view_stats,
            RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE: self._clean_expired_consume_queue,
            RequestCode.CLEAN_UNUSED_TOPIC: self._clean_unused_topic,
        }

    async def start(self) -> None:
        """Begin to count."""
        self._runtime.begin()

    def _clean_expired_consume_queue(self, _channel: Channel, request: Command) -> Command:
        """Nothing has expired: no queue of the store has entries below the log's beginning."""
        return success(request)

    def _clean_unused_topic(self, _channel: Channel, request: Command) -> Command:
        """Delete the queues of deleted topics, as on a slave that has copied the topics of its master."""
        broker = self._broker
        for topic in broker.store.topics():
            if topic not in broker.topics.topics and not is_system_topic(topic) and not is_lmq(topic):
                broker.store.delete_topic(topic)
        return success(request)

    def _get_runtime_info(self, _channel: Channel, request: Command) -> Command:
        return success(request, None, KvTable(self._runtime.table()))

    def _get_config(self, _channel: Channel, request: Command) -> Command:
        version = headers.GetBrokerConfigResponseHeader(to_json(self._config.data_version))
        broker = self._broker
        identity = {
            "brokerClusterName": broker.cluster_name,
            "brokerName": broker.broker_name,
            "brokerId": broker.broker_id,
            "brokerIP1": broker.ip,
            "brokerIP2": broker.host.ip,
            "haListenPort": broker.config.listen_port + 1,
            "namesrvAddr": broker.config.namesrv_addr or ";".join(broker.nameservers),
            **({"brokerRole": _SLAVE} if broker.broker_id != MASTER_ID else {}),
        }
        values = {name: value for name, value in self._config.values().items() if _AUTH_DEFAULTS.get(name) != value}
        printed = {**values, **as_started(broker.config.other_fields), **identity}
        return success(request, version, to_lines(printed).encode())

    def _apply(self, config: BrokerConfig) -> None:
        # RocketMQ does not register AuthConfig among what it changes: its options wait for the next start.
        started_with = {field.name: getattr(self._broker.config, field.name) for field in attrs.fields(AuthConfig)}
        self._broker.config = attrs.evolve(config, **started_with)
        self._nameserver_list.on_config_changed()

    def _update_config(self, _channel: Channel, request: Command) -> Command:
        return update_config(self._config, request, self._on_changed)

    def _on_changed(self, names: tuple[str, ...]) -> None:
        if "brokerPermission" in names:
            self._broker.topics.step_version(now_ms=self._broker.host.clock.now_ms())
            self._broker.versions.believe()
            self._broker.host.start_soon(self._register, cause.get(), name="registerBrokerAll")

    async def _register(self, began: int) -> None:
        cause.set(began)
        await self._registration.register_all(force=True)

    def _get_ha_status(self, _channel: Channel, request: Command) -> Command:
        return success(request, None, ha_runtime_info(self._broker, self._ha, self._members.master_flushed_offset))

    def _reset_master_flush_offset(self, _channel: Channel, request: Command) -> Command:
        """Take an offset as the one up to which the master has flushed; a master takes none, and that is a success."""
        header = decode_header(headers.ResetMasterFlushOffsetHeader, request.ext_fields)
        if self._broker.broker_id != MASTER_ID:
            self._members.master_flushed_offset = header.master_flush_offset
        return success(request)

    def _get_epoch_cache(self, _channel: Channel, request: Command) -> Command:
        return request.answer(ResponseCode.SYSTEM_ERROR, "this request only for controllerMode ")

    def _view_stats(self, _channel: Channel, request: Command) -> Command:
        header = decode_header(headers.ViewBrokerStatsDataRequestHeader, request.ext_fields)
        item = self._broker.stats.item(header.stats_name, header.stats_key)
        if item is None:
            remark = f"The stats <{header.stats_name}> <{header.stats_key}> not exist"
            return request.answer(ResponseCode.SYSTEM_ERROR, remark)
        spans = (self._stats_item(item, span_ms) for span_ms in (MINUTE_MS, HOUR_MS, DAY_MS))
        return success(request, None, BrokerStatsData(*spans))

    def _stats_item(self, item: StatsItem, span_ms: int) -> BrokerStatsItem:
        snapshot = item.snapshot(span_ms, self._broker.host.clock.now_ms())
        return BrokerStatsItem(snapshot.sum, snapshot.tps, snapshot.avgpt)


def ha_runtime_info(broker: BrokerContext, ha: HaService, master_flushed_offset: int) -> HARuntimeInfo:
    """The links of a master to its slaves, or the link of a slave to its master."""
    end = broker.store.max_commit_log_offset
    if broker.broker_id != MASTER_ID:
        client = HAClientRuntimeInfo(
            ha.master_address, max_offset=end, master_flush_offset=master_flushed_offset, activated=ha.is_linked
        )
        return HARuntimeInfo(False, 0, 0, (), client)
    limit = broker.config.ha_max_gap_not_in_sync
    links = tuple(
        HAConnectionRuntimeInfo(address, ack, end - ack, end - ack < limit, 0, ack) for address, ack in ha.acks
    )
    in_sync = sum(link.in_sync for link in links)
    return HARuntimeInfo(True, end, in_sync, links, HAClientRuntimeInfo())


_CONSUMERS, _ERROR_PERCENT = "expectConsumerNumUseFilter", "maxErrorRateOfBloomFilter"
_BITS = "bitMapLengthConsumeQueueExt"
_DIGITS = 10
"""Of the largest int."""


def as_started(fields: Mapping[str, str]) -> Mapping[str, str]:
    """The fields with what a broker computes when it starts: the bits of the filter of each message.

    Args:
        fields: Mapping field -> value, of the fields of RocketMQ's classes that are not emulated, and of what the
            broker's file sets in addition.

    Mirrors:
        `org.apache.rocketmq.broker.filter.ConsumerFilterManager`, `org.apache.rocketmq.filter.util.BloomFilter`.
    """
    texts = fields.get(_CONSUMERS, ""), fields.get(_ERROR_PERCENT, "")
    if not all(text.isascii() and text.isdigit() and len(text) < _DIGITS for text in texts):
        return fields
    consumers, error_percent = map(int, texts)
    if consumers < 1 or not 1 <= error_percent < 100:
        return fields  # the broker does not start
    bits = math.ceil(consumers * math.log2(100 / error_percent) * math.log2(math.e))
    return {**fields, _BITS: str(8 * math.ceil(bits / 8))}
