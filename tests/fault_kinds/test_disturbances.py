"""What analysis explains by each kind of fault follows from the disturbance that the kind declares."""

import ast
from pathlib import Path

import attrs
import pytest

import emulator.analysis
from analysis.trace_rows import GROUP, HandMadeTrace, RowsOf, found_in
from emulator.analysis.findings.finding import Cause
from emulator.analysis.inputs.disturbances import Disturbances
from emulator.trace.schema import FAULTS as FAULT_ROWS
from faults.catalogue import FAULTS, fault_of
from faults.disturbance import IN_LIVES, Concerns, Disturbance, Frame
from nodes.protocol.codes import RequestCode
from support.every_case import each_case

BEGIN_S, LONG_S, END_S = 300, 400, 900
OF_MEMBER, OF_LINK, OF_BROKER = "a", "a <-> broker-a", "broker-a"


@attrs.frozen
class Explains:
    """What a kind of fault explains."""

    subject: str
    """What it hits."""
    begun: Cause = Cause.NONE
    """Cause of an overlap that begins with it."""
    ended: Cause = Cause.NONE
    """Cause of an overlap that begins with its end."""
    hinders: bool = False
    """Whether members may miss a notification while it lasts, so that they wait for their next pass."""
    stops: bool = False
    """Whether an owner that it hits has no impact while it lasts."""
    wrong_clock: bool = False
    """Whether the clock of a broker is not to be trusted."""
    elsewhere: str = "p"
    """What it may hit without a concern to the group."""


def unheard(subject):
    return Explains(subject, Cause.SILENT, Cause.RETURNED, hinders=True, stops=True)


EXPLAINS = {
    "cut": unheard(OF_LINK),
    "partition": unheard("isolate a among a, broker-a"),
    "loss": unheard(OF_LINK),
    "tcp_loss": unheard(OF_LINK),
    "delay": unheard(OF_LINK),
    "drop": unheard(OF_LINK),
    "refuse": unheard("a -> broker-a"),
    "kill": Explains(OF_MEMBER),
    "restart": Explains(OF_MEMBER),
    "power_off": Explains(OF_MEMBER),
    "suspend": Explains(OF_MEMBER),
    "slow_cpu": unheard(OF_MEMBER),
    "clock_skew": Explains(OF_BROKER, Cause.RETURNED, Cause.RETURNED, wrong_clock=True),
    "clock_drift": Explains(OF_BROKER, Cause.RETURNED, Cause.RETURNED, wrong_clock=True),
    "clock_jump": Explains(OF_BROKER, Cause.RETURNED, Cause.RETURNED, wrong_clock=True),
    # Sends wait for it, pulls do not.
    "slow_disk": Explains(OF_BROKER, Cause.SILENT, Cause.RETURNED, hinders=True),
    "lost_writes": Explains(OF_BROKER),
    "permission": Explains(OF_BROKER, Cause.ROUTE, Cause.ROUTE),
    "scale": Explains(GROUP),
    "rebalance": Explains(GROUP, Cause.ASSIGNER, Cause.ASSIGNER, elsewhere="another"),
    "consume_mode": Explains(GROUP, Cause.ASSIGNER, Cause.ASSIGNER, elsewhere="another"),
    "reconfigure": Explains(OF_MEMBER),
    "upgrade": Explains(OF_MEMBER),
}
"""Mapping kind -> what it explains; nothing by itself if all that nodes learn is in the lives of processes."""
NOTHING = [kind for kind, row in EXPLAINS.items() if row == Explains(row.subject, elsewhere=row.elsewhere)]


def a_group():
    """A group that agreed long ago, with two members."""
    trace = HandMadeTrace().life("a", "ready", GROUP, role="consumer").life("b", "ready", GROUP, role="consumer")
    trace.life("p", "ready", role="producer").life("broker-a", "ready", role="broker")
    return trace.at(1).believe("a", 1).own("a", "acquired", offset=0)


def overlap(trace, lasts_s):
    """Another member acquires the queue at `BEGIN_S`, and the first one drops it later."""
    trace.at(BEGIN_S).own("b", "acquired", offset=0).at(BEGIN_S + lasts_s).own("a", "dropped")
    (found,) = found_in(trace, END_S)["overlaps"]
    return found


def explained(kind, subject, elsewhere):
    """What a kind is found to explain, as a row of the table."""

    def begun(at_s=BEGIN_S, of=subject):
        return a_group().at(at_s).fault("begin", "f", kind, of)

    def with_a_new_member(trace):
        trace.at(BEGIN_S).believe("broker-a", ["a", "b"], GROUP, "consumer_ids")
        return overlap(trace, 10).cause

    clocks = Disturbances()
    for row in RowsOf(begun()).rows(FAULT_ROWS):
        clocks.readers()[FAULT_ROWS](row)
    nowhere = overlap(begun(of=elsewhere), 30)
    return Explains(
        subject,
        overlap(begun(), 10).cause,
        overlap(begun(10).at(BEGIN_S).fault("end", "f", kind, subject), 10).cause,
        with_a_new_member(begun(10)) == Cause.ROUND,
        not overlap(begun(), LONG_S).violation,
        clocks.moves_clock,
        elsewhere if (nowhere.cause, nowhere.explained_by) == (Cause.NONE, "") else "everywhere",
    )


def test_every_kind_has_a_row_here():
    assert list(EXPLAINS) == list(FAULTS)


@pytest.mark.parametrize("kind", EXPLAINS)
def test_a_kind_explains_what_it_declares(kind):
    expected = EXPLAINS[kind]
    assert explained(kind, expected.subject, expected.elsewhere) == expected


