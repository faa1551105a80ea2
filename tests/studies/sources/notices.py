"""Sources b9 to b15: members that are reported late, ask the wrong broker, or are never listed."""

from emulator.testing import TOPIC, Stage, Trace
from nodes.beliefs import BeliefKind
from nodes.config import BrokerConfig, ConsumerConfig
from nodes.protocol.codes import RequestCode
from studies.sources.allocations import execute
from studies.sources.members import AB, VIEW, listed, lists
from studies.sources.source import Family, Measured, Source, scenario
from studies.sources.spans import end_s, shared

_M = Family.MEMBERS


def _joined(config: BrokerConfig) -> Trace:
    """A third member joins a settled group at second 66."""

    async def script(stage: Stage) -> None:
        await stage.at_ms(25_000)
        await stage.kill("c3")
        await stage.at_ms(66_000)
        stage.start("c3")
        await stage.at_ms(120_000)

    return execute(scenario(brokers={"broker-a": config}, consumers=3, queues=6, spread_ms=20_000), script)


def _reported_after(trace: Trace) -> float:
    """From the newcomer's registration to the last view of another member that has it."""
    joined = next(row for row in lists(trace, after_ms=66_000) if listed(row, "c3"))
    others = [row.at_s for row in trace.beliefs(BeliefKind.VIEW, VIEW, after_ms=joined.at_ms) if row.node != "c3"]
    return max(others) - joined.at_s if others else 0


def two_processes_share_an_id() -> Measured:
    """Two processes on one machine go by one name: to the broker they are one member with two connections."""

    async def script(stage: Stage) -> None:
        await stage.at_ms(120_000)

    trace = execute(scenario(one_address=True, config=ConsumerConfig(instance_name="fixed")), script)
    twice = [row.at_s for row in lists(trace) if row.held and len(row.held) > len(dict.fromkeys(row.held))]
    still = bool(twice) and twice[-1] == lists(trace)[-1].at_s
    queues = len(shared(trace, TOPIC, after_ms=30_000))
    return Measured(end_s(trace) - twice[0] if twice else 0, lasts=still, seen=f"{queues} queues had two owners")


def a_notification_never_comes() -> Measured:
    """The broker reports no one of a newcomer: the others find it at their own ticks."""
    return Measured(_reported_after(_joined(BrokerConfig(notify_consumer_ids_changed_enable=False))))


def notifications_are_deferred() -> Measured:
    """The broker collects changes and reports them all 15 s."""
    return Measured(_reported_after(_joined(BrokerConfig(real_time_notify_consumer_change=False))))


def a_failed_query_counts_as_balanced() -> Measured:
    """A pass that gets no list changes nothing, and the next one comes 20 s later."""

    async def script(stage: Stage) -> None:
        await stage.at_ms(25_000)
        await stage.kill("c2")
        await stage.at_ms(60_000)
        stage.cut("c1", "broker-a")
        await stage.at_ms(84_000)
        stage.heal("c1", "broker-a")
        await stage.at_ms(140_000)

    trace = execute(scenario(), script)
    requested = RequestCode.GET_CONSUMER_LIST_BY_GROUP
    queries = trace.select("rpc", src="c1", code=int(requested), kind="request", after_ms=60_000)
    failed = [row.at_s for row in queries if row.event != "delivered" and row.at_s < 90]
    sent = sorted(row.sent_ns / 1e9 for row in queries)
    gaps = [next((at for at in sent if at > end), end) - end for end in failed]
    return Measured(max(gaps, default=0), seen="from a query that failed to the next pass")


def a_new_broker_is_asked_before_it_is_notified() -> Measured:
    """A broker comes back into the routes: a client sends it of itself with its next heartbeat, or when it connects."""

    async def script(stage: Stage) -> None:
        await stage.at_ms(30_000)
        await stage.kill("broker-b")
        await stage.at_ms(110_000)
        stage.start("broker-b")
        await stage.at_ms(200_000)

    trace = execute(scenario(brokers=AB, consumers=4, spread_ms=30_000), script)
    found = []
    for name in ("c1", "c2", "c3", "c4"):
        routes = trace.beliefs(BeliefKind.ROUTE, TOPIC, node=name, after_ms=110_000)
        routed = [row.at_s for row in routes if "broker-b" in row.held]
        lines = [row.at_s for row in lists(trace, "broker-b", after_ms=110_000) if listed(row, name)]
        if routed and lines:
            found.append(lines[0] - routed[0])
    return Measured(max(max(found, default=0), 0.001) if found else 0, seen="from the first route with it to its list")


def a_slave_answers_from_its_own_list() -> Measured:
    """The slave did not hear a member, then the master dies: who asks now gets the slave's list."""

    async def script(stage: Stage) -> None:
        await stage.at_ms(40_000)
        stage.cut("c2", "broker-a-s1", one_way=True)
        await stage.at_ms(200_000)
        await stage.kill("broker-a")
        await stage.at_ms(260_000)
        stage.heal("c2", "broker-a-s1")
        await stage.at_ms(330_000)

    config = BrokerConfig(slave_read_enable=True)
    trace = execute(scenario(brokers={"broker-a": config}, slaves=1, consumers=3, spread_ms=20_000), script)
    short = [row.at_s for row in trace.beliefs(BeliefKind.VIEW, VIEW, after_ms=200_000) if len(row.held["cids"]) == 2]
    whole = [row.at_s for row in lists(trace, "broker-a-s1", after_ms=260_000) if listed(row, "c2")]
    if not short or not whole:
        return Measured(0)
    return Measured(whole[0] - 260, seen=f"until it hears the member again; {len(short)} passes without it")


def a_broker_refuses_unknown_groups() -> Measured:
    """One broker creates no groups: it answers SUCCESS to heartbeats and lists no one."""

    async def script(stage: Stage) -> None:
        await stage.at_ms(150_000)

    brokers = {"broker-a": BrokerConfig(), "broker-b": BrokerConfig(auto_create_subscription_group=False)}
    trace = execute(scenario(brokers=brokers), script)
    there = lists(trace, "broker-a")
    never = not [row for row in lists(trace, "broker-b") if row.held]
    beats = trace.select("rpc", dst="broker-b", code=int(RequestCode.HEART_BEAT), event="delivered")
    heard = f"after {sum(row.kind == 'request' for row in beats)} heartbeats"
    return Measured(end_s(trace) - there[0].at_s if there and never and beats else 0, lasts=never, seen=heard)


SOURCES = (
    Source(id="b9", family=_M, title="two processes share one client id", bound="none", bound_s=None,
           scenario=two_processes_share_an_id),
    Source(id="b10", family=_M, title="a notification is lost or switched off", bound="pass 20 s", bound_s=20,
           scenario=a_notification_never_comes),
    Source(id="b11", family=_M, title="notifications are deferred", bound="15 s", bound_s=15,
           scenario=notifications_are_deferred),
    Source(id="b12", family=_M, title="a query that fails counts as balanced", bound="pass 20 s", bound_s=20,
           scenario=a_failed_query_counts_as_balanced),
    Source(id="b13", family=_M, title="a new broker is asked before it has heard a heartbeat",
           bound="heartbeat 30 s, sooner where a connection opens", bound_s=30,
           scenario=a_new_broker_is_asked_before_it_is_notified),
    Source(id="b14", family=_M, title="without a master a slave answers from its own list", bound="heartbeat 30 s",
           bound_s=30, scenario=a_slave_answers_from_its_own_list),
    Source(id="b15", family=_M, title="a broker that creates no groups lists no one", bound="none", bound_s=None,
           scenario=a_broker_refuses_unknown_groups),
)  # fmt: skip
