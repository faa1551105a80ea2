"""Who owns, who believes, what waits: consoles, pages, `why`, comparisons, frames, the judge and Spark's tasks agree.

The traces are random, and some rows come from processes that have ended. Each surface is asked as its users ask it: the
console's state after the rows so far, `why` and a comparison by the files of the run, the judge's inputs at the end of
the instant.
"""

import random
from heapq import merge
from itertools import chain

import attrs
import pytest
from pyspark.sql import functions as F

from analysis.busy_traces import BROKER_NAMES, busy_trace
from analysis.random_traces import END_S, ENDS
from analysis.trace_rows import SECOND, HandMadeTrace, RowsOf, write_run
from emulator.analysis.inputs.holdings import Holdings
from emulator.analysis.inputs.messages import TracedMessages
from emulator.analysis.inputs.queue_owners import QueueOwners
from emulator.analysis.measures.lag import Lags
from emulator.comparison.beliefs import OWNERS, About, HeldNow
from emulator.dataset.landed_runs import open_landed
from emulator.history.presence import Presence
from emulator.history.progress import GroupProgress
from emulator.history.rows.feed import RowFeed
from emulator.history.rows.lookup import TraceRows
from emulator.history.rows.queues import GroupQueue
from emulator.lake.landing import land
from emulator.notebook.raw_frames import lag
from emulator.pipeline.consumption import broadcasting
from emulator.state.live import LiveState
from emulator.testing import a_scenario
from emulator.trace.run_directory import RunDirectory
from emulator.trace.schema import BELIEFS, LIFECYCLE, MESSAGES, OWNERSHIP
from emulator.why.backlog import backlog
from emulator.why.holders import holds_of
from emulator.why.question import QueueQuestion
from emulator.why.words import NodeNames
from nodes.beliefs import BeliefKind

TABLES = (BELIEFS, OWNERSHIP, LIFECYCLE, MESSAGES)
KINDS = (BeliefKind.VIEW, BeliefKind.SUBSCRIPTION, BeliefKind.ROUTE)
NAMES = NodeNames({})


class OneProcessPerNode(HandMadeTrace):
    """A trace in which a process of a node starts only after the one before it has ended, as in each real run."""

    def life(self, node, event, detail="", role=None):
        lives = [row for row in self.rows[LIFECYCLE.name] if row[2] == node]
        if event == "started" and lives and lives[-1][5] not in ENDS:
            super().life(node, "killed")
        return super().life(node, event, detail, role)


@attrs.define
class Judged:
    """What the judge's inputs say after an instant."""

    owners: dict
    values: dict
    waiting: dict


def judged_at(trace, instants_ns):
    """Mapping instant -> what the judge knows after it, in one pass over the run."""
    presence = Presence(BROKER_NAMES)
    owners = QueueOwners(presence, TracedMessages(presence))
    holdings = Holdings(presence, *KINDS)
    progress = GroupProgress(presence)
    measured = Lags(TracedMessages(presence), progress)
    feed = RowFeed((presence, owners, progress, measured, holdings))
    found, left = {}, sorted(instants_ns)

    def look(before_ns):
        while left and left[0] < before_ns:
            values = {
                about: {node: text for (node, _), (_, text) in of.held.items()} for about, of in holdings.of.items()
            }
            owned = {queue: sorted({node for node, _ in owners.now(queue)}) for queue in owners.of}
            waiting = {(of.queue, of.node): of.end for of in measured.lags() if of.end}
            found[left.pop(0)] = Judged(owned, values, waiting)

    rows = RowsOf(trace)
    for row in merge(*(rows.rows(table) for table in feed.tables)):
        for _ in feed.reach(row.t_ns):
            pass
        look(row.t_ns)
        for _ in feed.read((row,)):
            pass
    for _ in chain(feed.settle()):
        pass
    look(END_S * SECOND + 1)
    return found


def live_states(trace, instants_ns):
    """Mapping instant -> the console's state and the comparison's, after its rows."""
    state, compared, found, left = LiveState(a_scenario()), HeldNow(NAMES), {}, sorted(instants_ns)

    def look(before_ns):
        while left and left[0] < before_ns:
            t_ns = left.pop(0)
            owners = {queue: sorted(nodes) for queue, nodes in state.owners.owners().items()}
            values = {
                key: {node: belief.value for node, belief in state.beliefs.held(*key).items()}
                for key in state.beliefs.subjects()
            }
            others = {
                queue: compared.held(About("", OWNERS, f"{queue.name} of {queue.group}")).value for queue in owners
            }
            held = {(*key, node): compared.held(About(node, *key)).value for key, of in values.items() for node in of}
            found[t_ns] = owners, values, others, held

    tagged = [(row, table) for table in TABLES for row in trace.rows[table.name]]
    rows_of = {table: iter(RowsOf(trace).rows(table)) for table in TABLES}
    for row, table in sorted(tagged, key=lambda item: item[0][0]):
        look(row[1])
        state.note(table, row)
        value = next(rows_of[table])
        if table is not MESSAGES:
            compared.note(value)
    look(END_S * SECOND + 1)
    return found


