"""Sources c1 to c8: members that know the same, or not, and allocate it in ways that do not fit together."""

from itertools import pairwise

from emulator.testing import GROUP, TOPIC, Stage, execute
from nodes.beliefs import BeliefKind
from nodes.config import AllocateStrategy, BrokerConfig, ConsumerConfig
from nodes.protocol.bodies import SetMessageRequestModeRequestBody
from nodes.protocol.model import MessageRequestMode, TopicConfig
from studies.sources.members import AB
from studies.sources.source import Family, Measured, Source, scenario
from studies.sources.spans import end_s, longest, orphaned, owned, shared

VIEW = f"{GROUP}/{TOPIC}"
_S = Family.SHARES
_WRITE_ONLY = 2
ASSIGNED = ConsumerConfig(client_rebalance=False)


def views_are_used_at_different_instants() -> Measured:
    """A newcomer no one hears of: all lists agree at once, and shares fit when the last member has made its pass."""

    async def script(stage: Stage) -> None:
        await stage.at_ms(25_000)
        await stage.kill("c3")
        await stage.at_ms(63_000)
        stage.start("c3")
        await stage.at_ms(120_000)

    silent = {"broker-a": BrokerConfig(notify_consumer_ids_changed_enable=False)}
    trace = execute(scenario(brokers=silent, consumers=3, queues=8, spread_ms=20_000), script)
    violations = shared(trace, TOPIC, after_ms=63_000) + orphaned(trace, TOPIC, after_ms=63_000)
    return Measured(max((end for _, end in violations), default=63) - 63, seen="until every queue had one owner again")


def strategies_differ() -> Measured:
    """Two members allocate averagely, one by circle."""

    async def script(stage: Stage) -> None:
        await stage.at_ms(120_000)

    circle = ConsumerConfig(allocate_message_queue_strategy=AllocateStrategy.AVG_BY_CIRCLE)
    trace = execute(scenario(configs=(ConsumerConfig(), ConsumerConfig(), circle), queues=8, spread_ms=5_000), script)
    twice = shared(trace, TOPIC, after_ms=20_000)
    kinds = f"{len(twice)} queues had two owners, {len(orphaned(trace, TOPIC, after_ms=20_000))} none"
    return Measured(longest(twice), lasts=any(end == end_s(trace) for _, end in twice), seen=kinds)


def one_id_counts_twice() -> Measured:
    """A client that is listed twice takes its first share only: no one takes the second."""

    async def script(stage: Stage) -> None:
        await stage.at_ms(60_000)
        stage.cut("c1", "broker-a")
        await stage.at_ms(95_000)
        stage.heal("c1", "broker-a")
        await stage.at_ms(330_000)

    silent = {"broker-a": BrokerConfig(notify_consumer_ids_changed_enable=False)}
    trace = execute(scenario(brokers=silent, queues=6, spread_ms=20_000), script)
    return Measured(
        longest(orphaned(trace, TOPIC, after_ms=95_000)), seen="a share that belongs to the second of two equal ids"
    )


def failures_keep_and_absence_drops() -> Measured:
    """With nothing to allocate a member keeps all it has, and tries again each second."""

    async def script(stage: Stage) -> None:
        await stage.at_ms(40_000)
        topics = stage.node("broker-a").context.topics
        topics.update_topic_config(TopicConfig(TOPIC, 4, 4, _WRITE_ONLY), now_ms=40_000)
        await stage.at_ms(160_000)

    trace = execute(scenario(), script)
    empty_ms = trace.beliefs(BeliefKind.ROUTE, TOPIC, node="c1", after_ms=40_000)[0].at_ms
    passes = trace.passes("c1", after_ms=empty_ms + 21_000)
    dropped = trace.select("ownership", event="dropped", topic=TOPIC, after_ms=40_000)
    gaps = [(later - earlier) / 1_000 for earlier, later in pairwise(passes)]
    return Measured(
        max(gaps, default=0) if not dropped else 0, seen=f"between passes; {len(passes)} without a change, none dropped"
    )


