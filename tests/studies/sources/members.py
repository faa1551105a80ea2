"""Sources b1 to b8: brokers that list other members of a group than they should, or than each other."""

from emulator.testing import GROUP, TOPIC, RowOfTrace, Stage, Trace
from nodes.beliefs import BeliefKind
from nodes.config import BrokerConfig
from studies.sources.allocations import execute
from studies.sources.source import Family, Measured, Source, scenario
from studies.sources.spans import differed, end_s, longest, orphaned

AB = {"broker-a": BrokerConfig(), "broker-b": BrokerConfig()}
ABC = {**AB, "broker-c": BrokerConfig()}
VIEW = f"{GROUP}/{TOPIC}"
_M = Family.MEMBERS


def lists(trace: Trace, broker: str | None = None, after_ms: float = -1) -> list[RowOfTrace]:
    """The member lists of brokers, in order."""
    return trace.beliefs(BeliefKind.CONSUMER_IDS, GROUP, node=broker, after_ms=after_ms)


def ip_of(name: str) -> str:
    """How the client id of a consumer begins."""
    return f"127.1.10.{name.removeprefix('c')}@"


def listed(row: RowOfTrace, name: str) -> int:
    """How often a list names a consumer."""
    return sum(cid.startswith(ip_of(name)) for cid in row.held or ())


def lists_differ(trace: Trace, after_ms: float) -> float:
    """For how long brokers listed different members, at the longest."""
    return longest(differed(trace, BeliefKind.CONSUMER_IDS, GROUP, role="broker", after_ms=after_ms))


def _half_seen(cut_s: float) -> Trace:
    """Nothing that c2 sends reaches broker-b from second 60 on."""

    async def script(stage: Stage) -> None:
        await stage.at_ms(60_000)
        stage.cut("c2", "broker-b", one_way=True)
        await stage.for_ms(cut_s * 1_000)
        stage.heal("c2", "broker-b")
        await stage.for_ms(60_000)

    return execute(scenario(brokers=AB, consumers=3, spread_ms=20_000), script)


def a_random_broker_is_asked() -> Measured:
    """While brokers disagree, each pass works from the list of the broker that it happens to ask."""
    trace = _half_seen(250)
    views = differed(trace, BeliefKind.VIEW, VIEW, role="consumer", part=lambda v: v["cids"], after_ms=60_000)
    brokers = differed(trace, BeliefKind.CONSUMER_IDS, GROUP, role="broker", after_ms=60_000)
    if not views or not brokers:
        return Measured(0)
    beyond = max(end for _, end in views) - max(end for _, end in brokers)
    changes = sum(row.at_s > 60 for row in trace.beliefs(BeliefKind.VIEW, VIEW))
    return Measured(
        max(beyond, 0.001), seen=f"after the lists agreed again; {changes} views in {longest(brokers):.0f} s"
    )


def heartbeats_are_sent_one_after_the_other() -> Measured:
    """A newcomer waits for a dead broker before it reports the next one that it is there."""

    async def script(stage: Stage) -> None:
        await stage.at_ms(20_000)
        await stage.kill("c2")
        await stage.power_off("broker-b")
        await stage.at_ms(40_000)
        stage.start("c2")
        await stage.at_ms(60_000)

    trace = execute(scenario(brokers=ABC), script)
    lines = [row.at_s for row in lists(trace, after_ms=40_000) if listed(row, "c2")]
    return Measured(
        lines[-1] - lines[0] if len(lines) > 1 else 0, seen="from the first broker to the last, one is dead"
    )


def a_heartbeat_is_lost() -> Measured:
    """A newcomer's first heartbeat to one broker vanishes: it is reported with the next."""

    async def script(stage: Stage) -> None:
        await stage.at_ms(20_000)
        await stage.kill("c2")
        await stage.at_ms(40_000)
        stage.cut("c2", "broker-b")
        stage.start("c2")
        await stage.at_ms(48_000)
        stage.heal("c2", "broker-b")
        await stage.at_ms(120_000)

    trace = execute(scenario(brokers=AB), script)
    reported = {row.node: row.at_s for row in reversed(lists(trace, after_ms=40_000)) if listed(row, "c2")}
    return Measured(
        reported["broker-b"] - reported["broker-a"] if len(reported) == 2 else 0, seen="from one broker to the other"
    )


