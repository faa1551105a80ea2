"""The list of nameservers of a broker, which an operator may change while it runs."""

from nodes.broker.context import BrokerContext
from nodes.broker.part import Part
from nodes.config.nameserver import nameserver_addresses
from nodes.rpc.nameservers import Nameservers
from nodes.units import NS_PER_MS

_INITIAL_DELAY_MS = 10_000


class NameserverList(Part):
    """Takes the option `namesrvAddr` over every `updateNameServerAddrPeriod`; the first time 10 s after the start.

    The broker then registers with the new nameservers with its next registration, and with those that are gone no more:
    they forget it when its connection has been idle for too long. It does not unregister from them.

    Args:
        nameservers: in use; None: they are those of a container, which its brokers do not change.

    Mirrors:
        `org.apache.rocketmq.broker.BrokerController#initializeScheduledTasks`, `#updateNamesrvAddr`.
    """

    def __init__(self, broker: BrokerContext, nameservers: Nameservers | None) -> None:
        self._broker = broker
        self._nameservers = nameservers
        self._started_ns = 0

    async def start(self) -> None:
        """Note when the periods begin; nothing is scheduled as long as nothing changes."""
        self._started_ns = self._broker.host.clock.monotonic_ns()

    def on_config_changed(self) -> None:
        """An operator has changed options: a new list is taken over at the end of this period."""
        if self._nameservers is None or self._new_addresses() is None:
            return
        period_ms = self._broker.config.update_name_server_addr_period
        passed_ms = (self._broker.host.clock.monotonic_ns() - self._started_ns) / NS_PER_MS - _INITIAL_DELAY_MS
        left_ms = -passed_ms if passed_ms < 0 else period_ms - passed_ms % period_ms
        self._broker.host.call_later_ms(left_ms, self._update)

    def _update(self) -> None:
        addresses = self._new_addresses()
        if addresses is not None and self._nameservers is not None:
            self._broker.host.begin_cause("updateNamesrvAddr")
            self._broker.nameservers = addresses
            self._nameservers.update(addresses)

    def _new_addresses(self) -> tuple[str, ...] | None:
        addresses = nameserver_addresses(self._broker.config.namesrv_addr)
        return addresses if addresses and addresses != self._broker.nameservers else None
