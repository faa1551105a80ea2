"""Warnings about numbers that are absurd for their unit: a heartbeat every 5 ms, a time-out of a day."""

from collections.abc import Iterator
from typing import Any

import attrs

from emulator.spec.model.scenario import Scenario
from emulator.spec.refusals.changes import changes
from emulator.spec.warnings.harmful_setting import HarmfulSetting
from nodes.fields import key_of, unit_of, usual_of

_UNITS_MS = {"milliseconds": 1, "seconds": 1_000, "minutes": 60_000}
_SCALE_MS = {"h": 3_600_000, "min": 60_000, "s": 1_000}


def unusual_values(scenario: Scenario) -> Iterator[HarmfulSetting]:
    """A warning for each value that is far from what its definition calls usual; defaults never are."""
    for where, value in _parts(scenario):
        for warning in _unusual(value):
            yield attrs.evolve(warning, where=where)


def _parts(scenario: Scenario) -> Iterator[tuple[str, Any]]:
    """(name, value) of everything whose fields may have usual values."""
    yield "network", scenario.network
    yield from ((spec.name, spec.config) for spec in scenario.nameservers)
    yield from ((spec.name, spec.config) for spec in scenario.controllers)
    yield from ((spec.name, spec.config) for spec in scenario.brokers)
    yield from ((spec.name, spec.config) for spec in scenario.producers)
    yield from ((spec.name, spec.config) for spec in scenario.statefulsets)
    for group in scenario.consumers:
        yield group.group, group
        yield group.group, group.config
    for change in changes(scenario):
        yield change.group or change.node, change.after


def _unusual(value: Any) -> Iterator[HarmfulSetting]:
    """Warnings without the name of the node."""
    for field in attrs.fields(type(value)):
        usual, number = usual_of(field), getattr(value, field.name)
        if usual is None or number == field.default or usual.minimum <= number <= usual.maximum:
            continue
        unit = unit_of(field) or "milliseconds"
        reported, *usually = (
            _time(item * _UNITS_MS[unit]) for item in (number, usual.minimum, usual.maximum, field.default)
        )
        same = "" if unit == "milliseconds" and reported == f"{number} ms" else f", which is {reported}"
        yield HarmfulSetting(
            "value-unusual-for-its-unit",
            "",
            "{} is {} {}{}: from {} to {} is usual, {} the default; is another unit meant?".format(
                key_of(field), number, unit, same, *usually
            ),
        )


def _time(time_ms: int) -> str:
    """A time in the largest unit of which there is one at least: `90 s` is `1.5 min`."""
    name, unit_ms = next(((name, item) for name, item in _SCALE_MS.items() if abs(time_ms) >= item), ("ms", 1))
    return f"{time_ms / unit_ms:g} {name}"
