"""All kinds of faults, what people call them, and the names that OpenMessaging-Chaos has for some of them."""

import shlex
from collections.abc import Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, get_type_hints

import attrs

from faults.fault import Fault, Scope
from faults.link import Cut, Delay, Drop, Loss, Partition, TcpLoss
from faults.machine import MACHINE_FAULTS
from faults.permission import Permission
from faults.process import PROCESS_FAULTS
from faults.refuse import Refuse
from faults.scale import Scale
from faults.scope import LinkScope
from faults.target import ANY
from faults.words import Wording, Words, WordsError
from nodes.fields import FieldError

FAULTS: Mapping[str, type[Fault]] = MappingProxyType(
    {
        fault.kind: fault
        for fault in (
            *(Cut, Partition, Loss, TcpLoss, Delay, Drop, Refuse),
            *PROCESS_FAULTS,
            *MACHINE_FAULTS,
            *(Permission, Scale),
        )
    }
)
"""Kind -> its class."""


def scope_of(fault: type[Fault]) -> type[Scope]:
    """The class of the scope of a class of faults."""
    scope: type[Scope] = get_type_hints(fault)["scope"]
    return scope


def fields_of(part: type) -> tuple["attrs.Attribute[Any]", ...]:
    """What can be said of a scope, or of a fault besides its scope, in its order."""
    return tuple(field for field in attrs.fields(part) if field.init and field.name != "scope")


def _chaos_names() -> dict[str, tuple[str, Mapping[str, Any]]]:
    names: dict[str, tuple[str, Mapping[str, Any]]] = {}
    for kind in ("kill", "suspend"):
        names |= {f"{share}-{kind}": (kind, {"node": f"{share} brokers"}) for share in ("minor", "major", "random")}
        names[f"fixed-{kind}"] = (kind, {})
    names["random-partition"] = ("partition", {"shape": "isolate"})
    names["fixed-partition"] = ("partition", {"shape": "isolate"})
    names["partition-majorities-ring"] = ("partition", {"shape": "majorities-ring"})
    names["bridge"] = ("partition", {"shape": "bridge"})
    names["random-loss"] = ("loss", {"src": "random brokers", "percent": 20})
    names["random-delay"] = ("delay", {"src": "random brokers", "delay_ms": 100})
    return names


CHAOS_NAMES: Mapping[str, tuple[str, Mapping[str, Any]]] = MappingProxyType(_chaos_names())
"""Name in OpenMessaging-Chaos -> our kind, and what is meant where nothing else is said.

A fixed one needs `node`. How many percent and milliseconds its random ones take it does not say in one place; these are
ours.
"""
_CHAOS = Wording("chaos", "NAME [NODES]", f"as OpenMessaging-Chaos calls it: {', '.join(CHAOS_NAMES)}")
_BY_VERB = {fault.wording.verb: fault for fault in FAULTS.values()}
WORDINGS: Mapping[str, Wording] = MappingProxyType(
    {verb: fault.wording for verb, fault in _BY_VERB.items()} | {_CHAOS.verb: _CHAOS}
)
"""Verb -> how it is said, in the order in which it is explained."""


def fault_of(line: str) -> Fault:
    """The fault that a whole line says.

    Raises:
        WordsError: it says none.
    """
    try:
        verb, *words = shlex.split(line) or [""]
    except ValueError as error:
        raise WordsError(f"{line.strip()}: {str(error).lower()}") from None
    if verb not in WORDINGS:
        near = get_close_matches(verb, WORDINGS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(WORDINGS)}"
        raise WordsError(f'"{verb}" breaks nothing; {hint}')
    return fault_said(verb, words)


def fault_said(verb: str, words: Words) -> Fault:
    """The fault that a verb of `WORDINGS` and its words say.

    Raises:
        WordsError: they say none.
    """
    if len(words) < WORDINGS[verb].least:
        raise WORDINGS[verb].mistake()
    try:
        return _chaos(words) if verb == _CHAOS.verb else _BY_VERB[verb].from_words(words)
    except FieldError as error:
        raise WordsError(error.problem) from None


def _chaos(words: Words) -> Fault:
    name, nodes = words[0], " ".join(words[1:])
    if name not in CHAOS_NAMES:
        raise WordsError(f"expected one of {', '.join(CHAOS_NAMES)}, not {name}")
    if name.startswith("fixed-") and not nodes:
        raise WordsError(f"expected: chaos {name} NODES")
    kind, meant = CHAOS_NAMES[name]
    fault, scope = FAULTS[kind], scope_of(FAULTS[kind])
    given: dict[str, Any] = {"src": ANY, "dst": ANY, **meant}
    if nodes:
        given["src" if scope is LinkScope else "node"] = nodes
    of_scope, of_fault = (
        {f.name: given[f.name] for f in fields_of(part) if f.name in given} for part in (scope, fault)
    )
    return fault(scope=scope(**of_scope), **of_fault)
