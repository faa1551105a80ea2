"""Sources c1 to c9: members that know the same, or not, and divide it in ways that do not fit together."""

from itertools import pairwise

from emulator.sources.members import AB
from emulator.sources.source import Family, Measured, Source
from emulator.sources.stage import GROUP, TOPIC, Stage, play, scenario
from emulator.sources.trace import longest
from nodes.beliefs import BeliefKind
from nodes.config import AllocateStrategy, BrokerConfig, ConsumerConfig
from nodes.protocol.bodies import SetMessageRequestModeRequestBody
from nodes.protocol.model import MessageRequestMode, TopicConfig

VIEW = f"{GROUP}/{TOPIC}"
_S = Family.SHARES
_WRITE_ONLY = 2
ASSIGNED = ConsumerConfig(client_rebalance=False)


def views_are_used_at_different_instants() -> Measured:
    """A newcomer nobody hears of: all lists agree at once, and shares fit when the last member has made its pass."""

    async def script(stage: Stage) -> None:
        await stage.at(25)
        await stage.host("c3").kill()
        await stage.at(63)
        stage.host("c3").start()
        await stage.at(120)

    silent = {"broker-a": BrokerConfig(notify_consumer_ids_changed_enable=False)}
    trace = play(scenario(brokers=silent, consumers=3, queues=8, spread_ms=20_000), script)
    misfits = trace.shared(TOPIC, after=63) + trace.orphaned(TOPIC, after=63)
    return Measured(max((end for _, end in misfits), default=63) - 63, seen="until every queue had one owner again")


def strategies_differ() -> Measured:
    """Two members divide averagely, one by circle."""

    async def script(stage: Stage) -> None:
        await stage.at(120)

    circle = ConsumerConfig(allocate_message_queue_strategy=AllocateStrategy.AVG_BY_CIRCLE)
    trace = play(scenario(configs=(ConsumerConfig(), ConsumerConfig(), circle), queues=8, spread_ms=5_000), script)
    shared = trace.shared(TOPIC, after=20)
    kinds = f"{len(shared)} queues had two owners, {len(trace.orphaned(TOPIC, after=20))} none"
    return Measured(longest(shared), lasts=any(end == trace.end_s for _, end in shared), seen=kinds)


def one_id_counts_twice() -> Measured:
    """A client that is listed twice takes its first share only: nobody takes the second."""

    async def script(stage: Stage) -> None:
        await stage.at(60)
        stage.cut("c1", "broker-a")
        await stage.at(95)
        stage.heal("c1", "broker-a")
        await stage.at(330)

    silent = {"broker-a": BrokerConfig(notify_consumer_ids_changed_enable=False)}
    trace = play(scenario(brokers=silent, queues=6, spread_ms=20_000), script)
    return Measured(
        longest(trace.orphaned(TOPIC, after=95)), seen="a share that belongs to the second of two equal ids"
    )


def failures_keep_and_absence_drops() -> Measured:
    """With nothing to allocate a member keeps all it has, and tries again each second."""

    async def script(stage: Stage) -> None:
        await stage.at(40)
        topics = stage.node("broker-a").context.topics
        topics.update_topic_config(TopicConfig(TOPIC, 4, 4, _WRITE_ONLY), now_ms=40_000)
        await stage.at(160)

    trace = play(scenario(), script)
    empty = trace.beliefs(BeliefKind.ROUTE, TOPIC, node="c1", after=40)[0].at
    passes = trace.passes("c1", after=empty + 21)
    dropped = trace.select("ownership", event="dropped", topic=TOPIC, after=40)
    gaps = [later - earlier for earlier, later in pairwise(passes)]
    return Measured(
        max(gaps, default=0) if not dropped else 0, seen=f"between passes; {len(passes)} in vain, none dropped"
    )


def a_dropped_ordered_queue_comes_back_dead() -> Measured:
    """It goes and comes back while its listener still has a batch: nobody pulls it until 120 s have passed."""

    async def script(stage: Stage) -> None:
        await stage.host("c2").kill()
        await stage.at(25)
        stage.host("c2").start()
        await stage.at(29)
        await stage.host("c2").kill()
        await stage.at(190)

    ordered = ConsumerConfig(consume_orderly=True)
    trace = play(scenario(queues=2, rate_per_s=2, consume_ms=15_000, config=ordered), script)
    return Measured(longest(trace.orphaned(TOPIC, after=25)), seen="in the table, dropped, and allocated to its owner")


def brokers_assign_in_different_modes() -> Measured:
    """One of two brokers assigns for popping: each pass a member pulls or pops, as the broker that it asks says."""

    async def script(stage: Stage) -> None:
        await stage.at(20)
        told = SetMessageRequestModeRequestBody(TOPIC, GROUP, MessageRequestMode.POP)
        stage.node("broker-b").context.request_modes.set_mode(told)
        await stage.at(320)

    trace = play(scenario(brokers=AB, config=ASSIGNED), script)
    flips = [row.at for row in trace.select("ownership", topic=TOPIC, after=20) if row.event in ("acquired", "dropped")]
    lasts = bool(flips) and flips[-1] > trace.end_s - 100
    return Measured(flips[-1] - flips[0] if flips else 0, lasts=lasts, seen=f"queues came and went {len(flips)} times")


def one_broker_does_not_divide() -> Measured:
    """One of two brokers answers every member with all queues."""

    async def script(stage: Stage) -> None:
        await stage.at(320)

    brokers = {"broker-a": BrokerConfig(), "broker-b": BrokerConfig(server_load_balancer_enable=False)}
    trace = play(scenario(brokers=brokers, config=ASSIGNED), script)
    shared = sorted(trace.shared(TOPIC, after=20))
    if not shared:
        return Measured(0)
    end = max(end for _, end in shared)
    seen = f"queues had two owners {len(shared)} times, for {longest(shared):.1f} s at the longest"
    return Measured(end - shared[0][0], lasts=end > trace.end_s - 100, seen=seen)


def a_paused_member_keeps_its_share() -> Measured:
    """A member is paused: it consumes nothing, and nobody else gets its queues."""

    async def script(stage: Stage) -> None:
        await stage.at(40)
        stage.node("c2").suspend()
        await stage.at(160)

    trace = play(scenario(rate_per_s=8), script)
    after = [row.at for row in trace.select("messages", event="consumed", topic=TOPIC, after=45) if row.queue_id >= 2]
    kept = trace.owned(TOPIC, times=lambda owners: owners == 1, after=40)
    seen = f"{len(after)} messages of its queues consumed since"
    return Measured(longest(kept) if not after else 0, lasts=not after, seen=seen)


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
    Source(id="c9", family=_S, title="assigners remember different earlier results", bound="until one assigns",
           bound_s=None, absent="the sticky strategy is not there yet"),
)  # fmt: skip