@pytest.mark.parametrize("kind", [kind for kind in EXPLAINS if kind not in NOTHING])
def test_a_kind_without_its_disturbance_explains_nothing(monkeypatch, kind):
    monkeypatch.setattr(FAULTS[kind], "disturbance", Disturbance())
    monkeypatch.setattr(FAULTS[kind], "blocks", classmethod(lambda cls, scope, parameters, frame: False))
    expected = EXPLAINS[kind]
    found = explained(kind, expected.subject, expected.elsewhere)
    assert found != expected
    assert attrs.evolve(found, elsewhere="") == Explains(expected.subject, elsewhere="")


def declared():
    """(kind, name of a part of its disturbance that it declares)."""
    for kind in EXPLAINS:
        for part in attrs.fields(Disturbance):
            if getattr(FAULTS[kind].disturbance, part.name) != part.default:
                yield kind, part.name


@pytest.mark.parametrize(("kind", "part"), list(declared()))
def test_no_part_of_a_disturbance_is_declared_without_effect(monkeypatch, kind, part):
    default = getattr(Disturbance(), part)
    monkeypatch.setattr(FAULTS[kind], "disturbance", attrs.evolve(FAULTS[kind].disturbance, **{part: default}))
    expected = EXPLAINS[kind]
    assert explained(kind, expected.subject, expected.elsewhere) != expected


def test_a_kind_explains_nothing_only_if_its_nodes_have_nothing_to_learn_but_lives():
    declared = {kind: attrs.evolve(fault.disturbance, concerns=Concerns.NODES) for kind, fault in FAULTS.items()}
    assert [kind for kind in FAULTS if declared[kind] == IN_LIVES] == NOTHING


# --- which frames a kind blocks ---------------------------------------------------------------------

PULL = Frame("c1", "broker-a", RequestCode.PULL_MESSAGE, "g", "orders")
BLOCKING = {
    "cut c1": True,
    "cut c1 broker-b": False,
    "cut broker-a c1 one-way": False,
    "partition isolate c1 among c1, broker-a": True,
    "partition isolate c1 among c1, broker-b": False,
    "loss 100 c1": True,
    "loss 49 c1": False,
    "loss 100 c1 code PULL_MESSAGE": True,
    "loss 100 c1 code HEART_BEAT": False,
    "loss 100 c1 group another": False,
    "loss 100 c1 topic orders": True,
    "loss 100 c1 topic another": False,
    "loss 100 c1 during stopping": False,
    "tcp-loss 50 c1": True,
    "tcp-loss 49 c1": False,
    "delay 1000 c1": True,
    "delay 999 c1": False,
    "delay 500 c1 jitter 500": True,
    "delay 1000 c1 group another": False,
    "delay 1000 c1 during starting": False,
    "drop from c1": True,
    "drop from broker-a": False,
    "drop PULL_MESSAGE from c1 group g": True,
    "drop from c1 next 5": False,
    "drop from c1 group another": False,
    "drop from c1 during stopping": False,
    "refuse PULL_MESSAGE with SYSTEM_BUSY from c1": True,
    "refuse HEART_BEAT with SYSTEM_BUSY from c1": False,
    "refuse PULL_MESSAGE with SYSTEM_BUSY from c2": False,
    "refuse PULL_MESSAGE with SYSTEM_BUSY from c1 next 5": False,
    "refuse PULL_MESSAGE with SYSTEM_BUSY from c1 group another": False,
    "refuse PULL_MESSAGE with SYSTEM_BUSY from c1 during starting": False,
    "kill c1": False,
    "stop c1": False,
    "power-off c1": False,
    "suspend c1": False,
    "slow-cpu c1 1000": True,
    "slow-cpu c1 999": False,
    "slow-cpu c2 1000": False,
    "skew broker-a 5000": False,
    "drift broker-a 200": False,
    "jump broker-a 5000": False,
    "slow-disk broker-a 1000": False,
    "slow-disk broker-a 999": False,
    "slow-disk broker-b 1000": False,
    "lost-writes broker-a": False,
    "permission broker-a 2": False,
    "scale g 4": False,
    "rebalance g broker": False,
    "consume-mode g pop": False,
    "restart c1 with {pullBatchSize = 16}": False,
    "upgrade c1 one every 30s": False,
}
"""Mapping fault -> whether pulls of the member c1 of the group g from broker-a are blocked."""


def test_every_kind_has_a_row_among_the_frames():
    assert list(dict.fromkeys(fault_of(line).kind for line in BLOCKING)) == list(FAULTS)


@each_case("line", BLOCKING)
def test_a_fault_blocks_the_frames_that_it_keeps_from_arriving_at_all_times(line):
    fault = fault_of(line)
    assert fault.blocks(fault.scope, fault.parameters(), PULL) is BLOCKING[line]


@pytest.mark.parametrize(("flush_ms", "is_blocked"), [(1000, True), (999, False)])
def test_a_slow_disk_blocks_what_waits_for_a_flush(flush_ms, is_blocked):
    fault = fault_of(f"slow-disk broker-a {flush_ms}")
    send = attrs.evolve(PULL, code=RequestCode.SEND_MESSAGE)
    assert fault.blocks(fault.scope, fault.parameters(), send) is is_blocked


# --- no other place ---------------------------------------------------------------------------------

LITERALS = {
    (
        "oracles/lost_messages.py",
        "cut",
    ): "why a message is lost: its broker cut it from its log",
}
"""Mapping (module, literal that is the name of a kind by chance) -> what it means."""


def test_analysis_knows_no_kind_by_its_name():
    root = Path(emulator.analysis.__file__).parent
    found = [
        (path.relative_to(root).as_posix(), node.value)
        for path in sorted(root.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and node.value in FAULTS
    ]
    assert found == list(LITERALS)
