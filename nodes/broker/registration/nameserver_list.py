"""The list of nameservers of a broker, which may change while it runs: its option, a domain name, an address server."""

from nodes.broker.context import BrokerContext
from nodes.broker.part import Part
from nodes.config import BrokerConfig
from nodes.config.nameserver import is_domain_name, nameserver_addresses
from nodes.host import Host
from nodes.rpc.nameservers import Nameservers, TopAddressing
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
    after the start; the first fetch from the address server comes as late, on the thread of registrations.

    Questions go to the new nameservers at once. Registrations go to those that the last scan for available nameservers
    has found, which is made every `connectTimeoutMillis` (3 s): that of the same instant still has the old list, and a
    broker without a list registers 40 s after its start. It does not unregister from those that are gone. The one that
    it asked so far forgets it at once, since its connection is closed; another one does when the connection has been
    idle for 120 s.

    Args:
        nameservers: in use; None: they are those of a container, which its brokers do not change.
        thread: that of registrations.

    Mirrors:
        `org.apache.rocketmq.broker.BrokerController#initializeScheduledTasks`, `#updateNamesrvAddr`,
        `org.apache.rocketmq.remoting.netty.NettyRemotingClient#scanAvailableNameSrv`.
    """

    def __init__(self, broker: BrokerContext, nameservers: Nameservers | None, thread: ScheduledThread) -> None:
        self._broker = broker
        self._nameservers = nameservers
        self._period_ms = broker.config.update_name_server_addr_period
        self._started_ns = broker.host.clock.monotonic_ns()
        self._listed = broker.nameservers
        """The last list."""
        self._waits = False
        """Whether a look at the option is scheduled: none is as long as nothing can have changed."""
        self._addressing: TopAddressing | None = None
        """None: `namesrvAddr` was given at the start, or nothing is to be fetched."""
        config = broker.config
        if nameservers is not None and config.fetch_namesrv_addr_by_address_server and not config.namesrv_addr:
            self._addressing = TopAddressing(broker.host)
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
        self._broker.host.begin_cause("updateNamesrvAddr")
        self._use(self._new_addresses() or ())
        self._look_later()

    async def _fetch(self) -> None:
        if self._addressing is not None:
            self._use(await self._addressing.fetch())

    def _new_addresses(self) -> tuple[str, ...] | None:
        addresses = nameservers_of(self._broker.host, self._broker.config)
        return addresses if addresses and addresses != self._listed else None

    def _use(self, addresses: tuple[str, ...]) -> None:
        """Ask other nameservers from now on, and register with them from the next scan on; empty: nothing changes."""
        if not addresses or self._nameservers is None:
            return
        if self._listed:
            # RocketMQ asks for the cluster every 5 s (refreshMetadata), which is not emulated: so one is in use.
            self._nameservers.choose()
        self._nameservers.update(addresses)
        self._listed = addresses
        passed_ms = (self._broker.host.clock.monotonic_ns() - self._started_ns) / NS_PER_MS
        period_ms = self._broker.config.connect_timeout_millis
        self._broker.host.call_later_ms(period_ms - passed_ms % period_ms, self._scan_available)

    def _scan_available(self) -> None:
        self._broker.nameservers = self._listed
