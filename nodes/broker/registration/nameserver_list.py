"""The list of nameservers of a broker, which may change while it runs: its option, a domain name, an address server."""

from nodes.broker.context import BrokerContext
from nodes.broker.part import Part
from nodes.config import BrokerConfig
from nodes.config.nameserver import is_domain_name, nameserver_addresses
from nodes.host import Host
from nodes.rpc.nameservers import Nameservers
from nodes.rpc.top_addressing import TopAddressing
from nodes.threads import ScheduledThread
from nodes.units import NS_PER_MS

_INITIAL_DELAY_MS = 10_000
_FETCH_INITIAL_DELAY_MS = _INITIAL_DELAY_MS - 1
"""It is scheduled while the broker initializes, and registrations when it starts, a little later."""


def nameservers_of(host: Host, config: BrokerConfig) -> tuple[str, ...]:
    """The addresses that the option `namesrvAddr` stands for now; empty: none, or its domain name is unknown.

    Mirrors:
        `org.apache.rocketmq.broker.out.BrokerOuterAPI#dnsLookupAddressByDomain`.
    """
    listed = nameserver_addresses(config.namesrv_addr)
    if not config.fetch_name_srv_addr_by_dns_lookup:
        return listed
    named = (item.rpartition(":") for item in listed[:1])
    return tuple(
        f"{ip}:{port}" for name, _, port in named for ip in (host.lookup(name) if is_domain_name(name) else (name,))
    )


class NameserverList(Part):
    """Takes the nameservers over that `namesrvAddr`, or without it the address server, lists at an instant.

    The option counts at the start, and at the end of each `updateNameServerAddrPeriod`, the first of which is over 10 s
    after the start; the first fetch from the address server comes as late. The thread of registrations fetches, just
    before the first registration of its period.

    The broker then registers with the new nameservers with its next registration, and with those that are gone no more:
    they forget it when its connection has been idle for too long. It does not unregister from them.

    Args:
        nameservers: in use; None: they are those of a container, which its brokers do not change.
        thread: that of registrations.

    Mirrors:
        `org.apache.rocketmq.broker.BrokerController#initializeScheduledTasks`, `#updateNamesrvAddr`.
    """

    def __init__(self, broker: BrokerContext, nameservers: Nameservers | None, thread: ScheduledThread) -> None:
        self._broker = broker
        self._nameservers = nameservers
        self._period_ms = broker.config.update_name_server_addr_period
        self._started_ns = broker.host.clock.monotonic_ns()
        self._waits = False
        """Whether a look at the option is scheduled: none is as long as nothing can have changed."""
        self._addressing: TopAddressing | None = None
        """None: `namesrvAddr` was given at the start, or nothing is to be fetched."""
        config = broker.config
        if nameservers is not None and config.fetch_namesrv_addr_by_address_server and not config.namesrv_addr:
            self._addressing = TopAddressing(broker.host, nameservers)
            thread.at_fixed_rate(
                "fetchNameServerAddr", self._fetch, _FETCH_INITIAL_DELAY_MS, config.fetch_namesrv_addr_interval
            )

    async def start(self) -> None:
        """Begin the periods."""
        self._started_ns = self._broker.host.clock.monotonic_ns()
        self._look_later()

    def on_config_changed(self) -> None:
        """An operator has changed options: a new list is taken over at the end of this period."""
        self._look_later()

    def _look_later(self) -> None:
        if self._waits or self._addressing is not None or self._nameservers is None:
            return
        if self._new_addresses() is None and not self._broker.config.fetch_name_srv_addr_by_dns_lookup:
            return
        passed_ms = (self._broker.host.clock.monotonic_ns() - self._started_ns) / NS_PER_MS - _INITIAL_DELAY_MS
        left_ms = -passed_ms if passed_ms < 0 else self._period_ms - passed_ms % self._period_ms
        self._waits = True
        self._broker.host.call_later_ms(left_ms, self._look)

    def _look(self) -> None:
        self._waits = False
        addresses = self._new_addresses()
        if addresses is not None and self._nameservers is not None:
            self._broker.host.begin_cause("updateNamesrvAddr")
            self._broker.nameservers = addresses
            self._nameservers.update(addresses)
        self._look_later()

    def _new_addresses(self) -> tuple[str, ...] | None:
        addresses = nameservers_of(self._broker.host, self._broker.config)
        return addresses if addresses and addresses != self._broker.nameservers else None

    async def _fetch(self) -> None:
        addresses = () if self._addressing is None else await self._addressing.fetch()
        if addresses:
            self._broker.nameservers = addresses
