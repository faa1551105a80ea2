"""Sources e1 to e10: what a group has consumed, by whose account."""

from emulator.testing import GROUP, TOPIC, RowOfTrace, Stage, Trace, execute
from nodes.config import BrokerConfig, ConsumerConfig
from nodes.protocol import headers
from nodes.protocol.codes import RequestCode
from nodes.protocol.model import MessageModel
from studies.sources.source import Family, Measured, Source, scenario
from studies.sources.spans import end_s

_O = Family.OFFSETS


def _commits(trace: Trace, queue_id: int = 0, **between: float) -> list[RowOfTrace]:
    return trace.select("messages", event="committed", topic=TOPIC, queue_id=queue_id, **between)


def _consumed(trace: Trace, node: str, queue_id: int = 0, **between: float) -> list[RowOfTrace]:
    return trace.select("messages", event="consumed", node=node, topic=TOPIC, queue_id=queue_id, **between)


def _starts(trace: Trace, node: str, after_s: float, queue_id: int = 0) -> list[RowOfTrace]:
    return trace.select(
        "ownership", event="acquired", node=node, topic=TOPIC, queue_id=queue_id, after_ms=after_s * 1_000
    )


def _age(trace: Trace, start: RowOfTrace, at_s: float) -> float:
    """How old an offset was at an instant: since when the broker had known a higher one by then; 0: it was the last."""
    higher = [row.at_s for row in _commits(trace, start.queue_id, until_ms=at_s * 1_000) if row.offset > start.offset]
    return at_s - higher[0] if higher else 0


def what_only_memory_knows() -> Measured:
    """A consumer dies between two commits of a quiet topic: what it consumed meanwhile is consumed again."""

    async def script(stage: Stage) -> None:
        await stage.at_ms(60_000)
        await stage.kill("c1")
        await stage.at_ms(90_000)
        stage.start("c1")
        await stage.at_ms(120_000)

    trace = execute(scenario(consumers=1, queues=1, rate_per_s=5, consume_ms=900), script)
    (start,) = _starts(trace, "c1", 90)
    again = [row.at_s for row in _consumed(trace, "c1", until_ms=60_000) if row.offset >= start.offset]
    return Measured(60 - min(again) if again else 0, seen=f"{len(again)} messages consumed and not committed")


def a_commit_races_a_query() -> Measured:
    """A queue moves: the last commit of the old owner and the question of the new one are on their way together."""

    async def script(stage: Stage) -> None:
        await stage.at_ms(50_000)
        await stage.kill("c4")
        await stage.at_ms(80_000)
        stage.start("c4")
        await stage.at_ms(90_000)

    trace = execute(scenario(consumers=4, queues=8, rate_per_s=100, consume_ms=5, spread_ms=20_000), script)
    missed = [
        start.at_s - _higher(trace, start)[0]
        for queue_id in range(8)
        for start in trace.select("ownership", event="acquired", topic=TOPIC, queue_id=queue_id, after_ms=60_000)
        if _higher(trace, start)
    ]
    seen = f"{len(missed)} queues began below a commit that the broker had by then"
    return Measured(max(missed, default=0), seen=seen)


def _higher(trace: Trace, start: RowOfTrace) -> list[float]:
    """When the broker took commits above a start before its owner had begun."""
    return [row.at_s for row in _commits(trace, start.queue_id, until_ms=start.at_ms) if row.offset > start.offset]


def the_file_is_older_than_the_memory() -> Measured:
    """A broker dies: it has the offsets of its last file."""

    async def script(stage: Stage) -> None:
        await stage.at_ms(63_000)
        await stage.kill("c1")
        await stage.power_off("broker-a")
        await stage.at_ms(66_000)
        stage.start("broker-a")
        await stage.at_ms(70_000)
        stage.start("c1")
        await stage.at_ms(140_000)

    trace = execute(scenario(consumers=1, queues=1, rate_per_s=20), script)
    (start, *_) = _starts(trace, "c1", 70)
    return Measured(_age(trace, start, 63), seen=f"its successor began {_last(trace, 63) - start.offset} offsets below")


def _last(trace: Trace, until_s: float) -> int:
    return int(_commits(trace, until_ms=until_s * 1_000)[-1].offset)


def a_slave_has_older_offsets() -> Measured:
    """A master dies: who asks its slave gets the offsets of the last copy."""

    async def script(stage: Stage) -> None:
        await stage.at_ms(175_000)
        await stage.kill("c1")
        await stage.kill("broker-a")
        await stage.at_ms(180_000)
        stage.start("c1")
        await stage.at_ms(220_000)

    config = BrokerConfig(slave_read_enable=True)
    trace = execute(scenario(brokers={"broker-a": config}, slaves=1, consumers=1, queues=1, rate_per_s=20), script)
    starts = _starts(trace, "c1", 180)
    if not starts:
        return Measured(0)
    below = f"its successor began {_last(trace, 175) - starts[0].offset} offsets below"
    return Measured(_age(trace, starts[0], 175), seen=below)


