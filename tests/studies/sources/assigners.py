"""Sources c9 to c12: assigners that remember different things, and members that follow different ones or none."""

import attrs

from emulator.testing import GROUP, TOPIC, Stage, Trace, execute
from nodes.beliefs import BeliefKind
from nodes.config import AllocateStrategy, ConsumerConfig, NameserverConfig
from studies.sources.members import AB
from studies.sources.source import Family, Measured, Source, scenario
from studies.sources.spans import Span, differed, end_s, longest, orphaned, shared

_S = Family.SHARES
SUBJECT = f"{GROUP}/{TOPIC}"
PINNED = ConsumerConfig(client_rebalance=False, pinned_assigner=True)
STICKY = attrs.evolve(PINNED, allocate_message_queue_strategy=AllocateStrategy.STICKY)


def _unlike(trace: Trace, after_ms: float) -> list[Span]:
    """When a queue had two owners or none."""
    return shared(trace, TOPIC, after_ms=after_ms) + orphaned(trace, TOPIC, after_ms=after_ms)


def assigners_remember_different_divisions() -> Measured:
    """The assigner is out of the routes while a member leaves; back in them, it remembers what no one follows."""

    async def script(stage: Stage) -> None:
        await stage.at_ms(40_000)
        stage.cut("broker-a", "ns-1")
        await stage.at_ms(230_000)
        await stage.stop("c3")
        await stage.at_ms(250_000)
        stage.heal("broker-a", "ns-1")
        await stage.at_ms(400_000)

    trace = execute(scenario(brokers=AB, config=STICKY, consumers=3, spread_ms=20_000), script)
    back = [row.at_ms for row in trace.beliefs(BeliefKind.ASSIGNER, SUBJECT, after_ms=250_000)]
    if not back:
        return Measured(0)
    followed = trace.beliefs(BeliefKind.EPOCH, SUBJECT, after_ms=back[0])
    epochs = [row.held["epoch"] for row in trace.beliefs(BeliefKind.ALLOCATION, SUBJECT)]
    seen = f"from the first member that asks the old one again; allocations {', '.join(map(str, epochs))}"
    return Measured(followed[-1].at_s - back[0] / 1_000 if followed else 0, seen=seen)


def members_ask_two_assigners() -> Measured:
    """A broker is known to one nameserver only: whoever asks the other one for routes has another assigner."""

    async def script(stage: Stage) -> None:
        stage.cut("c1", "ns-2")
        stage.cut("c2", "ns-1")
        await stage.at_ms(40_000)
        await stage.kill("broker-a")
        await stage.for_ms(1_000)
        stage.cut("broker-a", "ns-2")
        stage.start("broker-a")
        await stage.at_ms(131_000)
        stage.heal("broker-a", "ns-2")
        await stage.at_ms(260_000)

    executed = scenario(nameservers=(NameserverConfig(),) * 2, brokers=AB, config=PINNED, spread_ms=20_000)
    trace = execute(executed, script)
    two = differed(trace, BeliefKind.ASSIGNER, SUBJECT, role="consumer", after_ms=41_000)
    if not two:
        return Measured(0)
    impact = longest(_unlike(trace, after_ms=two[0][0] * 1_000))
    return Measured(longest(two), seen=f"queues had two owners or none for {impact:.1f} s at the longest")


def one_member_does_not_reach_the_assigner() -> Measured:
    """It keeps what it has, and after 120 s the assigner gives that to the others."""

    async def script(stage: Stage) -> None:
        await stage.at_ms(60_000)
        stage.cut("c2", "broker-a")
        await stage.at_ms(310_000)
        stage.heal("c2", "broker-a")
        await stage.at_ms(380_000)

    trace = execute(scenario(brokers=AB, config=PINNED, consumers=3, spread_ms=20_000), script)
    twice = [span for span in shared(trace, TOPIC, after_ms=60_000) if span[1] > 310]
    if not twice:
        return Measured(0)
    begun = min(start for start, _ in twice) - 60
    return Measured(max(end for _, end in twice) - 60, seen=f"two owners from {begun:.0f} s after the cut on")


def an_operator_is_not_heard() -> Measured:
    """A broker was down when the operator changed who allocates; a member that meets only it does as before."""

    async def script(stage: Stage) -> None:
        await stage.at_ms(30_000)
        await stage.kill("broker-b")
        await stage.begin(f"rebalance {GROUP} assigner")
        await stage.at_ms(60_000)
        stage.start("broker-b")
        await stage.at_ms(120_000)
        await stage.kill("broker-a")
        await stage.at_ms(180_000)
        await stage.stop("c2")
        stage.start("c2")
        await stage.at_ms(320_000)

    trace = execute(scenario(brokers=AB), script)
    modes = {name: [row.mode for row in trace.select("passes", node=name, after_ms=200_000)] for name in ("c1", "c2")}
    mixed = {name: dict.fromkeys(seen) for name, seen in modes.items()} == {
        "c1": {"assigner": None}, "c2": {"client": None},
    }  # fmt: skip
    return Measured(
        end_s(trace) - 180 if mixed else 0, lasts=mixed, seen="c1 asks an assigner, c2 allocates for itself"
    )


SOURCES = (
    Source(id="c9", family=_S, title="assigners remember different earlier results",
           bound="until one assigns: poll 30 s + pass 20 s + grace 20 s", bound_s=70,
           scenario=assigners_remember_different_divisions),
    Source(id="c10", family=_S, title="members with different routes have different assigners",
           bound="the cut (90 s here) + registration 30 s + poll 30 s + pass 20 s", bound_s=170,
           scenario=members_ask_two_assigners),
    Source(id="c11", family=_S, title="a member that does not reach the assigner keeps what others are given",
           bound="the cut (250 s here) + heartbeat 30 s", bound_s=280, scenario=one_member_does_not_reach_the_assigner),
    Source(id="c12", family=_S, title="a broker did not hear who allocates, nor does who meets only that broker",
           bound="none", bound_s=None, scenario=an_operator_is_not_heard),
)  # fmt: skip