def trace_and_instants(seed, instants):
    """A random trace, and random instants of it."""
    chance = random.Random(f"instants {seed}")
    instants_ns = sorted({chance.randrange(END_S * 10) * (SECOND // 10) for _ in range(instants)})
    return busy_trace(seed, trace_class=OneProcessPerNode), instants_ns


def disagreements(seed, folder, instants):
    """What surfaces say differently of a random run at random instants."""
    trace, instants_ns = trace_and_instants(seed, instants)
    run = write_run(trace, folder, END_S)
    rows = TraceRows(run)
    frame = lag(RunDirectory(run, {"virtual_s": float(END_S)}), SECOND // 10)
    judged, live = judged_at(trace, instants_ns), live_states(trace, instants_ns)
    found = []

    def compare(subject, t_ns, surface, shown, expected):
        if shown != expected:
            found.append(f"seed {seed}, {t_ns / SECOND} s, {subject}: {surface} says {shown}, the judge {expected}")

    for t_ns in instants_ns:
        expected = judged[t_ns]
        owners, values, others, held = live[t_ns]
        for queue, nodes in owners.items():
            compare(queue, t_ns, "the console", nodes, expected.owners.get(queue, []))
            compare(queue, t_ns, "a comparison", others[queue], " and ".join(nodes) or "no consumer")
            asked = QueueQuestion(queue.topic, queue.broker_name, queue.queue_id, queue.group, t_ns)
            own = [hold.node for hold in holds_of(rows, queue.group, asked) if hold.owns and not hold.is_shared]
            compare(queue, t_ns, "why", sorted(own), nodes)
        for about, of in expected.values.items():
            if about.kind in KINDS:
                shown = values.get((about.kind, about.subject), {})
                shown = {node: text for node, text in shown.items() if trace.roles[node] == about.role}
                compare(about, t_ns, "the console", shown, of)
                for node, text in shown.items():
                    compare((about, node), t_ns, "a comparison", held[about.kind, about.subject, node], text)
        waiting = {}
        for group in ("g", "h", "all"):
            waiting |= {(item.queue, item.node): item.messages for item in backlog(rows, group, t_ns).queues}
        compare("waiting", t_ns, "why", waiting, expected.waiting)
        at = frame[(frame["t_ns"] == t_ns) & (frame["lag"] > 0)]
        shown = {(row.group, row.topic, row.queue_id, row.node): row.lag for row in at.itertuples()}
        by_place = {(of.group, of.topic, of.queue_id, node): n for (of, node), n in expected.waiting.items()}
        compare("waiting", t_ns, "a frame", shown, by_place if t_ns else {})
    return found


@pytest.mark.parametrize("seed", range(6))
def test_surfaces_give_one_answer_at_any_instant(seed, tmp_path):
    assert disagreements(seed, tmp_path, 6) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6, 206))
def test_surfaces_give_one_answer_at_any_instant_of_two_hundred_runs(seed, tmp_path):
    assert disagreements(seed, tmp_path, 20) == []


def at_instant(rows, run, t_ns):
    """The rows of silver whose interval has this instant of a run."""
    return [
        row for row in rows if row.run == run and row.start_ns <= t_ns and (row.end_ns is None or t_ns < row.end_ns)
    ]


def queue_of(row):
    return GroupQueue(row.group, row.topic, row.broker_name, row.queue_id)


@pytest.mark.slow
def test_silver_says_what_the_judge_says_at_any_instant(spark, tmp_path):
    seeds = range(20)
    random_runs = {f"run-{seed}": trace_and_instants(seed, 20) for seed in seeds}
    land(
        [write_run(trace, tmp_path / "runs" / run, END_S) for run, (trace, _) in random_runs.items()], tmp_path / "lake"
    )
    landed = open_landed(spark, tmp_path / "lake")
    holds, doubles = landed.queue_holds().collect(), landed.double_owners().collect()
    held = landed.holdings().where(F.col("kind").isin(*KINDS)).collect()
    broadcast = {(row.run, row.group): row.since_ns for row in broadcasting(landed.table(BELIEFS.name)).collect()}

    for run, (trace, instants_ns) in random_runs.items():
        for t_ns, expected in judged_at(trace, instants_ns).items():
            owners, values = {}, {}
            for row in at_instant(holds, run, t_ns):
                owners.setdefault(queue_of(row), []).append(row.node)
            for row in at_instant(held, run, t_ns):
                values.setdefault((row.kind, row.role, row.subject), {})[row.node] = row.value
            assert {queue: sorted(nodes) for queue, nodes in owners.items()} == {
                queue: nodes for queue, nodes in expected.owners.items() if nodes
            }, (run, t_ns)
            assert values == {
                (about.kind, about.role, about.subject): of for about, of in expected.values.items() if of
            }, (run, t_ns)
            several = {
                queue
                for queue, nodes in expected.owners.items()
                if len(nodes) > 1 and t_ns < broadcast.get((run, queue.group), END_S * SECOND)
            }
            assert {queue_of(row) for row in at_instant(doubles, run, t_ns)} == several, (run, t_ns)
