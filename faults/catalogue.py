"""All kinds of faults, and the names that OpenMessaging-Chaos has for some of them."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, get_type_hints

import attrs

from faults.fault import Fault, Scope
from faults.kind import FaultKind
from faults.link import LINK_FAULTS
from faults.machine import CLOCK_FAULTS, DISK_FAULTS
from faults.permission import Permission
from faults.process import PROCESS_FAULTS
from faults.scale import Scale

FAULTS: Mapping[FaultKind, type[Fault]] = MappingProxyType(
    {fault.kind: fault for fault in (*LINK_FAULTS, *PROCESS_FAULTS, *CLOCK_FAULTS, *DISK_FAULTS, Permission, Scale)}
)
"""Kind -> its class."""


def scope_of(fault: type[Fault]) -> type[Scope]:
    """The class of the scope of a class of faults."""
    scope: type[Scope] = get_type_hints(fault)["scope"]
    return scope


def fields_of(part: type) -> tuple["attrs.Attribute[Any]", ...]:
    """What can be said of a scope, or of a fault besides its scope, in its order."""
    return tuple(field for field in attrs.fields(part) if field.init and field.name != "scope")


def _chaos_names() -> dict[str, tuple[FaultKind, Mapping[str, Any]]]:
    names: dict[str, tuple[FaultKind, Mapping[str, Any]]] = {}
    for kind in (FaultKind.KILL, FaultKind.SUSPEND):
        names |= {f"{share}-{kind}": (kind, {"node": f"{share} brokers"}) for share in ("minor", "major", "random")}
        names[f"fixed-{kind}"] = (kind, {})
    names["random-partition"] = (FaultKind.PARTITION, {"shape": "isolate"})
    names["fixed-partition"] = (FaultKind.PARTITION, {"shape": "isolate"})
    names["partition-majorities-ring"] = (FaultKind.PARTITION, {"shape": "majorities-ring"})
    names["bridge"] = (FaultKind.PARTITION, {"shape": "bridge"})
    names["random-loss"] = (FaultKind.LOSS, {"src": "random brokers", "percent": 20})
    names["random-delay"] = (FaultKind.DELAY, {"src": "random brokers", "delay_ms": 100})
    return names


CHAOS_NAMES: Mapping[str, tuple[FaultKind, Mapping[str, Any]]] = MappingProxyType(_chaos_names())
"""Name in OpenMessaging-Chaos -> our kind, and what is meant where nothing else is said.

A fixed one needs `node`. How many percent and milliseconds its random ones take it does not say in one place; these are
ours.
"""
