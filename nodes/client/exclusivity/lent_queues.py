"""Locks of queues at a lock service, as a consumer holds them: what all kinds of lock services have in common."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

import attrs

from nodes.beliefs import Belief, BeliefKind
from nodes.client.instance.client_instance import ClientInstance
from nodes.config import ConsumerConfig
from nodes.protocol.codes import RequestCode
from nodes.protocol.command import Command
from nodes.protocol.model import MessageQueue
from nodes.rpc.client import RpcClient
from nodes.rpc.errors import BrokerError, RemotingError
from nodes.rpc.typed import invoke, invoke_oneway, succeeded
from nodes.threads import ScheduledThread
from nodes.units import NS_PER_MS
from nodes.values import frozen

TIMEOUT_MS = 1_000
"""How long a request to a lock service waits."""


class HeldLock(Protocol):
    """A lock, as the service granted it."""

    @property
    def token(self) -> int | None:
        """Larger than that of every earlier holder; None: the service has no such number."""


H = TypeVar("H", bound=HeldLock)


@frozen
class LockSetup:
    """Whose locks these are."""

    instance: ClientInstance
    config: ConsumerConfig
    group: str
    services: tuple[str, ...]
    """`ip:port` of the nodes of the lock service."""
    on_lost: Callable[[MessageQueue], None]
    """Called with a queue whose lock was held, and is not any more."""


class LentQueues(ABC, Generic[H]):
    """The locks of one consumer; implements `nodes.client.exclusivity.queue_exclusivity.QueueExclusivity`.

    A message that is in process when its lock ends is not interrupted.

    Emits:
        LEASE whenever a lock was granted, released or lost.
    """

    def __init__(self, setup: LockSetup) -> None:
        self._host = setup.instance.host
        self._client_id = setup.instance.client_id
        self._config = setup.config
        self._group = setup.group
        self._services = setup.services
        self._on_lost = setup.on_lost
        # The client of the lock service shares no connection with RocketMQ's.
        self._client = RpcClient(self._host, setup.config, on_channel_closed=self._on_channel_closed)
        self._held: dict[MessageQueue, H] = {}

    # What a kind does

    @abstractmethod
    async def _take(self, queue: MessageQueue) -> H | None:
        """Ask for a lock; None: another consumer has it.

        Raises:
            RemotingError, BrokerError: the service does not answer, or refuses.
        """

    @abstractmethod
    def _is_valid(self, held: H) -> bool:
        """Whether a lock still holds, as far as this consumer can know without asking."""

    @abstractmethod
    async def _look_after(self) -> None:
        """Renew what is held; called periodically."""

    @abstractmethod
    def _give_back(self, queue: MessageQueue, held: H) -> None:
        """Release a lock at the service, without waiting for the answer."""

    def _on_channel_closed(self, address: str) -> None:
        """A connection to the service has ended; most kinds open the next one."""

    # What a consumer asks

    def start(self) -> None:
        """Start to renew."""
        thread = ScheduledThread(self._host, "renewLeases")
        interval_ms = self._config.lease_renew_interval_ms
        thread.at_fixed_rate("renewLeases", self._look_after, interval_ms, interval_ms)
        thread.start()

    async def acquire(self, queue: MessageQueue) -> bool:
        """Ask for the lock of a queue; returns whether it was granted."""
        try:
            held = await self._take(queue)
        except (RemotingError, BrokerError) as error:
            self._host.log.info("no lease", queue=str(queue), error=str(error))
            return False
        if held is not None:
            self._hold(queue, held)
        return held is not None

    def holds(self, queue: MessageQueue) -> bool:
        """Whether the lock of a queue still holds; one that does not is lost."""
        held = self._held.get(queue)
        if held is None:
            return False
        if self._is_valid(held):
            return True
        self.lose(queue)
        return False

    def fencing_token(self, queue: MessageQueue) -> int | None:
        """What pulls and commits of a queue bear; None: nothing."""
        held = self._held.get(queue) if self._config.fencing else None
        return None if held is None else held.token

    def lose(self, queue: MessageQueue) -> None:
        """Stop to hold a lock: it has ended, or a broker has seen the token of a later holder."""
        if self._held.pop(queue, None) is not None:
            self._host.record(Belief(BeliefKind.LEASE, self._key(queue), None))
            self._on_lost(queue)

    def release(self, queue: MessageQueue) -> None:
        """Give a lock back, without waiting for the answer."""
        held = self._held.pop(queue, None)
        if held is not None:
            self._give_back(queue, held)
            self._host.record(Belief(BeliefKind.LEASE, self._key(queue), None))

    def release_all(self) -> None:
        """Give every lock back."""
        for queue in list(self._held):
            self.release(queue)

    # For the kinds

    def _hold(self, queue: MessageQueue, held: H) -> None:
        known = self._held.get(queue)
        self._held[queue] = held
        if known is None or known.token != held.token:
            value = {"holder": self._client_id, "token": held.token}
            self._host.record(Belief(BeliefKind.LEASE, self._key(queue), value, self._services[0]))

    async def _ask(
        self, code: RequestCode, header: "attrs.AttrsInstance | None" = None, service: str | None = None
    ) -> Command:
        """The answer of the service, or of one of its nodes.

        Raises:
            RemotingError, BrokerError: there was none, or it refused.
        """
        address = service or self._services[0]
        return succeeded(await invoke(self._client, address, code, header, timeout_ms=TIMEOUT_MS))

    def _send(self, code: RequestCode, header: "attrs.AttrsInstance", service: str | None = None) -> None:
        """Send a request that nobody waits for."""
        invoke_oneway(self._client, service or self._services[0], code, header)

    def _key(self, queue: MessageQueue) -> str:
        return f"{self._group}/{queue.topic}/{queue.broker_name}/{queue.queue_id}"

    def _elapsed_ms(self) -> int:
        """Milliseconds by the clock of this consumer that never jumps; it goes on while the process is suspended."""
        return self._host.clock.monotonic_ns() // NS_PER_MS
