"""Faults that show nothing: they end before anything that they could hit has started."""

from collections.abc import Iterator

from emulator.spec.model.scenario import Scenario
from emulator.spec.refusals.restarts import hit_by
from emulator.spec.refusals.start_checks import earliest_starts_ms
from emulator.spec.warnings.harmful_setting import HarmfulSetting
from faults.fault import Fault
from faults.reconfigure import Reconfigure, Upgrade
from faults.scale import GroupScope
from faults.target import Leading


def faults_that_end_before_the_start(scenario: Scenario) -> Iterator[HarmfulSetting]:
    """Warnings about faults that end before anything that they could hit has started."""
    starts_ms = earliest_starts_ms(scenario)
    for timed in scenario.faults.faults:
        if timed.end_ms is None or isinstance(timed.fault, Reconfigure | Upgrade) or _is_of_a_group(timed.fault):
            continue
        targets = (target for _, target in timed.fault.scope.targets() if not isinstance(target, Leading))
        nodes = [name for target in targets for name in hit_by(scenario, target)]
        first_ms = min((starts_ms.get(name, 0) for name in nodes), default=0)
        if timed.end_ms < first_ms:
            yield HarmfulSetting(
                "fault-ends-before-the-start",
                timed.id,
                f"it ends at {timed.end_ms} ms, and nothing that it hits starts before {first_ms} ms: it shows nothing",
            )


def _is_of_a_group(fault: Fault) -> bool:
    return isinstance(fault.scope, GroupScope)
