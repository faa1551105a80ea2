"""The handles that a proxy holds for its clients; 5.3.3 never renews them, 5.4.0 does.

Mirrors:
    `org.apache.rocketmq.proxy.service.receipt.DefaultReceiptHandleManager`,
    `org.apache.rocketmq.proxy.processor.ReceiptHandleProcessor`.
"""

from collections.abc import Hashable
from functools import partial

from nodes.beliefs import Belief, BeliefKind
from nodes.config.proxy import ProxyConfig
from nodes.host import Host
from nodes.protocol.v2.enums import Code
from nodes.proxy.client_manager import ClientManager
from nodes.proxy.consumer_processor import ConsumerProcessor
from nodes.proxy.grpc_channels import GrpcClientChannel
from nodes.proxy.metadata_service import MetadataService
from nodes.proxy.tables.errors import CallError
from nodes.proxy.tables.receipt_handle import (
    GroupKey,
    MessageReceiptHandle,
    ReceiptHandle,
    ReceiptHandles,
    decode_receipt_handle,
)
from nodes.proxy.tables.settings import RETRY_BACKOFF_S
from nodes.threads import ScheduledThread

RENEW_DELAYS_MS = (60_000, 180_000, 300_000, 600_000, 1_800_000, 3_600_000)
"""How long a message is hidden by its first, second, ... renewal (`RenewStrategyPolicy`)."""
_FIRST_DELAY_MS = 0
_MS_PER_S = 1_000
_FIRST_RETRY = 2
"""The place in the policy of a group of the delay after the first delivery (`CustomizedRetryPolicy`)."""
_RECORD_PERIOD_MS = 1_000
_NOT_RETRIED = (Code.BAD_REQUEST, Code.INVALID_RECEIPT_HANDLE)


