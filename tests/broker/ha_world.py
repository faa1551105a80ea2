"""Brokers that have a log and an HA service, and nothing else."""

import json
from collections.abc import Awaitable, Callable

import attrs

from emulator.machine.host import EmulatedHost
from emulator.machine.world import World
from emulator.testing.worlds import MS, PORT, ExecutedWorld, RecordingHandler, add_host, process_of
from nodes.broker.context import BrokerContext
from nodes.broker.ha.service import HaService
from nodes.broker.tables.metadata.subscription_groups import SubscriptionGroupManager
from nodes.broker.tables.metadata.topics import TopicConfigManager
from nodes.broker.tables.store.commit_log import COMMIT_LOG_FILE
from nodes.broker.tables.store.message_store import MessageStore
from nodes.config import BrokerConfig
from nodes.host import Channel, Host
from nodes.protocol.model import Message


class HaBroker:
    """A broker as far as its log and its HA links go."""

    def __init__(self, host: Host, broker_id: int, config: BrokerConfig) -> None:
        self.host = host
        self.config = config
        self.store = MessageStore(f"{host.ip}:{config.listen_port}", host.disk.map_files(COMMIT_LOG_FILE))
        context = BrokerContext(
            host,
            config,
            "cluster",
            "a",
            broker_id,
            (),
            TopicConfigManager(now_ms=0, cluster="cluster", broker_name="a"),
            SubscriptionGroupManager(now_ms=0),
            self.store,
        )
        self.ha_address = context.ha_address
        self.arrived: list[tuple[float, str, int]] = []
        """(ms, topic, queue id) of every message that a master sent."""
        self.ha = HaService(context, self._on_replicated)

    def put(self, *bodies: bytes, topic: str = "t") -> None:
        """Store messages, as a producer would have it do."""
        for body in bodies:
            message = Message(topic, 0, -1, -1, 0, -1, body)
            self.store.put_message(message, now_ms=self.host.clock.now_ms())
            self.host.disk.flush(COMMIT_LOG_FILE)
            self.ha.on_stored()

    def log(self) -> list[bytes]:
        """The bodies in the log, in order."""
        data = self.store.commit_log_data(0, 1 << 30)
        return [] if data is None else [message.body for message in data.messages]

    def _on_replicated(self, topic: str, queue_id: int) -> None:
        self.arrived.append((self.host.clock.monotonic_ns() / MS, topic, queue_id))


@attrs.define
class Machine:
    """A machine with a broker; each of its processes makes a new one."""

    host: EmulatedHost
    brokers: list[HaBroker] = attrs.field(factory=list)

    @property
    def broker(self) -> HaBroker:
        return self.brokers[-1]


async def _do_nothing(_broker: HaBroker) -> None:
    """What most brokers of a test begin with."""


def add_broker(
    world: World,
    number: int,
    broker_id: int,
    master: str | None = None,
    *,
    begin: Callable[[HaBroker], Awaitable[None]] = _do_nothing,
    **options: int,
) -> Machine:
    """A machine whose broker starts now, follows `master`, and does what `begin` says."""

    async def life(host: Host) -> None:
        broker = HaBroker(host, broker_id, BrokerConfig(**{"listen_port": PORT, **options}))
        machine.brokers.append(broker)
        broker.store.load()
        await broker.ha.start()
        broker.ha.update_master_address(master)
        await begin(broker)

    machine = Machine(add_host(world, number, f"broker-{number}", life))
    return machine


async def dialed(machine: Machine, address: str) -> tuple[Channel, RecordingHandler]:
    """A connection that is no HA client's, and what comes back over it."""
    process = process_of(machine.host)
    ear = RecordingHandler(process)
    return await process.connect(address, ear, 10_000), ear


def ha_address(number: int) -> str:
    """Where the broker on a machine listens for slaves."""
    return f"127.1.1.{number}:{PORT + 1}"


def ha_states(executed: ExecutedWorld, number: int, subject: str = "") -> list[tuple[float, str | None]]:
    """(ms, state) as the broker on a machine believed it, of all links or of one subject's."""
    rows = executed.trace.select("beliefs", kind="ha_state", node=f"broker-{number}")
    values = [(row["t_ns"] / MS, json.loads(row["value"])) for row in rows if subject in ("", row["subject"])]
    return [(at_ms, None if value is None else value["state"]) for at_ms, value in values]
