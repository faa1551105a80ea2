"""The rows of a run directory that tell the story of a fail-over."""

import json
from pathlib import Path

from emulator.addressing import addresses
from emulator.spec import Scenario
from emulator.timelines.events import BeliefRow, CallRow, Cast, LifeRow, Story
from emulator.trace.schema import BELIEFS, FAULTS, LIFECYCLE, RPC
from emulator.trace.table_rows import table_rows
from faults.plan import Phase
from nodes.beliefs import BeliefKind
from nodes.protocol.codes import RequestCode

_KINDS = tuple(
    kind.value
    for kind in (
        BeliefKind.LIVE_BROKERS,
        BeliefKind.ROUTE,
        BeliefKind.MIN_BROKER,
        BeliefKind.SPECIAL_SERVICE,
        BeliefKind.MASTER_ADDR,
    )
)


def read_story(run: Path) -> Story:
    """Read what a run has left."""
    beliefs = [
        BeliefRow(row["t_ns"], row["node"], row["kind"], row["subject"], json.loads(row["value"]))
        for row in table_rows(run, BELIEFS, ("t_ns", "node", "kind", "subject", "value"), ("kind", "in", _KINDS))
    ]
    calls = table_rows(
        run,
        RPC,
        ("sent_ns", "src", "dst", "kind", "event"),
        ("code", "==", int(RequestCode.GET_ALL_CONSUMER_OFFSET)),
    )
    begins = table_rows(run, FAULTS, ("t_ns",), ("event", "==", Phase.BEGIN.value))
    return Story(
        beliefs=tuple(beliefs),
        lives=tuple(LifeRow(**row) for row in table_rows(run, LIFECYCLE, ("t_ns", "node", "event"))),
        offset_requests=tuple(
            CallRow(row["sent_ns"], row["src"], row["dst"])
            for row in calls
            if row["kind"] == "request" and row["event"] == "delivered"
        ),
        fault_ns=next((row["t_ns"] for row in begins), None),
    )


def cast_of(scenario: Scenario) -> Cast:
    """The parts in a scenario of one group."""
    ips = addresses(scenario)
    brokers = sorted(scenario.brokers, key=lambda broker: broker.broker_id)
    return Cast(
        nameservers=tuple(spec.name for spec in scenario.nameservers),
        group=brokers[0].broker_name,
        members={broker.broker_id: broker.name for broker in brokers},
        addresses={broker.broker_id: f"{ips[broker.name]}:{broker.config.listen_port}" for broker in brokers},
        consumer=scenario.consumers[0].names[0],
        topic=scenario.topics[0].name,
    )
