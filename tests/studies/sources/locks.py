"""Sources d1 to d8: who holds the order lock of a queue, by whose account."""

from emulator.testing import GROUP, TOPIC, RowOfTrace, Stage, Trace, execute
from nodes.beliefs import BeliefKind
from nodes.config import BrokerConfig, ConsumerConfig, NameserverConfig
from studies.sources.source import Family, Measured, Source, scenario

ORDERED = ConsumerConfig(consume_orderly=True)
ACTING = NameserverConfig(support_acting_master=True, notify_min_broker_id_changed=True)
_L = Family.LOCKS


def holders(row: RowOfTrace) -> dict[str, str]:
    """The topic's queues: topic@brokerName@queueId -> client id."""
    held: dict[str, str] = row.held or {}
    return {queue: cid for queue, cid in held.items() if queue.startswith(f"{TOPIC}@")}


def _locks(trace: Trace, after_s: float, node: str | None = None) -> list[RowOfTrace]:
    return trace.beliefs(BeliefKind.QUEUE_LOCKS, GROUP, node=node, after_ms=after_s * 1_000)


def _taken_by(trace: Trace, name: str, after_s: float) -> list[float]:
    """When a consumer was granted locks of the topic."""
    return [
        row.at_s for row in trace.select("ownership", event="locked", node=name, topic=TOPIC, after_ms=after_s * 1_000)
    ]


def _dropped_by(trace: Trace, name: str, after_s: float) -> list[float]:
    """When a consumer let go of queues of the topic."""
    return [
        row.at_s for row in trace.select("ownership", event="dropped", node=name, topic=TOPIC, after_ms=after_s * 1_000)
    ]


def a_listener_outlives_its_lock() -> Measured:
    """The owner of a lock is cut off with a batch in its listener: the next owner begins before it ends."""

    async def script(stage: Stage) -> None:
        await stage.at_ms(30_000)
        stage.cut("c1", "broker-a")
        stage.cut("c1", "ns-1")
        await stage.at_ms(330_000)

    trace = execute(scenario(queues=2, rate_per_s=1, consume_ms=300_000, config=ORDERED), script)
    ended = [row.at_s for row in trace.select("messages", event="consumed", node="c1", topic=TOPIC)]
    taken = _taken_by(trace, "c2", 30)
    if not taken or not ended:
        return Measured(0)
    return Measured(
        ended[0] - min(taken), seen=f"both in the queue; it was locked again {min(taken) - 30:.1f} s after the cut"
    )


def a_restarted_broker_has_no_locks() -> Measured:
    """The owners go on, and lock again at their next renewals."""

    async def script(stage: Stage) -> None:
        await stage.at_ms(45_000)
        await stage.kill("broker-a")
        await stage.for_ms(1_000)
        stage.start("broker-a")
        await stage.at_ms(100_000)

    trace = execute(scenario(rate_per_s=4, config=ORDERED, spread_ms=15_000), script)
    full = [row.at_s for row in _locks(trace, 46) if len(holders(row)) == 4]
    return Measured(full[0] - 46 if full else 0, seen="until all queues are locked again")


def an_acting_master_has_no_locks() -> Measured:
    """The master dies: its slave acts, and learns of the locks at the renewals that follow the clients' new route."""

    async def script(stage: Stage) -> None:
        await stage.at_ms(60_000)
        await stage.kill("broker-a")
        await stage.at_ms(150_000)

    config = BrokerConfig(enable_slave_acting_master=True, total_replicas=2, slave_read_enable=True)
    trace = execute(
        scenario(nameservers=(ACTING,), brokers={"broker-a": config}, slaves=1, config=ORDERED, spread_ms=15_000),
        script,
    )
    full = [row.at_s for row in _locks(trace, 60, "broker-a-s1") if len(holders(row)) == 4]
    return Measured(full[0] - 60 if full else 0, seen="until the slave has locked all queues")


def an_unlock_is_lost() -> Measured:
    """What a consumer gives back does not arrive: its successor is refused until the lock expires."""

    async def script(stage: Stage) -> None:
        await stage.kill("c2")
        await stage.at_ms(100_000)
        stage.at_first(
            "ownership", lambda: stage.cut("c1", "broker-a", one_way=True), event="dropped", node="c1", topic=TOPIC
        )
        stage.start("c2")
        await stage.until(lambda: bool(_dropped_by(stage.trace, "c1", 100)), 30_000, step_ms=5)
        await stage.for_ms(20)
        stage.heal("c1", "broker-a")
        await stage.at_ms(200_000)

    trace = execute(scenario(queues=2, config=ORDERED), script)
    dropped = _dropped_by(trace, "c1", 100)
    taken = _taken_by(trace, "c2", 100)
    return Measured(taken[0] - dropped[0] if taken and dropped else 0, seen="from the drop to the successor's lock")


