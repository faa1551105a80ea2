"""How a client instance tells brokers that it lives: everybody in turn, or one alone, never twice at once."""

from collections.abc import Callable

import attrs
import trio

from nodes.client.routes import ClientRoutes
from nodes.config import ClientConfig
from nodes.host import Host
from nodes.protocol import headers
from nodes.protocol.codes import RequestCode
from nodes.protocol.java_order import as_int, java_hash
from nodes.protocol.json_text import to_json
from nodes.protocol.model import MASTER_ID, HeartbeatData
from nodes.protocol.registry import decode_header, encode_body
from nodes.rpc.client import RpcClient
from nodes.rpc.errors import RemotingError
from nodes.rpc.typed import BrokerError, invoke, succeeded


@attrs.frozen
class _Told:
    """A heartbeat, whole and without subscriptions."""

    data: HeartbeatData
    whole: bytes
    without_sub: bytes = b""


class Heartbeats:
    """The heartbeats of one instance.

    Args:
        data_of: what there is to tell now.

    Mirrors:
        `MQClientInstance#sendHeartbeatToAllBrokerWithLock`, `#sendHeartbeatToAllBrokerWithLockV2`,
        `#sendHeartbeatToBroker`.
    """

    def __init__(
        self,
        host: Host,
        config: ClientConfig,
        rpc: RpcClient,
        routes: ClientRoutes,
        data_of: Callable[[], HeartbeatData],
    ) -> None:
        self._host = host
        self._config = config
        self._rpc = rpc
        self._routes = routes
        self._data_of = data_of
        self._lock = trio.Lock()
        self._supports_v2: dict[str, None] = {}
        self._fingerprints: dict[str, int] = {}
        """Address -> what the broker there has heard whole."""

    async def tell_all(self, *, is_rebalance: bool = False) -> bool:
        """Tell every known broker, one after the other.

        Args:
            is_rebalance: because queues changed: then everybody gets it whole.

        Returns:
            False only if a heartbeat is under way already or no broker is known;
            True also if not a single broker answered.
        """
        try:
            self._lock.acquire_nowait()
        except trio.WouldBlock:
            return False
        try:
            told = self._told() if self._routes.brokers else None
            if told is None:
                return False
            if is_rebalance:
                self._fingerprints.clear()
            for name, addrs in sorted(self._routes.brokers.items()):
                for broker_id, address in addrs.items():
                    if told.data.consumer_data_set or broker_id == MASTER_ID:
                        await self._tell(name, address, told)
            return True
        finally:
            self._lock.release()

    async def tell_one(self, broker_name: str, address: str) -> bool:
        """Tell one broker, unless a heartbeat is under way; returns whether it answered.

        RocketMQ keeps the lock for ever where there is nothing to tell; that cannot be once a member has started.
        """
        try:
            self._lock.acquire_nowait()
        except trio.WouldBlock:
            return False
        try:
            told = self._told()
            return told is not None and await self._tell(broker_name, address, told)
        finally:
            self._lock.release()

    def _told(self) -> _Told | None:
        data = self._data_of()
        if not data.consumer_data_set and not data.producer_data_set:
            return None
        if not self._config.use_heartbeat_v2:
            return _Told(data, encode_body(data))
        data = attrs.evolve(data, heartbeat_fingerprint=heartbeat_fingerprint(data))
        return _Told(data, encode_body(data), encode_body(_without_sub(data)))

    async def _tell(self, broker_name: str, address: str, told: _Told) -> bool:
        fingerprint = told.data.heartbeat_fingerprint
        is_known = address in self._supports_v2 and self._fingerprints.get(address) == fingerprint
        body = told.without_sub if is_known and self._config.use_heartbeat_v2 else told.whole
        timeout_ms = self._config.mq_client_api_timeout
        try:
            answer = succeeded(
                await invoke(self._rpc, address, RequestCode.HEART_BEAT, None, body, timeout_ms=timeout_ms)
            )
        except (RemotingError, BrokerError) as error:
            self._host.log.warning("heartbeat failed", broker=broker_name, error=str(error))
            return False
        if self._config.use_heartbeat_v2:
            self._learn(address, fingerprint, decode_header(headers.HeartbeatResponseHeader, answer.ext_fields))
        return True

    def _learn(self, address: str, fingerprint: int, heard: headers.HeartbeatResponseHeader) -> None:
        """A broker that saw another hash for the group before gets the next heartbeat whole, too."""
        if heard.is_sub_change:
            self._fingerprints.pop(address, None)
        elif heard.is_support_heart_beat_v2:
            self._fingerprints[address] = fingerprint
        if heard.is_support_heart_beat_v2:
            self._supports_v2[address] = None


def heartbeat_fingerprint(data: HeartbeatData) -> int:
    """The hash by which a broker knows subscriptions: who tells, and when they last changed, does not count.

    With several groups in one instance RocketMQ's hash is another one each time, for it depends on where objects lie
    in memory; ours is not.

    Mirrors:
        `org.apache.rocketmq.remoting.protocol.heartbeat.HeartbeatData#computeHeartbeatFingerprint`.
    """
    consumers = tuple(
        attrs.evolve(
            consumer,
            subscription_data_set=tuple(attrs.evolve(each, sub_version=0) for each in consumer.subscription_data_set),
        )
        for consumer in data.consumer_data_set
    )
    plain = attrs.evolve(data, client_id="", heartbeat_fingerprint=0, consumer_data_set=consumers)
    return as_int(java_hash(to_json(plain)))


def _without_sub(data: HeartbeatData) -> HeartbeatData:
    consumers = tuple(attrs.evolve(consumer, subscription_data_set=()) for consumer in data.consumer_data_set)
    return attrs.evolve(data, consumer_data_set=consumers, without_sub=True)
