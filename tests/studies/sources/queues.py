"""Sources a1 to a10: who knows which queues of a topic."""

import attrs

from emulator.testing import GROUP, TOPIC, Stage
from nodes.beliefs import BeliefKind
from nodes.config import BrokerConfig, ConsumerConfig, NameserverConfig
from nodes.protocol import headers
from nodes.protocol.codes import RequestCode
from nodes.protocol.model import TopicConfig
from studies.sources.allocations import execute
from studies.sources.source import Family, Measured, Source, scenario
from studies.sources.spans import differed, end_s, longest, owned

AB = {"broker-a": BrokerConfig(), "broker-b": BrokerConfig()}
VIEW = f"{GROUP}/{TOPIC}"
RETRY = f"%RETRY%{GROUP}"
READ_WRITE, WRITE_ONLY = 6, 2


def _set_queues(stage: Stage, broker: str, queues: int, perm: int = READ_WRITE) -> None:
    """What an administrator's command does to a broker; the nameservers hear of it with its next registration."""
    topics = stage.node(broker).context.topics
    topics.update_topic_config(TopicConfig(TOPIC, queues, queues, perm), now_ms=round(stage.now_ms))


def polls_at_different_phases() -> Measured:
    """A broker comes back: each client sees its queues at its own poll."""

    async def script(stage: Stage) -> None:
        await stage.at_ms(40_000)
        await stage.kill("broker-b")
        await stage.at_ms(110_000)
        stage.start("broker-b")
        await stage.at_ms(180_000)

    trace = execute(scenario(brokers=AB, consumers=4, spread_ms=30_000), script)
    spans = differed(trace, BeliefKind.VIEW, VIEW, role="consumer", part=lambda v: v["queues"], after_ms=110_000)
    return Measured(longest(spans), seen="views of four consumers, from the first that sees the queues to the last")


def broker_known_to_one_nameserver() -> Measured:
    """A registration misses one of two nameservers."""

    async def script(stage: Stage) -> None:
        await stage.at_ms(40_000)
        await stage.kill("broker-b")
        await stage.for_ms(1_000)
        stage.cut("broker-b", "ns-2")
        stage.start("broker-b")
        await stage.at_ms(61_000)
        stage.heal("broker-b", "ns-2")
        await stage.at_ms(130_000)

    trace = execute(scenario(nameservers=(NameserverConfig(),) * 2, brokers=AB), script)
    return Measured(longest(differed(trace, BeliefKind.ROUTE, TOPIC, role="nameserver", after_ms=40_000)))


def silent_broker_expires_by_each_clock() -> Measured:
    """A broker loses its power: each nameserver waits for its own scan."""

    async def script(stage: Stage) -> None:
        await stage.at_ms(60_000)
        await stage.power_off("broker-b")
        await stage.at_ms(200_000)

    executed = attrs.evolve(
        scenario(nameservers=(NameserverConfig(),) * 2, brokers=AB, consumers=0), nameserver_start_spread_ms=5_000
    )
    trace = execute(executed, script)
    gone = [row.at_s for row in trace.beliefs(BeliefKind.LIVE_BROKERS, "broker-b", after_ms=60_000)]
    heard = [
        row.at_s for row in trace.select("rpc", src="broker-b", code=int(RequestCode.REGISTER_BROKER), until_ms=60_000)
    ]
    if len(gone) < 2:
        return Measured(0)
    apart = f"nameservers {gone[-1] - gone[0]:.2f} s apart"
    return Measured(gone[-1] - heard[-1], seen=f"from the last registration; {apart}")


def unreachable_nameserver_leaves_old_routes() -> Measured:
    """A broker goes while a client cannot ask: it keeps the old route until its first poll after that."""

    async def script(stage: Stage) -> None:
        await stage.at_ms(40_000)
        stage.cut("c1", "ns-1")
        await stage.at_ms(50_000)
        await stage.kill("broker-b")
        await stage.at_ms(125_000)
        stage.heal("c1", "ns-1")
        await stage.at_ms(200_000)

    trace = execute(scenario(brokers=AB), script)
    spans = differed(trace, BeliefKind.ROUTE, TOPIC, role="consumer", after_ms=125_000)
    return Measured(longest(spans), seen="after the nameserver was back")


def deleted_topic_is_kept() -> Measured:
    """A topic is deleted at broker and nameserver: its consumers own and pull its queues for ever."""

    async def script(stage: Stage) -> None:
        await stage.at_ms(40_000)
        topics = stage.node("broker-a").context.topics
        topics.delete_topic_config(TOPIC, now_ms=40_000)
        header = headers.DeleteTopicFromNamesrvRequestHeader(TOPIC)
        await (await stage.probe()).ask("ns-1", RequestCode.DELETE_TOPIC_IN_NAMESRV, header)
        await stage.at_ms(200_000)

    trace = execute(scenario(), script)
    gone = [row for row in trace.beliefs(BeliefKind.ROUTE, TOPIC, node="ns-1", after_ms=40_000) if row.held is None]
    retained = owned(trace, TOPIC, times=lambda owners: owners == 1, after_ms=gone[0].at_ms if gone else 200_000)
    return Measured(
        longest(retained), lasts=any(end == end_s(trace) for _, end in retained), seen="queues owned without a topic"
    )


def changed_queue_count_wakes_nobody() -> Measured:
    """A topic gets four more queues: they are found at a poll, and owned after the next pass."""

    async def script(stage: Stage) -> None:
        await stage.at_ms(40_000)
        _set_queues(stage, "broker-a", 8)
        await stage.at_ms(140_000)

    trace = execute(scenario(consumers=2, spread_ms=30_000), script)
    reported = trace.beliefs(BeliefKind.ROUTE, TOPIC, node="ns-1", after_ms=40_000)
    taken = [row.at_s for row in trace.select("ownership", event="acquired", topic=TOPIC) if row.queue_id >= 4]
    return Measured(max(taken) - reported[0].at_s if reported and taken else 0, seen="from the nameserver's new route")


