"""Mistakes about groups of brokers with a DLedger log."""

from collections.abc import Iterator

from emulator.spec.model.scenario import Scenario
from emulator.spec.tables.mistakes import SpecError


def violations_of_dledger(scenario: Scenario) -> Iterator[SpecError]:
    """A group of which only some brokers have such a log, and what RocketMQ or the emulator does not have with it."""
    for i, broker in enumerate(scenario.brokers):
        key = f"broker[{i}].options.enableDLegerCommitLog"
        group = [other.config for other in scenario.brokers if other.broker_name == broker.broker_name]
        if not broker.config.enable_d_leger_commit_log:
            if any(config.enable_d_leger_commit_log for config in group):
                yield SpecError(key, f"expected true, as at another broker of {broker.broker_name}")
        elif broker.config.enable_controller_mode:
            yield SpecError(key, "expected false with enableControllerMode: RocketMQ does not start with both")
        elif broker.container is not None:
            yield SpecError(key, "expected false in a container: DLedger is emulated outside of containers")
