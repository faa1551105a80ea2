"""Addresses that lead nowhere: which a client dialled, why no node is there, and who gave it the address."""

from collections import Counter
from collections.abc import Sequence

from emulator.history.rows.lookup import TraceRow, TraceRows
from emulator.history.unreachable import DIALS
from emulator.spec.model.scenario import BROKER, NAMESERVER
from emulator.trace.schema import LIFECYCLE, RPC
from emulator.why.words import NodeNames, seconds


def unreachable(
    trace: TraceRows, client: str, names: NodeNames, until_ns: int | None, servers: Sequence[str] = ()
) -> list[str]:
    """What a client dialled until an instant that leads nowhere from where it is, a line for each address.

    Args:
        trace: of the run.
        client: its node.
        names: of the nodes.
        until_ns: the instant; None: the end of the run.
        servers: nodes whose addresses are asked about; empty: all.
    """
    dials = trace.select(RPC, event=DIALS, src=client, until_ns=until_ns)
    known = [row for row in dials if row.text("detail") and (not servers or names.node(row.text("dst")) in servers)]
    first = {row.text("detail"): row for row in reversed(known)}
    counted = Counter(row.text("detail") for row in known)
    return [_line(trace, first[detail], number, names) for detail, number in counted.items()]


def _line(trace: TraceRows, row: TraceRow, number: int, names: NodeNames) -> str:
    address, _, problem = row.text("detail").partition(" ")
    node = names.node(row.text("dst"))
    times = "" if number == 1 else f" {number:,} times"
    return f"connect to {address} failed{times}, first at {seconds(row.t_ns)}: {address} {problem}{_from(trace, node)}"


def _from(trace: TraceRows, node: str) -> str:
    """Who gives clients the address of a node."""
    started = trace.newest(LIFECYCLE, node=node)
    role = "" if started is None else started.text("role")
    if role == BROKER:
        return f"; {node} registered it (brokerIP1), so routes have it"
    if role == NAMESERVER:
        return f"; it stands for {node} in namesrvAddr"
    return ""
