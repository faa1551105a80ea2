"""Releases of RocketMQ: what an older one lacks, as options; only nameservers and brokers have an older release."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, TypeVar

import attrs

from emulator.spec.reading.section import Section
from emulator.spec.refusals.mistakes import SpecError
from nodes.config import BrokerConfig, Config, NameserverConfig, option_name
from nodes.fields import quoted

RELEASE = "release"
"""Next to the options of a node: its release, as a preset of options."""


class Release(StrEnum):
    """A release that nodes may be of."""

    BEFORE_GROUPS = "4.9"
    """The last one without RIP-32: no acting masters, no heartbeats of brokers, no lists of members, no timer."""
    ANCHOR = "5.3.3"
    """The one that is emulated."""


_OLD: Mapping[type[Config], Mapping[str, Any]] = MappingProxyType(
    {
        NameserverConfig: {
            "knows_member_groups": False,
            "enable_controller_in_namesrv": False,
            "support_acting_master": False,
            "notify_min_broker_id_changed": False,
            "first_scan_delay_ms": 5_000,
            "scan_not_active_broker_interval": 10_000,
        },
        BrokerConfig: {
            "enable_slave_acting_master": False,
            "total_replicas": 1,
            "skip_pre_online": False,
            "enable_remote_escape": False,
            "lock_in_strict_mode": False,
            "timer_wheel_enable": False,
            "use_server_side_reset_offset": False,
            "register_broker_timeout_mills": 6_000,
            "transaction_check_interval": 60_000,
            "knows_plain_acl": True,
        },
    }
)
"""Class of a configuration -> the options of 4.9, as far as they are emulated."""
_STILL_THERE = (
    "first_scan_delay_ms",
    "scan_not_active_broker_interval",
    "register_broker_timeout_mills",
    "transaction_check_interval",
)
"""Options that 4.9 has, too, with another default."""
_AnyConfig = TypeVar("_AnyConfig", bound=Config)


def _old(kind: type[Config]) -> Mapping[str, Any]:
    """The options of 4.9 for a class; empty if it has none."""
    return next((old for of, old in _OLD.items() if issubclass(kind, of)), {})


def set_by_release(release: Release, kind: type[Config]) -> Mapping[str, Any]:
    """What a release sets for a role: mapping field -> value; empty for roles without an older release."""
    old = _old(kind)
    if release is Release.BEFORE_GROUPS:
        return old
    return {name: field.default for name, field in attrs.fields_dict(kind).items() if name in old}


def with_release(given: Section, config: _AnyConfig) -> _AnyConfig:
    """The options of a node of the release that a table of options names.

    A newer release gives a node the shipped defaults in place of what 4.9 has; what else was set stays.

    Args:
        given: the options, `release` among them.
        config: of the node so far.

    Raises:
        SpecError: no such release is emulated for this role, or an option is given that the release lacks.
    """
    value = given.values[RELEASE]
    if value not in list(Release):
        raise SpecError(given.at(RELEASE), f"expected one of {', '.join(Release)}, not {quoted(value)}")
    old = _old(type(config))
    if not old:
        raise SpecError(
            given.at(RELEASE), "expected none: only nameservers and brokers of another release are emulated"
        )
    if value == Release.ANCHOR:
        shipped = set_by_release(Release.ANCHOR, type(config))
        return attrs.evolve(
            config, **{name: item for name, item in shipped.items() if getattr(config, name) == old[name]}
        )
    for name in old:
        for option in (option_name(name), name):
            if option in given.values and name not in _STILL_THERE and given.values[option] != old[name]:
                raise SpecError(given.at(option), f"expected none: release {value} does not have it")
    return attrs.evolve(config, **old)
