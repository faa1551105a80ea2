"""A broker as operators see and change it as a whole."""

from collections.abc import Callable

from nodes.broker.broker_stats import DAY_MS, HOUR_MS, MINUTE_MS, StatsItem
from nodes.broker.context import BrokerContext
from nodes.broker.ha_runtime_info import ha_runtime_info
from nodes.broker.ha_service import HaService
from nodes.broker.registration import Registration
from nodes.broker.runtime_info import prepare_runtime_info
from nodes.cause import cause
from nodes.config import BrokerConfig
from nodes.config_options import ConfigError
from nodes.config_text import to_lines
from nodes.host import Channel
from nodes.live_config import LiveConfig
from nodes.protocol import headers_admin as headers
from nodes.protocol.bodies import KvTable
from nodes.protocol.bodies_admin import BrokerStatsData, BrokerStatsItem
from nodes.protocol.codes import RequestCode, ResponseCode
from nodes.protocol.command import Command
from nodes.protocol.json_text import to_json
from nodes.protocol.registry import decode_header
from nodes.rpc.server import RpcServer
from nodes.rpc.typed import success

_CLEANING = (
    RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE,
    RequestCode.DELETE_EXPIRED_COMMITLOG,
    RequestCode.CLEAN_UNUSED_TOPIC,
)
"""Files that the emulated store does not have."""


class AdminBroker:
    """Tells how a broker is, and changes its options while it runs.

    Args:
        is_special_service_running: whether it runs what only one member of its group may.

    Mirrors:
        `org.apache.rocketmq.broker.processor.AdminBrokerProcessor#getBrokerRuntimeInfo`, `#getBrokerConfig`,
        `#updateBrokerConfig`, `#getBrokerHaStatus`, `#getBrokerEpochCache`, `#ViewBrokerStatsData`.
    """

    def __init__(
        self,
        broker: BrokerContext,
        server: RpcServer,
        registration: Registration,
        ha: HaService,
        is_special_service_running: Callable[[], bool],
    ) -> None:
        self._broker = broker
        self._registration = registration
        self._ha = ha
        self._is_special_service_running = is_special_service_running
        self._started_ms = broker.host.clock.now_ms()
        self._config = LiveConfig(broker.host, broker.config, self._apply)
        server.register(RequestCode.GET_BROKER_RUNTIME_INFO, self._get_runtime_info)
        server.register(RequestCode.GET_BROKER_CONFIG, self._get_config)
        server.register(RequestCode.UPDATE_BROKER_CONFIG, self._update_config)
        server.register(RequestCode.GET_BROKER_HA_STATUS, self._get_ha_status)
        server.register(RequestCode.GET_BROKER_EPOCH_CACHE, self._get_epoch_cache)
        server.register(RequestCode.VIEW_BROKER_STATS_DATA, self._view_stats)
        for code in _CLEANING:
            server.register(code, _nothing_to_clean)

    def _get_runtime_info(self, _channel: Channel, request: Command) -> Command:
        running = self._is_special_service_running()
        table = prepare_runtime_info(self._broker, special_service_running=running, started_ms=self._started_ms)
        return success(request, None, KvTable(table))

    def _get_config(self, _channel: Channel, request: Command) -> Command:
        version = headers.GetBrokerConfigResponseHeader(to_json(self._config.data_version))
        broker = self._broker
        who = {
            "brokerClusterName": broker.cluster_name,
            "brokerName": broker.broker_name,
            "brokerId": broker.broker_id,
            "brokerIP1": broker.host.ip,
            "namesrvAddr": ";".join(broker.nameservers),
        }
        return success(request, version, to_lines(self._config.values() | who).encode())

    def _apply(self, config: BrokerConfig) -> None:
        self._broker.config = config

    def _update_config(self, _channel: Channel, request: Command) -> Command:
        try:
            changed = self._config.update((request.body or b"").decode(errors="replace"))
        except PermissionError as error:
            return request.answer(ResponseCode.NO_PERMISSION, str(error))
        except (ConfigError, ValueError) as error:
            return request.answer(ResponseCode.SYSTEM_ERROR, str(error))
        if "brokerPermission" in changed:
            self._broker.topics.step_version(now_ms=self._broker.host.clock.now_ms())
            self._broker.versions.believe()
            self._broker.host.start_soon(self._register, cause.get(), name="registerBrokerAll")
        return success(request)

    async def _register(self, began: int) -> None:
        cause.set(began)
        await self._registration.register_all(force=True)

    def _get_ha_status(self, _channel: Channel, request: Command) -> Command:
        return success(request, None, ha_runtime_info(self._broker, self._ha))

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


def _nothing_to_clean(_channel: Channel, request: Command) -> Command:
    return success(request)