def a_dropped_ordered_queue_comes_back_dead() -> Measured:
    """It goes and comes back while its listener still has a batch: no consumer pulls it until 120 s have passed."""

    async def script(stage: Stage) -> None:
        await stage.kill("c2")
        await stage.at_ms(25_000)
        stage.start("c2")
        await stage.at_ms(29_000)
        await stage.kill("c2")
        await stage.at_ms(190_000)

    ordered = ConsumerConfig(consume_orderly=True)
    trace = execute(scenario(queues=2, rate_per_s=2, consume_ms=15_000, config=ordered), script)
    return Measured(
        longest(orphaned(trace, TOPIC, after_ms=25_000)), seen="in the table, dropped, and allocated to its owner"
    )


def brokers_assign_in_different_modes() -> Measured:
    """One of two brokers assigns for popping: each pass a member pulls or pops, as the broker that it asks says."""

    async def script(stage: Stage) -> None:
        await stage.at_ms(20_000)
        reported = SetMessageRequestModeRequestBody(TOPIC, GROUP, MessageRequestMode.POP)
        stage.node("broker-b").tables.clients.request_modes.set_mode(reported)
        await stage.at_ms(320_000)

    trace = execute(scenario(brokers=AB, config=ASSIGNED), script)
    flips = [
        row.at_s
        for row in trace.select("ownership", topic=TOPIC, after_ms=20_000)
        if row.event in ("acquired", "dropped")
    ]
    lasts = bool(flips) and flips[-1] > end_s(trace) - 100
    return Measured(flips[-1] - flips[0] if flips else 0, lasts=lasts, seen=f"queues came and went {len(flips)} times")


def one_broker_does_not_divide() -> Measured:
    """One of two brokers answers every member with all queues."""

    async def script(stage: Stage) -> None:
        await stage.at_ms(320_000)

    brokers = {"broker-a": BrokerConfig(), "broker-b": BrokerConfig(server_load_balancer_enable=False)}
    trace = execute(scenario(brokers=brokers, config=ASSIGNED), script)
    twice = sorted(shared(trace, TOPIC, after_ms=20_000))
    if not twice:
        return Measured(0)
    end = max(end for _, end in twice)
    seen = f"queues had two owners {len(twice)} times, for {longest(twice):.1f} s at the longest"
    return Measured(end - twice[0][0], lasts=end > end_s(trace) - 100, seen=seen)


def a_paused_member_keeps_its_share() -> Measured:
    """A member is paused: it consumes nothing, and no one else gets its queues."""

    async def script(stage: Stage) -> None:
        await stage.at_ms(40_000)
        stage.node("c2").suspend()
        await stage.at_ms(160_000)

    trace = execute(scenario(rate_per_s=8), script)
    after = [
        row.at_s
        for row in trace.select("messages", event="consumed", topic=TOPIC, after_ms=45_000)
        if row.queue_id >= 2
    ]
    retained = owned(trace, TOPIC, times=lambda owners: owners == 1, after_ms=40_000)
    seen = f"{len(after)} messages of its queues consumed since"
    return Measured(longest(retained) if not after else 0, lasts=not after, seen=seen)


SOURCES = (
    Source(id="c1", family=_S, title="each member uses what it knows at an instant of its own",
           bound="pass 20 s after views agree", bound_s=20, scenario=views_are_used_at_different_instants),
    Source(id="c2", family=_S, title="members of a group allocate by different strategies", bound="none", bound_s=None,
           scenario=strategies_differ),
    Source(id="c3", family=_S, title="brokers that assign: another one each time, other modes", bound="none",
           bound_s=None, scenario=brokers_assign_in_different_modes),
    Source(id="c4", family=_S, title="one broker does not assign and answers with all queues", bound="none",
           bound_s=None, scenario=one_broker_does_not_divide),
    Source(id="c5", family=_S, title="an id that is listed twice: its second share has no owner",
           bound="idle 120 s + scan 10 s + pass 20 s", bound_s=150, scenario=one_id_counts_twice),
    Source(id="c6", family=_S, title="a failed allocation keeps queues, an empty one drops them",
           bound="1 s to the next", bound_s=1, scenario=failures_keep_and_absence_drops),
    Source(id="c7", family=_S, title="an ordered queue comes back before it was let go of, and stays dead",
           bound="pull idle 120 s + pass 1 s", bound_s=121, scenario=a_dropped_ordered_queue_comes_back_dead),
    Source(id="c8", family=_S, title="a paused member keeps its share", bound="none", bound_s=None,
           scenario=a_paused_member_keeps_its_share),
)  # fmt: skip