def a_late_owner_commits_back() -> Measured:
    """Somebody who owns a queue no more commits what it remembers: the owner's next commit repairs it."""

    async def script(stage: Stage) -> None:
        await stage.at_ms(61_000)
        header = headers.UpdateConsumerOffsetRequestHeader(GROUP, TOPIC, 0, 3)
        await (await stage.probe()).ask("broker-a", RequestCode.UPDATE_CONSUMER_OFFSET, header)
        await stage.at_ms(90_000)

    trace = execute(scenario(consumers=1, queues=1, rate_per_s=1), script)
    commits = _commits(trace)
    back = next((i for i, row in enumerate(commits) if row.offset == 3 and row.at_s > 60), None)
    if back is None:
        return Measured(0)
    repaired = [row.at_s for row in commits[back:] if row.offset >= commits[back - 1].offset]
    return Measured(repaired[0] - commits[back].at_s, seen="until the offset is as high as before")


def a_slave_knows_no_offset() -> Measured:
    """A master dies before its slave has copied the offsets of a group: the successor begins at 0, for good."""

    async def script(stage: Stage) -> None:
        await stage.at_ms(45_000)
        await stage.kill("c1")
        await stage.kill("broker-a")
        await stage.at_ms(50_000)
        stage.start("c1")
        await stage.at_ms(120_000)

    config = BrokerConfig(slave_read_enable=True)
    trace = execute(scenario(brokers={"broker-a": config}, slaves=1, consumers=1, queues=1, rate_per_s=20), script)
    starts = _starts(trace, "c1", 50)
    if not starts or starts[0].offset > 0:
        return Measured(0)
    again = sum(row.offset < _last(trace, 45) for row in _consumed(trace, "c1", after_ms=50_000))
    return Measured(end_s(trace) - starts[0].at_s, lasts=True, seen=f"began at 0: {again} messages consumed again")


def unsubscribing_commits_nothing() -> Measured:
    """A consumer wants a topic no more: what it consumed since its last commit is never committed."""

    async def script(stage: Stage) -> None:
        await stage.at_ms(61_000)
        stage.node("c1").unsubscribe(TOPIC)
        await stage.until(
            lambda: bool(stage.trace.select("ownership", event="dropped", node="c1", after_ms=61_000)),
            30_000,
            step_ms=100,
        )
        await stage.for_ms(30_000)

    trace = execute(scenario(consumers=1, queues=1, rate_per_s=5, consume_ms=900), script)
    (dropped,) = trace.select("ownership", event="dropped", node="c1", topic=TOPIC)
    left = [row.at_s for row in _consumed(trace, "c1") if row.offset >= _last(trace, end_s(trace))]
    return Measured(dropped.at_s - min(left) if left else 0, seen=f"{len(left)} messages that no one will ever commit")


def a_broadcasting_member_has_a_file() -> Measured:
    """A broadcasting consumer dies: it goes on from the offsets that its file has."""

    async def script(stage: Stage) -> None:
        await stage.at_ms(63_000)
        await stage.kill("c1")
        await stage.at_ms(65_000)
        stage.start("c1")
        await stage.at_ms(90_000)

    everything = ConsumerConfig(message_model=MessageModel.BROADCASTING)
    trace = execute(scenario(consumers=1, queues=1, rate_per_s=20, config=everything), script)
    (start, *_) = _starts(trace, "c1", 65)
    again = [row.at_s for row in _consumed(trace, "c1", until_ms=63_000) if row.offset >= start.offset]
    return Measured(63 - min(again) if again else 0, seen=f"{len(again)} messages consumed again")


SOURCES = (
    Source(id="e1", family=_O, title="a consumer remembers what it has not committed", bound="persist 5 s", bound_s=5,
           scenario=what_only_memory_knows),
    Source(id="e2", family=_O, title="a last commit and the successor's question pass each other", bound="a round trip",
           bound_s=0.1, scenario=a_commit_races_a_query),
    Source(id="e3", family=_O, title="a broker's file is older than its table", bound="flush 5 s", bound_s=5,
           scenario=the_file_is_older_than_the_memory),
    Source(id="e4", family=_O, title="a slave's offsets are older than its master's", bound="full copy 60 s + 10 s",
           bound_s=70, scenario=a_slave_has_older_offsets),
    Source(id="e5", family=_O, title="a commit moves an offset back", bound="the owner's next commit, 5 s", bound_s=5,
           scenario=a_late_owner_commits_back),
    Source(id="e6", family=_O, title="a slave has no offset at all: from 0, or from the end", bound="none",
           bound_s=None, scenario=a_slave_knows_no_offset),
    Source(id="e7", family=_O, title="a reset waits at the broker while clients remember", bound="hold 15 s + pull",
           bound_s=16, absent="offsets cannot be reset by command yet"),
    Source(id="e8", family=_O, title="a popped offset is stored before its acknowledgement", bound="invisible time",
           bound_s=None, absent="consumers do not pop yet"),
    Source(id="e9", family=_O, title="an unsubscribed topic is not committed any more",
           bound="5 s of messages, for good", bound_s=5, scenario=unsubscribing_commits_nothing),
    Source(id="e10", family=_O, title="broadcasting members keep offsets in files of their own", bound="persist 5 s",
           bound_s=5, scenario=a_broadcasting_member_has_a_file),
)  # fmt: skip