def a_frozen_member_expires() -> Measured:
    """A member stands still: the broker gives it up by itself, and reports no one."""

    async def script(stage: Stage) -> None:
        await stage.at_ms(60_000)
        await stage.host("c2").suspend()
        await stage.at_ms(240_000)

    trace = execute(scenario(consumers=3, spread_ms=20_000), script)
    gone = [row.at_s for row in lists(trace, after_ms=60_000) if not listed(row, "c2")]
    views = [row.at_s for row in trace.beliefs(BeliefKind.VIEW, VIEW, after_ms=60_000)]
    if not gone or not views:
        return Measured(0)
    return Measured(views[-1] - 60, seen=f"the list after {gone[0] - 60:.1f} s, the last member's view as reported")


def one_broker_is_out_of_reach() -> Measured:
    """A member reaches only some brokers: the lists differ until it reaches all again."""
    cut_s = 250.0
    trace = _half_seen(cut_s)
    return Measured(lists_differ(trace, 60_000), seen=f"the cut lasted {cut_s:.0f} s")


def a_broker_starts_with_an_empty_list() -> Measured:
    """A broker dies and starts again: it learns of the members as they connect."""

    async def script(stage: Stage) -> None:
        await stage.at_ms(60_000)
        await stage.kill("broker-b")
        await stage.for_ms(1_000)
        stage.start("broker-b")
        await stage.at_ms(120_000)

    trace = execute(scenario(brokers=AB, consumers=4, spread_ms=20_000), script)
    full = [row.at_s for row in lists(trace, "broker-b", after_ms=61_000) if len(row.held or ()) == 4]
    return Measured(full[0] - 61 if full else 0, seen="until all four members are listed")


def a_caller_that_is_not_listed_drops_all() -> Measured:
    """A broker forgets everybody: who asks it before it has connected gets a list without itself."""

    async def script(stage: Stage) -> None:
        await stage.at_ms(62_000)
        await stage.kill("broker-b")
        await stage.for_ms(1_000)
        stage.start("broker-b")
        await stage.at_ms(120_000)

    trace = execute(scenario(brokers=AB, consumers=8, spread_ms=20_000), script)
    return Measured(longest(orphaned(trace, TOPIC, after_ms=63_000)), seen="a queue whose owner was alive had none")


def a_reconnected_member_is_listed_twice() -> Measured:
    """A connection ends on one side only: the client opens another, the broker keeps both."""

    async def script(stage: Stage) -> None:
        await stage.at_ms(60_000)
        stage.cut("c1", "broker-a")
        await stage.at_ms(95_000)
        stage.heal("c1", "broker-a")
        await stage.at_ms(330_000)

    # A notification on the old channel would find out that the client has closed it.
    silent = {"broker-a": BrokerConfig(notify_consumer_ids_changed_enable=False)}
    trace = execute(scenario(brokers=silent, spread_ms=20_000), script)
    return Measured(longest(_twice(trace, "c1")), seen="one client id, two channels")


def _twice(trace: Trace, name: str) -> list[tuple[float, float]]:
    rows = lists(trace)
    ends = [row.at_s for row in rows[1:]] + [end_s(trace)]
    return [(row.at_s, end) for row, end in zip(rows, ends, strict=True) if listed(row, name) > 1]


SOURCES = (
    Source(id="b1", family=_M, title="each pass asks a broker drawn at random", bound="until brokers agree + pass 20 s",
           bound_s=20, scenario=a_random_broker_is_asked),
    Source(id="b2", family=_M, title="a newcomer's heartbeats go to one broker after the other",
           bound="3 s per dead broker", bound_s=3, scenario=heartbeats_are_sent_one_after_the_other),
    Source(id="b3", family=_M, title="a heartbeat is lost", bound="30 s each", bound_s=30,
           scenario=a_heartbeat_is_lost),
    Source(id="b4", family=_M, title="a member that freezes expires broker by broker, without a notification",
           bound="120 s + scan 10 s + pass 20 s", bound_s=150, scenario=a_frozen_member_expires),
    Source(id="b5", family=_M, title="a member reaches only some brokers", bound="the cut (250 s here) + 130 s",
           bound_s=380, scenario=one_broker_is_out_of_reach),
    Source(id="b6", family=_M, title="a broker that restarts knows no members", bound="heartbeat 30 s", bound_s=30,
           scenario=a_broker_starts_with_an_empty_list),
    Source(id="b7", family=_M, title="who is not in the list it gets drops everything", bound="heartbeat 30 s",
           bound_s=30, scenario=a_caller_that_is_not_listed_drops_all),
    Source(id="b8", family=_M, title="a client that reconnects is listed twice", bound="idle 120 s + scan 10 s",
           bound_s=130, scenario=a_reconnected_member_is_listed_twice),
)  # fmt: skip
