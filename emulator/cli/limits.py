"""`--limit KEY=VALUE`: service limits for one call, in place of those of the runs."""

from collections.abc import Mapping, Sequence

import attrs

from emulator.analysis.report import Report
from emulator.base.text import nearest
from emulator.spec import SpecError
from emulator.spec.model.service_limits import ServiceLimits
from emulator.spec.tables.section import keys_of
from nodes.fields import rule_of, shown

_OPTION = "--limit"


def read_limits(texts: Sequence[str]) -> Mapping[str, int]:
    """Mapping key of `ServiceLimits` -> value.

    Args:
        texts: `lag_s=60`, one for each limit.

    Raises:
        SpecError: a key is unknown or stands twice, or a value cannot be its limit.
    """
    rules = {field.name: rule_of(field) for field in attrs.fields(ServiceLimits)}
    found: dict[str, int] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals:
            raise SpecError(_OPTION, f"expected KEY=VALUE, such as lag_s=60, not {shown(text)}")
        if key not in rules:
            raise SpecError(_OPTION, nearest("limit", key, keys_of(ServiceLimits)))
        if key in found:
            raise SpecError(f"{_OPTION} {key}", f"expected one value, not {found[key]} and {shown(value)}")
        number = int(value) if value.removeprefix("-").isdecimal() and len(value) <= _DIGITS_MAX else value
        if not rules[key].holds(number):
            raise SpecError(f"{_OPTION} {key}", rules[key].problem(number))
        found[key] = int(number)
    return found


_DIGITS_MAX = 30
"""Python converts no number of thousands of digits."""


def refuse_of_campaign(limits: Mapping[str, int]) -> None:
    """Refuse limits for a campaign, whose runs have been judged.

    Raises:
        SpecError: there are some.
    """
    if limits:
        raise SpecError(_OPTION, "expected only with runs: a table [service] in its file has the limits of a campaign")


def with_limits(report: Report, limits: Mapping[str, int]) -> Report:
    """The report with these service limits in place of its own."""
    return attrs.evolve(report, limits=attrs.evolve(report.limits, **limits))
