"""A small busy cluster, what its trace says, and what is left of its faults when it ends."""

from pathlib import Path

import attrs

from emulator.cluster.cluster import Cluster
from emulator.console.session import Session
from emulator.console.state_verbs import shared_subjects
from emulator.machine.power import PowerState
from emulator.run import run_scenario
from emulator.spec.model.scenario import Scenario
from emulator.testing import GROUP, TOPIC, Trace, a_scenario
from emulator.time.mode import TimeMode
from nodes.broker.broker import Broker
from nodes.broker.context import BrokerContext

NS_PER_MS = 1_000_000
__all__ = ["GROUP", "TOPIC", "Outcome", "busy_cluster", "outcome_of"]


@attrs.frozen
class Outcome:
    """What a run was."""

    trace: Trace
    left: dict[str, str]
    """Whatever is not as it was before any fault: what -> how."""
    differ: tuple[tuple[str, str], ...]
    """What nodes of one role disagree about in the end."""
    digest: str


def busy_cluster(run_for_ms: int, *, consumers: int = 2, rate_per_s: int = 5) -> Scenario:
    """Two nameservers, two brokers, a group and a producer."""
    return a_scenario(
        run_for_ms=run_for_ms,
        nameservers=2,
        brokers=("broker-a", "broker-b"),
        consumers=consumers,
        rate_per_s=rate_per_s,
    )


def outcome_of(scenario: Scenario, runs: Path, mode: TimeMode = TimeMode.SIM) -> Outcome:
    """Run a scenario and look at it a millisecond before its end."""
    trace, seen = Trace(), {}

    async def look(session: Session) -> None:
        await session.cluster.world.sleep_until_ns((scenario.run_for_ms - 1) * NS_PER_MS)
        seen["left"] = left_of_faults(session.cluster)
        seen["differ"] = tuple(key for key in shared_subjects(session) if session.state.beliefs.differs(*key))

    manifest = run_scenario(scenario, mode=mode, runs=runs, listeners=(trace.note,), session_tasks=(look,)).manifest
    assert (manifest["ended"], manifest["crashes"]) == ("complete", [])
    trace.end_ms = manifest["virtual_s"] * 1_000
    return Outcome(trace, seen["left"], seen["differ"], manifest["digest"])


def left_of_faults(cluster: Cluster) -> dict[str, str]:
    """Everything that a fault could have left behind."""
    timeline = cluster.world.timeline
    found = {rule.fault_id: rule.effect.value for rule in cluster.world.fabric.rules}
    for name, host in cluster.hosts.items():
        if host.power_state is not PowerState.RUNNING and not cluster.is_retired(name):
            found[name] = host.power_state.value
        wrong_by_ms = host.clock.now_ms() - (timeline.epoch_ms + timeline.now_ns // NS_PER_MS)
        if wrong_by_ms:
            found[f"clock of {name}"] = f"{wrong_by_ms} ms"
        if isinstance(host.node, Broker):
            found |= restricted(name, host.node.context)
        if host.disk.busy_ms():
            found[f"disk of {name}"] = f"busy for {host.disk.busy_ms()} ms"
        if host.process is not None and host.process.suspended:
            found[f"cpu of {name}"] = "not its turn"
    return found


def restricted(name: str, broker: BrokerContext) -> dict[str, str]:
    """What clients may not do with a broker and the topic."""
    config = broker.topics.select_topic_config(TOPIC)
    perms = {f"broker {name}": broker.config.broker_permission, f"{TOPIC} of {name}": config.perm if config else 6}
    return {subject: f"permission {perm}" for subject, perm in perms.items() if perm != 6}
