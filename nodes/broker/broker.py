"""A broker process: how its parts start, and how they stop."""

import trio

from nodes.beliefs import Lifecycle, LifecycleEvent
from nodes.broker.assembly import BrokerParts
from nodes.broker.broker_setup import BrokerSetup
from nodes.broker.group.dledger_replica import ElectedRole
from nodes.broker.shared import Master, Shared
from nodes.broker.tables.group.replica_role import ReplicaRole
from nodes.broker.tables.store.multi_dispatch import DispatchFailedError
from nodes.config import BrokerConfig
from nodes.host import Host
from nodes.live_config import with_stored_changes


class Broker:
    """One broker.

    Args:
        shared: what it shares with the other brokers of a container; None: it is in none.

    Mirrors:
        `org.apache.rocketmq.broker.BrokerController`.
    """

    def __init__(self, host: Host, config: BrokerConfig, setup: BrokerSetup, shared: Shared | None = None) -> None:
        self._host = host
        self._shared = shared
        self._stopping = trio.Event()
        self.tables = setup.tables(host, with_stored_changes(host.disk, config), in_container=shared is not None)
        self.context = self.tables.core
        self.parts = parts = BrokerParts(self.tables, setup, shared)
        self.master = Master(parts.messages.log, parts.messages.send_back.send_back_from)
        """This broker, if it is a master, as slaves in its container use it."""
        self._server = parts.clients.server
        self._server.serve(*(parts.static_topics.around(part.handlers()) for part in parts.in_order))

    @property
    def replica_role(self) -> ReplicaRole | ElectedRole | None:
        """Its role as an election decided it; None: it is fixed."""
        return None if self.parts.elected is None else self.parts.elected.role

    async def main(self) -> None:
        """Load the files, serve, register; then wait for the stop and shut down. Without its log it ends at once."""
        try:
            self._load()
        except DispatchFailedError as error:
            self._host.record(Lifecycle.start_failed(error))
            return
        for part in self.parts.in_order:
            await part.start()
        self._host.record(Lifecycle(LifecycleEvent.READY))
        await self._stopping.wait()
        await self._shutdown()

    def request_shutdown(self) -> None:
        """Start the orderly shutdown."""
        self._stopping.set()

    def _load(self) -> None:
        """Load the log, then what parts read; then write that down."""
        self.context.store.load()
        for part in self.parts.in_order:
            part.load()
        for part in self.parts.in_order:
            part.persist()
        self.context.versions.believe()

    async def _shutdown(self) -> None:
        """Stop the parts, and write down what they leave."""
        for part in self.parts.in_order_of_stop:
            await part.stop()
        if self._shared is None:
            self.parts.group.client.close_all()
        for part in self.parts.in_order:
            part.persist()
