"""Heartbeats of a client instance, to all brokers in turn or to one; never two rounds at once."""

from collections.abc import Callable, Mapping

import attrs
import trio

from nodes.config import ClientConfig
from nodes.host import Host
from nodes.protocol import headers
from nodes.protocol.codes import RequestCode
from nodes.protocol.java import as_int, java_hash
from nodes.protocol.json_text import to_json
from nodes.protocol.model import MASTER_ID, HeartbeatData
from nodes.protocol.registry import decode_header, encode_body
from nodes.rpc.client import RpcClient
from nodes.rpc.errors import BrokerError, RemotingError
from nodes.rpc.typed import invoke, succeeded
from nodes.values import frozen


@frozen
class _Heartbeat:
    """A heartbeat in both forms, with and without subscriptions."""

    data: HeartbeatData
    complete: bytes
    without_sub: bytes = b""


class Heartbeats:
    """The heartbeats of one instance.

    Args:
        brokers: returns the brokers that get heartbeats: brokerName -> broker id -> address.
        data_of: returns the present content.

    Mirrors:
        `MQClientInstance#sendHeartbeatToAllBrokerWithLock`, `#sendHeartbeatToAllBrokerWithLockV2`,
        `#sendHeartbeatToBroker`.
    """

    def __init__(
        self,
        host: Host,
        config: ClientConfig,
        rpc: RpcClient,
        brokers: Callable[[], Mapping[str, Mapping[int, str]]],
        data_of: Callable[[], HeartbeatData],
    ) -> None:
        self._host = host
        self._config = config
        self._rpc = rpc
        self._brokers = brokers
        self._data_of = data_of
        self._lock = trio.Lock()
        self._supports_v2: dict[str, None] = {}
        self._fingerprints: dict[str, int] = {}
        """Address -> fingerprint of the last heartbeat with subscriptions."""

    @property
    def are_being_sent(self) -> bool:
        """Whether heartbeats are being sent now, so no other can be."""
        return self._lock.locked()

    async def send_to_all(self, *, is_rebalance: bool = False) -> bool:
        """Send heartbeats to all brokers, one after the other.

        Args:
            is_rebalance: after a change of queues; then subscriptions are included.

        Returns:
            False only if heartbeats are being sent already or no broker is known;
            True even if no broker answered.
        """
        try:
            self._lock.acquire_nowait()
        except trio.WouldBlock:
            return False
        try:
            brokers = self._brokers()
            heartbeat = self._encoded() if brokers else None
            if heartbeat is None:
                return False
            if is_rebalance:
                self._fingerprints.clear()
            for name, addrs in sorted(brokers.items()):
                for broker_id, address in addrs.items():
                    if heartbeat.data.consumer_data_set or broker_id == MASTER_ID:
                        await self._send(name, address, heartbeat)
            return True
        finally:
            self._lock.release()

    async def send_to_one(self, broker_name: str, address: str) -> bool:
        """Send a heartbeat to one broker, unless heartbeats are being sent; returns whether it answered.

        RocketMQ never releases the lock if there is nothing to send; that cannot happen once a member has started.
        """
        try:
            self._lock.acquire_nowait()
        except trio.WouldBlock:
            return False
        try:
            heartbeat = self._encoded()
            return heartbeat is not None and await self._send(broker_name, address, heartbeat)
        finally:
            self._lock.release()

    def _encoded(self) -> _Heartbeat | None:
        data = self._data_of()
        if not data.consumer_data_set and not data.producer_data_set:
            return None
        if not self._config.use_heartbeat_v2:
            return _Heartbeat(data, encode_body(data))
        data = attrs.evolve(data, heartbeat_fingerprint=heartbeat_fingerprint(data))
        return _Heartbeat(data, encode_body(data), encode_body(_without_sub(data)))

    async def _send(self, broker_name: str, address: str, heartbeat: _Heartbeat) -> bool:
        fingerprint = heartbeat.data.heartbeat_fingerprint
        is_known = address in self._supports_v2 and self._fingerprints.get(address) == fingerprint
        body = heartbeat.without_sub if is_known and self._config.use_heartbeat_v2 else heartbeat.complete
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

    def _learn(self, address: str, fingerprint: int, answer_header: headers.HeartbeatResponseHeader) -> None:
        """Store the fingerprint; if the broker had another one for the group, the next heartbeat is complete, too."""
        if answer_header.is_sub_change:
            self._fingerprints.pop(address, None)
        elif answer_header.is_support_heart_beat_v2:
            self._fingerprints[address] = fingerprint
        if answer_header.is_support_heart_beat_v2:
            self._supports_v2[address] = None


def heartbeat_fingerprint(data: HeartbeatData) -> int:
    """The hash that identifies subscriptions to a broker, without client id and versions.

    With several groups in one instance RocketMQ's hash differs each time, because it depends on addresses of objects;
    ours does not.

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
