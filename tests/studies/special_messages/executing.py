"""Runs a variant with a seed, and reports what became of its messages."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import attrs

from emulator.campaign.file import load_campaign
from emulator.run import run_scenario
from emulator.trace.schema import TraceLevel
from nodes.broker.messages.escape_bridge import BrokerOuterApi
from nodes.broker.tables.store.commit_log import size_bytes
from nodes.protocol.model import Message
from studies.special_messages.fates import Fates
from studies.special_messages.impacts import KindReported, reported


@attrs.define
class Escaped:
    """What brokers sent to other brokers, each try counted."""

    messages: int = 0
    bytes: int = 0
    """As the log counts them."""


@attrs.frozen
class Executed:
    """What one run reported."""

    variant: str
    seed: int
    kinds: tuple[KindReported, ...]
    escaped: Escaped
    refused_check_points: int
    """How often a broker could not store a check point of what it handed out, each try counted."""


def execute_seed(campaign: Path, variant: str, seed: int) -> Executed:
    """Run a variant of a campaign once in `sim`; its trace is not kept."""
    (found,) = [item for item in load_campaign(campaign).variants if item.name == variant]
    scenario = attrs.evolve(found.scenario, seed=seed)
    fates = Fates(scenario)
    with TemporaryDirectory() as runs, _counted() as escaped:
        run_scenario(scenario, runs=Path(runs), level=TraceLevel.COUNTS, listeners=(fates.note,))
    return Executed(variant, seed, reported(fates), escaped, fates.refused_check_points)


@contextmanager
def _counted() -> Iterator[Escaped]:
    """Count what goes to other brokers: the trace says how many frames, and not how long they are."""
    escaped, send = Escaped(), BrokerOuterApi.send_message_to_specific_broker

    async def counted(self: BrokerOuterApi, address: str | None, broker_name: str, message: Message, group: str) -> int:
        escaped.messages += 1
        escaped.bytes += size_bytes(message)
        return await send(self, address, broker_name, message, group)

    with patch.object(BrokerOuterApi, "send_message_to_specific_broker", counted):
        yield escaped
