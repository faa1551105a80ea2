"""A source of disagreement: what it is, how long it may last, and how it is produced."""

from collections.abc import Callable, Mapping
from enum import StrEnum

import attrs

from emulator.spec.model.scenario import ConsumerGroupSpec, NameserverSpec, Scenario, TopicSpec
from emulator.testing import GROUP, RETRY, TOPIC, a_scenario, broker_groups
from nodes.config import BrokerConfig, ConsumerConfig, NameserverConfig
from studies.sources.allocations import Compared, compared

TOLERANCE_S = 0.6
"""Round trips, the second between two passes of a consumer, and what a measured instant may be late."""


class Family(StrEnum):
    """What nodes disagree about."""

    QUEUES = "queues of a topic"
    MEMBERS = "members of a group"
    SHARES = "shares"
    LOCKS = "order locks"
    OFFSETS = "offsets"


class BoundCheck(StrEnum):
    """What a measured duration says of its bound."""

    INSIDE = "inside"
    OUTSIDE = "outside"
    NOT_PRODUCED = "not produced"


@attrs.frozen
class Measured:
    """What a scenario showed."""

    seconds: float
    """How long it lasted; 0: it did not happen."""
    lasts: bool = False
    """It had no end within the run."""
    seen: str = ""
    """What else the trace reports, in a few words."""


@attrs.frozen(kw_only=True)
class Source:
    """One of them."""

    id: str
    """a1 and so on: the family, and a number in it."""
    family: Family
    title: str
    bound: str
    """From the timers, for people."""
    bound_s: float | None
    """None: it may last for ever."""
    scenario: Callable[[], Measured] | None = None
    absent: str = ""
    """Why there is no scenario."""


@attrs.frozen
class Row:
    """A source with what was measured; ready for JSON."""

    id: str
    family: str
    title: str
    bound: str
    bound_s: float | None
    measured_s: float | None
    lasts: bool
    verdict: str
    remark: str
    with_assigner: Compared | None = None
    """None: it is not compared, or has no members."""


def compare(source: Source) -> Compared | None:
    """Run a source of what is known of queues or members once more with an assigner; None: there is none to run."""
    is_compared = source.scenario is not None and source.family in (Family.QUEUES, Family.MEMBERS)
    return compared(source.scenario) if source.scenario is not None and is_compared else None


def judge(source: Source) -> Row:
    """Run a source and compare what it lasted with its bound."""
    if source.scenario is None:
        verdict, measured, remark = BoundCheck.NOT_PRODUCED, None, source.absent
    else:
        measured = source.scenario()
        verdict, remark = _verdict(source, measured), measured.seen
    return Row(
        source.id,
        source.family.value,
        source.title,
        source.bound,
        source.bound_s,
        None if measured is None else round(measured.seconds, 3),
        measured is not None and measured.lasts,
        verdict.value,
        remark,
    )


def _verdict(source: Source, measured: Measured) -> BoundCheck:
    if measured.seconds <= 0:
        return BoundCheck.NOT_PRODUCED
    if source.bound_s is None:
        return BoundCheck.INSIDE
    return (
        BoundCheck.INSIDE
        if not measured.lasts and measured.seconds <= source.bound_s + TOLERANCE_S
        else BoundCheck.OUTSIDE
    )


def scenario(
    *,
    nameservers: tuple[NameserverConfig, ...] = (NameserverConfig(),),
    brokers: Mapping[str, BrokerConfig] | None = None,
    slaves: int = 0,
    queues: int = 4,
    consumers: int = 2,
    config: ConsumerConfig | None = None,
    configs: tuple[ConsumerConfig, ...] = (),
    consume_ms: int = 0,
    rate_per_s: int = 0,
    spread_ms: int = 0,
    new_group: bool = False,
    one_address: bool = False,
) -> Scenario:
    """A topic on all brokers, and one group whose members need not be alike.

    Args:
        nameservers: one of each.
        brokers: broker name -> options of master and slaves; one broker as shipped unless reported.
        slaves: how many each broker name has.
        configs: one member each, instead of `consumers` members with `config`.
        new_group: its retry topic is not there yet.
        one_address: all members run on one machine.
    """
    named = brokers or {"broker-a": BrokerConfig()}
    topics = (TopicSpec(TOPIC, tuple(named), queues),)
    warm = (TopicSpec(RETRY, tuple(named), 1),)
    members = configs or (config or ConsumerConfig(),) * consumers
    names = tuple(f"c{i}" for i in range(1, len(members) + 1))
    groups = tuple(
        ConsumerGroupSpec(GROUP, (name,), (TOPIC,), member, consume_ms)
        for name, member in zip(names, members, strict=True)
    )
    if one_address:
        groups = (ConsumerGroupSpec(GROUP, names, (TOPIC,), members[0], consume_ms, one_address=True),)
    executed = a_scenario(
        spread_ms=spread_ms,
        brokers=tuple(
            spec for name, options in named.items() for spec in broker_groups(name, config=options, slaves=slaves)
        ),
        topics=topics if new_group else topics + warm,
        consumers=groups,
        rate_per_s=rate_per_s,
    )
    served = tuple(NameserverSpec(f"ns-{i}", each) for i, each in enumerate(nameservers, 1))
    return attrs.evolve(executed, nameservers=served)