class ReceiptHandleManager:
    """Handles of receives with `auto_renew`, until the client answers or leaves.

    Emits:
        RECEIPT_HANDLES whenever a client has more or fewer, once a second at most.
    """

    def __init__(
        self, host: Host, config: ProxyConfig, metadata: MetadataService, consumers: ConsumerProcessor
    ) -> None:
        self._host = host
        self._config = config
        self._metadata = metadata
        self._consumers = consumers
        self._handles = ReceiptHandles()
        self._believed: dict[GroupKey, int] = {}
        """What was recorded last, of clients that have held messages."""
        self._waits_to_record: dict[GroupKey, None] = {}
        self._scheduler = ScheduledThread(host, "RenewalScheduledThread")

    def start(self, clients: ClientManager) -> None:
        """Start to renew handles, if this release does."""
        if not self._config.renews_receipt_handles:
            return

        async def renew() -> None:
            await self._renew_all(clients)

        period_ms = self._config.renew_schedule_period_millis
        self._scheduler.with_fixed_delay("scheduleRenewTask", renew, _FIRST_DELAY_MS, period_ms)
        self._scheduler.start()

    async def shutdown(self) -> None:
        """Give all messages back, if this release renews handles; 5.3.3 lets them wait out their time."""
        if not self._config.renews_receipt_handles:
            return
        self._scheduler.stop()
        for key in self._handles.owners():
            await self._clear(key)

    def add(self, channel: GrpcClientChannel, handle: MessageReceiptHandle) -> None:
        """Hold the handle of a message that a client receives."""
        self._handles.add((channel, handle.group), handle)
        self._changed((channel, handle.group))

    def remove(
        self, channel: Hashable | None, group: str, message_id: str, handle: ReceiptHandle
    ) -> MessageReceiptHandle | None:
        """Let a handle go that a client answers; returns it as it is now, None: this proxy does not hold it."""
        held = self._handles.remove((channel, group), message_id, handle)
        if held is not None:
            self._changed((channel, group))
        return held

    def on_left(self, channel: GrpcClientChannel, group: str) -> None:
        """Give the messages of a client back that has left."""
        self._host.start_soon(self._clear, (channel, group), name="ReceiptHandleProcessor")

    async def _clear(self, key: GroupKey) -> None:
        handles = self._handles.clear(key)
        self._changed(key)
        for handle in handles:
            await self._change(handle, self._config.invisible_time_millis_when_clear)

    async def _change(self, handle: MessageReceiptHandle, invisible_ms: int) -> str | None:
        """Hide a message from now on; returns its new handle, None: the broker refuses, or does not answer."""
        try:
            present = decode_receipt_handle(handle.text)
            return await self._consumers.change_invisible_time(present, handle.group, handle.topic, invisible_ms)
        except CallError as error:
            self._host.log.warning("a handle was not changed", message_id=handle.message_id, error=str(error))
            return None

    def _changed(self, key: GroupKey) -> None:
        if key not in self._waits_to_record:
            self._record(key)

    def _record(self, key: GroupKey) -> None:
        """Record how many there are if that is news, and again after a second."""
        self._waits_to_record.pop(key, None)
        held = self._handles.count(key)
        if self._believed.get(key) == held:
            return
        self._believed.pop(key, None)
        if held is not None:
            self._believed[key] = held
        channel, group = key
        assert isinstance(channel, GrpcClientChannel)
        self._host.record(Belief(BeliefKind.RECEIPT_HANDLES, f"{group}/{channel.client_id}", held))
        self._waits_to_record[key] = None
        self._host.call_later_ms(_RECORD_PERIOD_MS, partial(self._record, key))

    # --- renewal (5.4.0) ----------------------------------------------------------------

    async def _renew_all(self, clients: ClientManager) -> None:
        now_ms = self._host.clock.now_ms()
        for key in self._handles.owners():
            channel, group = key
            known = clients.consumers.group(group)
            if known is None or channel not in known.channels:
                await self._clear(key)
                continue
            for handle in self._handles.of(key):
                left_ms = decode_receipt_handle(handle.text).next_visible_time_ms - now_ms
                if left_ms <= self._config.renew_ahead_time_millis and not handle.is_renewing:
                    handle.is_renewing = True
                    self._host.start_soon(self._renew, key, handle, name="RenewalWorkerThread")

    async def _renew(self, key: GroupKey, handle: MessageReceiptHandle) -> None:
        try:
            if not await self._renewed(handle) and self._handles.holds(key, handle):
                self._handles.remove(key, handle.message_id, handle.original)
                self._changed(key)
        finally:
            handle.is_renewing = False

    async def _renewed(self, handle: MessageReceiptHandle) -> bool:
        """Renew a handle; returns whether the proxy holds it further."""
        if handle.renew_retry_times >= self._config.max_renew_retry_times:
            return False
        if self._host.clock.now_ms() - handle.consumed_ms >= self._config.renew_max_time_millis:
            await self._stop_renewing(handle)
            return False
        delay_ms = RENEW_DELAYS_MS[min(handle.renew_times, len(RENEW_DELAYS_MS) - 1)]
        try:
            present = decode_receipt_handle(handle.text)
            text = await self._consumers.change_invisible_time(present, handle.group, handle.topic, delay_ms)
        except CallError as error:
            self._host.log.warning("a handle was not renewed", message_id=handle.message_id, error=str(error))
            handle.renew_retry_times += 1
            return error.code not in _NOT_RETRIED
        if text is None:
            return False
        handle.text = text
        handle.renew_retry_times = 0
        handle.renew_times += 1
        return True

    async def _stop_renewing(self, handle: MessageReceiptHandle) -> None:
        """Hide a message as after a failure of its listener; then its time ends."""
        if await self._metadata.subscription_group_config(handle.group) is None:
            return
        delay_s = RETRY_BACKOFF_S[min(handle.reconsume_times + _FIRST_RETRY, len(RETRY_BACKOFF_S) - 1)]
        await self._change(handle, delay_s * _MS_PER_S)
