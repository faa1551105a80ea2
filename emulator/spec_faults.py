"""The `[[fault]]` tables of a scenario file, and faults written back as such tables."""

from collections.abc import Mapping
from typing import Any

from emulator.spec_section import Section, SpecError, expect_known
from faults.kind import FaultKind
from faults.link import Cut, Delay, Loss
from faults.plan import Fault, Plan, PlanError, TimedFault
from faults.process import Kill, PowerOff, ProcessFault, Restart, Suspend
from faults.scope import ANY, FaultError, LinkScope, NodeScope

_TIMES = ("kind", "id", "at_s", "at_ms", "for_s", "for_ms")
_LINK = ("from", "to", "one_way")
_OWN_KEYS: Mapping[FaultKind, tuple[str, ...]] = {
    FaultKind.CUT: _LINK,
    FaultKind.LOSS: (*_LINK, "percent"),
    FaultKind.DELAY: (*_LINK, "delay_ms", "jitter_ms"),
    FaultKind.KILL: ("node",),
    FaultKind.RESTART: ("node",),
    FaultKind.POWER_OFF: ("node",),
    FaultKind.SUSPEND: ("node",),
}
_PROCESS: Mapping[FaultKind, type[ProcessFault]] = {
    FaultKind.KILL: Kill,
    FaultKind.RESTART: Restart,
    FaultKind.POWER_OFF: PowerOff,
    FaultKind.SUSPEND: Suspend,
}
_ALL_KEYS = tuple(dict.fromkeys((*_TIMES, *(key for keys in _OWN_KEYS.values() for key in keys))))
_FIELD_KEYS = {"src": "from", "dst": "to"}
"""Where a key is not called like the field it fills: `from` is a word of Python."""


def read_plan(root: Section) -> Plan:
    """All faults of a scenario file, in its order."""
    timed = (_read_fault(section, number) for number, section in enumerate(root.tables("fault", _ALL_KEYS), start=1))
    try:
        return Plan(tuple(timed))
    except PlanError as error:
        raise SpecError(f"fault[{error.index}].{error.field}", error.expected) from None


def _read_fault(section: Section, number: int) -> TimedFault:
    kind = section.text("kind")
    expect_known(section.at("kind"), "kind of fault", kind, list(FaultKind))
    # Once more, now that the kind is known: `percent` is a mistake in a cut.
    section = Section.of(section.path, section.values, (*_TIMES, *_OWN_KEYS[FaultKind(kind)]))
    at_ms, for_ms = section.needed_span_ms("at"), section.span_ms("for")
    try:
        return TimedFault(
            id=section.text("id", f"{kind}-{number}"),
            fault=_read_kind(FaultKind(kind), section),
            at_ms=at_ms,
            for_ms=for_ms,
        )
    except FaultError as error:
        raise SpecError(section.at(_FIELD_KEYS.get(error.field, error.field)), error.expected) from None


def _read_kind(kind: FaultKind, section: Section) -> Fault:
    if kind in _PROCESS:
        return _PROCESS[kind](NodeScope(section.text("node")))
    scope = LinkScope(section.text("from", ANY), section.text("to", ANY), section.flag("one_way", default=False))
    if kind is FaultKind.CUT:
        return Cut(scope)
    if kind is FaultKind.LOSS:
        return Loss(scope, section.number("percent", most=100))
    return Delay(scope, section.number("delay_ms"), section.number("jitter_ms", 0))


def write_plan(plan: Plan) -> list[dict[str, Any]]:
    """The tables from which `read_plan` makes this plan again."""
    return [_write_fault(timed) for timed in plan.faults]


def _write_fault(timed: TimedFault) -> dict[str, Any]:
    fault = timed.fault
    table: dict[str, Any] = {"kind": fault.kind.value, "id": timed.id}
    if isinstance(fault, Cut | Loss | Delay):
        table |= {"from": fault.scope.src, "to": fault.scope.dst}
    else:
        table["node"] = fault.scope.node
    table |= fault.parameters()
    table["at_ms"] = timed.at_ms
    if timed.for_ms is not None:
        table["for_ms"] = timed.for_ms
    return table
