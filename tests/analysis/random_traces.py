"""Seeded random traces: few nodes and values, many coincidences, everything out of order that may be."""

import random

from analysis.trace_rows import HandMadeTrace

END_S = 40
ENDS = ("stopped", "crashed", "killed", "powered_off")


def random_trace(seed, steps=60):
    """A run in which anything may happen, several things at one instant included."""
    chance = random.Random(seed)
    trace = HandMadeTrace(f"run-{seed}")
    for node in ("a", "b", "c"):
        trace.roles[node] = "consumer"
    trace.roles["p"] = "producer"
    now = 0
    for _ in range(steps):
        now += chance.choice((0, 0, 0, 1, 1, 2, 3))
        if now > END_S - 1:
            break
        _step(trace.at(now), chance)
    return trace


def _step(trace, chance):
    node = chance.choice("abc")
    subject = chance.random()
    if subject < 0.35:
        value = chance.choice((None, 1, 1, 2, 2, 3))
        believer = chance.choice((node, node, node, "p"))
        trace.believe(
            believer, value, subject=chance.choice(("g/t", "g/t", "h/t")), kind=chance.choice(("view", "view", "route"))
        )
    elif subject < 0.7:
        event = chance.choice(("acquired", "acquired", "dropped", "locked"))
        trace.own(node, event, queue_id=chance.choice((0, 0, 1)), group=chance.choice("gggh"))
    elif subject < 0.92:
        trace.life(
            node,
            chance.choice(("started", "started", "ready", "suspended", "resumed", "stopping", *ENDS)),
            chance.choice(("g", "g, h", "")),
        )
    else:
        trace.fault(chance.choice(("begin", "end")), f"f{trace.seq}", "cut", node)
