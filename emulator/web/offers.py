"""What a page offers after a fault: the line that ends it, next to the nodes or the link that it hits."""

from collections.abc import Iterable, Mapping

from emulator.web.sections import Entries
from faults.plan import TimedFault
from faults.process import DOWN, Suspend
from faults.scope import NodeScope
from faults.target import ANY


def offer(timed: TimedFault) -> Entries:
    """How to undo an active fault: the line to say, and its words on a button."""
    line = _line(timed)
    return {"fault": timed.id, "kind": timed.fault.kind, "line": line, "text": line[0].upper() + line[1:]}


def _line(timed: TimedFault) -> str:
    fault = timed.fault
    if isinstance(fault, (Suspend, *DOWN)) and _is_one(fault.scope):
        return f"{'resume' if isinstance(fault, Suspend) else 'start'} {fault.scope.node}"
    return f"heal {timed.id}"


def _is_one(scope: NodeScope) -> bool:
    """Whether a scope is the name of one node."""
    return scope.node != ANY and scope.names(scope.node)


def offers(active: Iterable[TimedFault], links: Mapping[str, Entries], nodes: Iterable[str]) -> Entries:
    """Mapping node, or two nodes of a link -> offers for the faults that hit them.

    Args:
        active: faults, with the names of the nodes that they hit.
        links: the section of that name.
        nodes: of the cluster.

    Returns:
        Keys are names, two of them sorted with a blank between; `*` stands for any two nodes.
    """
    names = tuple(nodes)
    found: dict[str, dict[str, Entries]] = {}
    for timed in active:
        for key in _keys(timed, links.get(timed.id), names):
            found.setdefault(key, {})[timed.id] = offer(timed)
    return {key: list(of.values()) for key, of in found.items()}


def _keys(timed: TimedFault, link: Entries | None, names: tuple[str, ...]) -> list[str]:
    scope = timed.fault.scope
    if isinstance(scope, NodeScope):
        return [name for name in names if scope.matches(name)]
    if link is None:
        return []
    if link["everywhere"]:
        return [ANY]
    pairs = {" ".join(sorted(pair)): None for pair in link["pairs"]}
    ends = {name: None for pair in link["pairs"] for name in pair}
    return [*pairs, *ends]
