"""Releases of RocketMQ: what another one lacks or adds, as options.

Nameservers and brokers have an older release, and proxies a newer one.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, TypeVar

import attrs

from emulator.spec.tables.mistakes import SpecError
from emulator.spec.tables.section import Section
from nodes.config import BrokerConfig, Config, NameserverConfig, option_name
from nodes.config.proxy import ProxyConfig
from nodes.fields import quoted

RELEASE = "release"
"""Next to the options of a node: its release, as a preset of options."""


class Release(StrEnum):
    """A release that nodes may be of."""

    BEFORE_GROUPS = "4.9"
    """The last one without RIP-32: no acting masters, no heartbeats of brokers, no lists of members, no timer."""
    ANCHOR = "5.3.3"
    """The one that is emulated."""
    RENEWING = "5.4.0"
    """The first one after it whose proxies renew receipt handles."""


_NEW: Mapping[type[Config], Mapping[str, Any]] = MappingProxyType({ProxyConfig: {"renews_receipt_handles": True}})
"""Class of a configuration -> the options of 5.4.0, as far as they are emulated."""
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


def _of_class(options: Mapping[type[Config], Mapping[str, Any]], kind: type[Config]) -> Mapping[str, Any]:
    """The options of a release for a class; empty if it has none."""
    return next((found for of, found in options.items() if issubclass(kind, of)), {})


def set_by_release(release: Release, kind: type[Config]) -> Mapping[str, Any]:
    """What a release sets for a role: mapping field -> value; empty for roles that are not of this release."""
    old, new = _of_class(_OLD, kind), _of_class(_NEW, kind)
    match release:
        case Release.BEFORE_GROUPS:
            return old
        case Release.RENEWING:
            return new
        case Release.ANCHOR:
            named = {**old, **new}
            return {name: field.default for name, field in attrs.fields_dict(kind).items() if name in named}


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
    old, new = _of_class(_OLD, type(config)), _of_class(_NEW, type(config))
    if not old and not new:
        raise SpecError(
            given.at(RELEASE), "expected none: only nameservers, brokers and proxies of another release are emulated"
        )
    if value == Release.ANCHOR:
        shipped, other = set_by_release(Release.ANCHOR, type(config)), {**old, **new}
        return attrs.evolve(
            config, **{name: item for name, item in shipped.items() if getattr(config, name) == other[name]}
        )
    known = new if value == Release.RENEWING else old
    if not known:
        raise SpecError(given.at(RELEASE), f"expected {Release.RENEWING if new else Release.BEFORE_GROUPS} or 5.3.3")
    if value == Release.RENEWING:
        return attrs.evolve(config, **new)
    for name in old:
        for option in (option_name(name), name):
            if option in given.values and name not in _STILL_THERE and given.values[option] != old[name]:
                raise SpecError(given.at(option), f"expected none: release {value} does not have it")
    return attrs.evolve(config, **old)