def an_owner_crashes() -> Measured:
    """The locks of a dead consumer live on."""

    async def script(stage: Stage) -> None:
        await stage.at_ms(55_000)
        await stage.kill("c2")
        await stage.at_ms(150_000)

    trace = execute(scenario(config=ORDERED, spread_ms=15_000), script)
    taken = _taken_by(trace, "c1", 55)
    return Measured(max(taken) - 55 if taken else 0, seen="from the crash to the successor's lock")


def unsubscribing_unlocks_nothing() -> Measured:
    """A consumer wants the topic no more, and stops: what it let go of by itself stays locked."""

    async def script(stage: Stage) -> None:
        await stage.at_ms(42_000)
        stage.node("c2").unsubscribe(TOPIC)
        await stage.until(lambda: bool(_dropped_by(stage.trace, "c2", 42)), 30_000, step_ms=50)
        await stage.stop("c2")
        await stage.at_ms(170_000)

    trace = execute(scenario(config=ORDERED), script)
    dropped = _dropped_by(trace, "c2", 42)
    taken = _taken_by(trace, "c1", 42)
    return Measured(max(taken) - dropped[0] if taken and dropped else 0, seen="from the drop to the successor's lock")


def a_minority_leaves_its_lock() -> Measured:
    """A majority must agree and cannot: the master refuses, but has locked the queue for the client that asked."""

    async def script(stage: Stage) -> None:
        await stage.at_ms(20_000)
        for slave in ("broker-a-s1", "broker-a-s2"):
            stage.cut("broker-a", slave)
        await stage.kill("c2")
        await stage.at_ms(25_000)
        stage.start("c2")
        await stage.until(lambda: bool(_refused(stage.trace)), 70_000, step_ms=100)
        await stage.kill("c2")
        for slave in ("broker-a-s1", "broker-a-s2"):
            stage.heal("broker-a", slave)
        await stage.at_ms(200_000)

    config = BrokerConfig(
        lock_in_strict_mode=True, total_replicas=3, enable_slave_acting_master=True, slave_read_enable=True
    )
    trace = execute(
        scenario(nameservers=(ACTING,), brokers={"broker-a": config}, slaves=2, config=ORDERED, queues=4), script
    )
    left = _refused(trace)
    taken = _taken_by(trace, "c1", left[-1]) if left else []
    return Measured(max(taken) - left[0] if taken else 0, seen="a lock without a majority, until its successor's")


def _refused(trace: Trace) -> list[float]:
    """When the master held locks for the new process of c2, none of which it was granted."""
    rows = _locks(trace, -1, "broker-a")
    old = dict.fromkeys(cid for row in rows if row.at_s <= 25 for cid in holders(row).values())
    new = [row.at_s for row in rows if any(cid not in old for cid in holders(row).values())]
    return [at for at in new if not _taken_by(trace, "c2", 25)]


SOURCES = (
    Source(id="d1", family=_L, title="a listener works on after its lock was lost",
           bound="the listener (300 s here) - 60 s of the lock", bound_s=240, scenario=a_listener_outlives_its_lock),
    Source(id="d2", family=_L, title="a broker that restarts has no locks", bound="renewal 20 s", bound_s=20,
           scenario=a_restarted_broker_has_no_locks),
    Source(id="d3", family=_L, title="an acting master does not know its master's locks",
           bound="poll 30 s + renewal 20 s", bound_s=50, scenario=an_acting_master_has_no_locks),
    Source(id="d4", family=_L, title="an unlock is lost", bound="60 s + pass 1 s", bound_s=61,
           scenario=an_unlock_is_lost),
    Source(id="d5", family=_L, title="the owner of locks crashes", bound="60 s + pass 1 s", bound_s=61,
           scenario=an_owner_crashes),
    Source(id="d6", family=_L, title="a queue is given up without unlocking it", bound="60 s + pass 1 s", bound_s=61,
           scenario=unsubscribing_unlocks_nothing),
    Source(id="d7", family=_L, title="a majority fails, and the lock of one broker stays", bound="60 s + pass 1 s",
           bound_s=61, scenario=a_minority_leaves_its_lock),
    Source(id="d8", family=_L, title="renewals of static topics miss queues", bound="30 s expiry, again and again",
           bound_s=None, absent="there are no static topics"),
)  # fmt: skip
