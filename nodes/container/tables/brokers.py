"""The brokers of a container, masters and slaves apart, in the order in which Java's hash tables iterate them."""

from collections.abc import Iterator
from typing import Generic, TypeVar

from nodes.protocol.java import as_int, bucket_of, java_hash
from nodes.protocol.model import MASTER_ID
from nodes.values import frozen

B = TypeVar("B")
_BUCKETS = 16
_SEED, _FACTOR = 17, 37


@frozen
class BrokerOfContainer:
    """Who a broker is.

    Mirrors:
        `org.apache.rocketmq.common.BrokerIdentity`.
    """

    cluster_name: str
    broker_name: str
    broker_id: int

    @property
    def canonical_name(self) -> str:
        """`DefaultCluster_broker-a_0`."""
        return f"{self.cluster_name}_{self.broker_name}_{self.broker_id}"

    def java_hash(self) -> int:
        """Its hash in Java, which decides its place in a table."""
        high_and_low = as_int(self.broker_id ^ self.broker_id >> 32)
        hashed = _SEED
        for part in (java_hash(self.broker_name), java_hash(self.cluster_name), high_and_low):
            hashed = hashed * _FACTOR + part
        return as_int(hashed)


class AlreadyAddedError(Exception):
    """The container has a broker of this identity."""


class BrokerTable(Generic[B]):
    """Mapping identity -> broker, iterated as `java.util.concurrent.ConcurrentHashMap` does."""

    def __init__(self) -> None:
        self._brokers: dict[BrokerOfContainer, B] = {}

    def __len__(self) -> int:
        return len(self._brokers)

    def put(self, identity: BrokerOfContainer, broker: B) -> None:
        """Add a broker, or replace it in its place."""
        self._brokers[identity] = broker

    def get(self, identity: BrokerOfContainer) -> B | None:
        """The broker of an identity."""
        return self._brokers.get(identity)

    def remove(self, identity: BrokerOfContainer) -> B | None:
        """Remove a broker; None: there is none."""
        return self._brokers.pop(identity, None)

    def items(self) -> Iterator[tuple[BrokerOfContainer, B]]:
        """(identity, broker) in the order of the table."""
        buckets = _BUCKETS
        while len(self._brokers) >= buckets * 3 // 4:
            buckets *= 2
        yield from sorted(self._brokers.items(), key=lambda item: bucket_of(item[0].java_hash() & 0xFFFFFFFF, buckets))


class ContainerBrokers(Generic[B]):
    """All brokers of a container.

    Mirrors:
        `org.apache.rocketmq.container.BrokerContainer`, its tables of controllers.
    """

    def __init__(self) -> None:
        self.masters: BrokerTable[B] = BrokerTable()
        self.slaves: BrokerTable[B] = BrokerTable()

    def put(self, identity: BrokerOfContainer, broker: B) -> None:
        """Add a broker, or replace it; its id says whether it is a master."""
        self._table(identity).put(identity, broker)

    def require_new(self, identity: BrokerOfContainer) -> None:
        """Refuse a second broker of an identity.

        Raises:
            AlreadyAddedError: there is one.
        """
        if self.get(identity) is not None:
            raise AlreadyAddedError(f"{identity.canonical_name} has already been added to current broker container")

    def get(self, identity: BrokerOfContainer) -> B | None:
        """A broker; None: there is none."""
        return self._table(identity).get(identity)

    def remove(self, identity: BrokerOfContainer) -> B | None:
        """Remove a broker; None: there is none."""
        return self._table(identity).remove(identity)

    def peek_master(self) -> B | None:
        """The first master of the table, whatever its group, isolated or not; None: there is none."""
        return next((broker for _, broker in self.masters.items()), None)

    def find_by_name(self, broker_name: str) -> tuple[BrokerOfContainer, B] | None:
        """A broker of a name: a master if there is one, else a slave."""
        every = (*self.masters.items(), *self.slaves.items())
        return next((item for item in every if item[0].broker_name == broker_name), None)

    def in_order_of_shutdown(self) -> tuple[tuple[BrokerOfContainer, B], ...]:
        """Slaves, then masters."""
        return (*self.slaves.items(), *self.masters.items())

    def _table(self, identity: BrokerOfContainer) -> BrokerTable[B]:
        return self.masters if identity.broker_id == MASTER_ID else self.slaves