def lost_permission_leaves_owners() -> Measured:
    """READ goes on every broker: the set of queues is empty, to allocate fails, and all keep what they had."""

    async def script(stage: Stage) -> None:
        await stage.at_ms(40_000)
        _set_queues(stage, "broker-a", 4, WRITE_ONLY)
        await stage.at_ms(220_000)

    trace = execute(scenario(), script)
    seen = trace.beliefs(BeliefKind.ROUTE, TOPIC, node="c1", after_ms=40_000)
    retained = owned(trace, TOPIC, times=lambda owners: owners == 1, after_ms=seen[0].at_ms if seen else trace.end_ms)
    return Measured(longest(retained), lasts=bool(retained), seen="queues owned that no one may read")


def acting_master_at_one_nameserver() -> Measured:
    """One of two nameservers names an acting master, the other has none until the master is back."""

    async def script(stage: Stage) -> None:
        await stage.at_ms(100_000)
        await stage.kill("broker-a")
        await stage.at_ms(200_000)

    config = BrokerConfig(enable_slave_acting_master=True, total_replicas=2, slave_read_enable=True)
    old = NameserverConfig()
    acting = NameserverConfig(support_acting_master=True, notify_min_broker_id_changed=True)
    trace = execute(
        scenario(nameservers=(acting, old), brokers={"broker-a": config}, slaves=1, consumers=4, spread_ms=30_000),
        script,
    )
    switched = [
        row.at_s
        for row in trace.beliefs(BeliefKind.ROUTE, TOPIC, after_ms=100_000)
        if row.role == "consumer" and "0" in row.held["broker-a"]["addrs"]
    ]
    still = differed(trace, BeliefKind.ROUTE, TOPIC, role="nameserver", after_ms=100_000)
    remark = f"until clients see it; the nameservers differed for {longest(still):.0f} s, until the end"
    return Measured(max(switched) - 100 if switched else 0, seen=remark)


def brokers_that_assign_look_routes_up_themselves() -> Measured:
    """A broker comes back: the others give its queues away when their own copies of the route have them."""

    async def script(stage: Stage) -> None:
        await stage.at_ms(40_000)
        await stage.kill("broker-c")
        await stage.at_ms(110_000)
        stage.start("broker-c")
        await stage.at_ms(200_000)

    brokers = AB | {"broker-c": BrokerConfig()}
    trace = execute(scenario(brokers=brokers, config=ConsumerConfig(client_rebalance=False), spread_ms=20_000), script)
    back = [
        row.at_s
        for row in trace.beliefs(BeliefKind.ROUTE, TOPIC, node="ns-1", after_ms=110_000)
        if "broker-c" in row.held
    ]
    taken = trace.select("ownership", event="acquired", topic=TOPIC, broker_name="broker-c", after_ms=110_000)
    return Measured(
        taken[-1].at_s - back[0] if back and taken else 0, seen="from its route to the last owner of its queues"
    )


def new_retry_topic() -> Measured:
    """The first heartbeat of a group creates its retry topic, which members find at a poll or a pass."""

    async def script(stage: Stage) -> None:
        await stage.at_ms(120_000)

    trace = execute(scenario(new_group=True, spread_ms=30_000), script)
    made = trace.beliefs(BeliefKind.ROUTE, RETRY)
    taken = trace.select("ownership", event="acquired", topic=RETRY)
    return Measured(taken[0].at_s - made[0].at_s if made and taken else 0, seen="from its route to its first owner")


_Q = Family.QUEUES
SOURCES = (
    Source(id="a1", family=_Q, title="clients poll routes at phases of their own", bound="poll 30 s + pass 20 s",
           bound_s=50, scenario=polls_at_different_phases),
    Source(id="a2", family=_Q, title="a broker registered with one nameserver and not the other",
           bound="30 s per registration that is missed, two here", bound_s=60, scenario=broker_known_to_one_nameserver),
    Source(id="a3", family=_Q, title="a dead broker expires by each nameserver's own clock",
           bound="120 s + scan 5 s after its last registration", bound_s=125,
           scenario=silent_broker_expires_by_each_clock),
    Source(id="a4", family=_Q, title="an unreachable nameserver leaves old routes", bound="its return + poll 30 s",
           bound_s=30, scenario=unreachable_nameserver_leaves_old_routes),
    Source(id="a5", family=_Q, title="queues of a deleted topic are retained", bound="none", bound_s=None,
           scenario=deleted_topic_is_kept),
    Source(id="a6", family=_Q, title="another number of queues wakes no one", bound="poll 30 s + pass 20 s", bound_s=50,
           scenario=changed_queue_count_wakes_nobody),
    Source(id="a7", family=_Q, title="READ gone on all brokers: nothing to allocate, nothing let go of", bound="none",
           bound_s=None, scenario=lost_permission_leaves_owners),
    Source(id="a8", family=_Q, title="only some nameservers name an acting master", bound="1 to 15 s + poll 30 s",
           bound_s=45, scenario=acting_master_at_one_nameserver),
    Source(id="a9", family=_Q, title="brokers that assign have caches of routes", bound="cache 30 s + pass 20 s",
           bound_s=50, scenario=brokers_that_assign_look_routes_up_themselves),
    Source(id="a10", family=_Q, title="a retry topic is younger than the route that its group has",
           bound="poll 30 s + pass 20 s", bound_s=50, scenario=new_retry_topic),
)  # fmt: skip
