"""The catalogue of faults: all kinds, their verbs, and the names of OpenMessaging-Chaos for some of them."""

import shlex
from collections.abc import Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, get_type_hints

import attrs

from faults.consume_mode import SetConsumeMode
from faults.fault import Fault, Scope
from faults.link import Cut, Delay, Drop, Loss, Partition, TcpLoss
from faults.machine import ClockDrift, ClockJump, ClockSkew, LostWrites, SlowDisk
from faults.permission import PermissionFault
from faults.process import Kill, PowerOff, Restart, SlowCpu, Suspend
from faults.rebalance import RebalanceFault
from faults.reconfigure import Reconfigure, Upgrade
from faults.refuse import Refuse
from faults.scale import Scale
from faults.scope import LinkScope
from faults.target import ANY
from faults.words import Wording, Words, WordsError
from nodes.fields import FieldError, shown
from nodes.secret import masked, mentions_secret

FAULTS: Mapping[str, type[Fault]] = MappingProxyType(
    {
        fault.kind: fault
        for fault in (
            *(Cut, Partition, Loss, TcpLoss, Delay, Drop, Refuse),
            *(Kill, Restart, PowerOff, Suspend, SlowCpu),
            *(ClockSkew, ClockDrift, ClockJump, SlowDisk, LostWrites),
            *(PermissionFault, Scale, RebalanceFault, SetConsumeMode),
            *(Reconfigure, Upgrade),
        )
    }
)
"""Mapping kind -> class."""


def scope_of(fault: type[Fault]) -> type[Scope]:
    """The scope class of a fault class."""
    scope: type[Scope] = get_type_hints(fault)["scope"]
    return scope


def fields_of(part: type) -> tuple["attrs.Attribute[Any]", ...]:
    """The fields of a scope class, or of a fault class without its scope, in order."""
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
"""Mapping name in OpenMessaging-Chaos -> (kind, default values).

Names with `fixed-` need `node`. OpenMessaging-Chaos does not document the percentage and the milliseconds of its random
faults; these values are our choice.
"""
_CHAOS = Wording("chaos", "NAME [NODES]", f"a fault by its name in OpenMessaging-Chaos: {', '.join(CHAOS_NAMES)}")
_BY_VERB = {fault.wording.verb: fault for fault in FAULTS.values()}
WORDINGS: Mapping[str, Wording] = MappingProxyType(
    {verb: fault.wording for verb, fault in _BY_VERB.items()} | {_CHAOS.verb: _CHAOS}
)
"""Mapping verb -> wording, in the order of `help`."""


def fault_of(line: str) -> Fault:
    """Parse a fault from a line: a verb and its words.

    Raises:
        WordsError: the line is not a fault.
    """
    try:
        verb, *words = shlex.split(line) or [""]
    except ValueError as error:
        raise WordsError(f"{shown(masked(line.strip()))}: {str(error).lower()}") from None
    if verb not in WORDINGS:
        near = get_close_matches(shown(verb), WORDINGS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(WORDINGS)}"
        raise WordsError(f'"{shown(verb)}" is not a fault; {hint}')
    return fault_from_words(verb, words)


def fault_from_words(verb: str, words: Words) -> Fault:
    """Parse a fault from a verb of `WORDINGS` and its words.

    Raises:
        WordsError: the words are not a fault.
    """
    if len(words) < WORDINGS[verb].minimum:
        raise WORDINGS[verb].mistake()
    if mentions_secret(" ".join(words)):
        return _with_secret(verb, words)
    return _from_words(verb, words)


def _with_secret(verb: str, words: Words) -> Fault:
    """A fault with a secret; what is wrong with it is not shown, since it may be a part of the secret."""
    try:
        fault = _from_words(verb, words)
    except WordsError:
        raise WORDINGS[verb].mistake() from None
    if "options" not in fault.parameters():
        raise WORDINGS[verb].mistake()
    return fault


def _from_words(verb: str, words: Words) -> Fault:
    try:
        return _chaos(words) if verb == _CHAOS.verb else _BY_VERB[verb].from_words(words)
    except FieldError as error:
        raise WordsError(error.problem) from None


def _chaos(words: Words) -> Fault:
    name, nodes = words[0], " ".join(words[1:])
    if name not in CHAOS_NAMES:
        raise WordsError(f"expected one of {', '.join(CHAOS_NAMES)}, not {shown(name)}")
    if name.startswith("fixed-") and not nodes:
        raise WordsError(f"expected: chaos {name} NODES")
    kind, defaults = CHAOS_NAMES[name]
    fault, scope = FAULTS[kind], scope_of(FAULTS[kind])
    given: dict[str, Any] = {"src": ANY, "dst": ANY, **defaults}
    if nodes:
        given["src" if scope is LinkScope else "node"] = nodes
    of_scope, of_fault = (
        {f.name: given[f.name] for f in fields_of(part) if f.name in given} for part in (scope, fault)
    )
    return fault(scope=scope(**of_scope), **of_fault)
