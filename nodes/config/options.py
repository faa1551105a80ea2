"""What makes a configuration of fields: RocketMQ's names, and times in the units that it counts them in."""

from collections.abc import Mapping
from typing import Any

import attrs

from nodes.fields import Usual, key_of, whole

MILLISECONDS, SECONDS, MINUTES = "milliseconds", "seconds", "minutes"
TOPIC_QUEUES_MAX = 1_024
"""Most queues of a topic in one broker group."""
ROUTE_QUEUES_MAX = 65_536
"""Most queues of one broker in a route: who uses it makes a list of them. RocketMQ has no limit."""


USUAL_MS, PAUSE_MS = Usual(10, 3_600_000), Usual(0, 3_600_000)
"""Periods and time-outs, in ms, and pauses, which may be none; a day, or less than a frame takes, is a wrong unit."""
USUAL_S, DELAY_S = Usual(1, 3_600), Usual(0, 3_600)
"""The same in s."""

_NO_OPTION = "no option"
"""In the metadata of a field of a configuration that no one can set as an option."""


def option_name(field_name: str) -> str:
    """The camelCase name that RocketMQ gives the option behind a field."""
    first, *rest = field_name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def options(config_class: type["Config"]) -> Mapping[str, "attrs.Attribute[Any]"]:
    """All options of a configuration class: camelCase name -> field, in the order of the class."""
    return {key_of(field): field for field in attrs.fields(config_class) if _NO_OPTION not in field.metadata}


def name_options(_cls: type, fields: list["attrs.Attribute[Any]"]) -> list["attrs.Attribute[Any]"]:
    """Give each field of a configuration class the name of its option (a `field_transformer` of attrs)."""
    return [field.evolve(metadata={"key": option_name(field.name), **field.metadata}) for field in fields]


def count(default: int, *, minimum: int = 0, maximum: int | None = None) -> int:
    """An option that counts things."""
    made: int = whole(default, minimum=minimum, maximum=maximum)
    return made


def millis(default: int, *, minimum: int = 0, maximum: int | None = None, usual: Usual = USUAL_MS) -> int:
    """An option that is a time which may be 0."""
    made: int = whole(default, unit=MILLISECONDS, minimum=minimum, maximum=maximum, usual=usual)
    return made


def seconds(default: int, *, minimum: int = 1, usual: Usual = USUAL_S) -> int:
    """An option that is a time in seconds."""
    made: int = whole(default, unit=SECONDS, minimum=minimum, usual=usual)
    return made


def period_millis(default: int) -> int:
    """An option that is the time between two rounds."""
    # A fixed-rate task with period 0 would never let virtual time pass.
    return millis(default, minimum=1)


def printed_only() -> Any:
    """A field for what a node only prints: mapping name -> text; no option, and no part of what makes two equal."""
    return attrs.field(factory=dict, eq=False, repr=False, metadata={_NO_OPTION: True})


def port(default: int) -> int:
    """An option that is a port."""
    return count(default, minimum=1, maximum=65535)


@attrs.frozen(slots=False, kw_only=True, field_transformer=name_options)
class Config:
    """What every configuration is: a frozen set of options."""
