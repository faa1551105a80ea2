"""Small run directories to land."""

from concurrent.futures import ThreadPoolExecutor

from analysis.trace_rows import HandMadeTrace, killed_run, write_run
from emulator.lake.landing import Landed, commit
from emulator.lake.layout import RunEntry

END_S = 40
SCENARIO = {
    "scenario": {"name": "two-consumers", "run_for_ms": END_S * 1_000},
    "nameserver": [{"name": "ns-1"}],
    "broker": [{"name": "broker-a"}],
    "topic": [{"name": "t", "queues": 2}],
    "consumer": [{"group": "g", "names": ["a", "b"], "topics": ["t"]}],
}


def a_trace(messages=3):
    """Rows of several tables, with non-ASCII text."""
    trace = HandMadeTrace()
    for node in "ab":
        trace.at(0).life(node, "started", "g", role="consumer").subscribe(node)
    trace.at(0).life("broker-a", "started", role="broker")
    trace.at(1).believe("a", {"cids": ["127.1.10.1@1#0"]}, source="127.1.2.1:10911").own("a", "acquired", offset=0)
    for offset in range(messages):
        trace.at(2 + offset).store(offset).consume("a", offset)
    trace.at(8).fault("begin", "cut-1", "cut", "a → broker-a")
    return trace


def write(folder, name, messages=3, **manifest):
    """A run that has ended, with segments of a few rows."""
    return write_run(a_trace(messages), folder / name, END_S, segment_rows=2, **{"scenario": SCENARIO, **manifest})


def killed(folder, name, messages=3, **head):
    """A run whose emulator was killed: most of its rows wait in the journal."""
    return killed_run(a_trace(messages), folder / name, closed=2, **{"scenario": SCENARIO, **head})


def rows_of(run, table):
    """The rows of a table of a run directory, as the dataset has them."""
    return [{"run": run.run, **row} for part in run.trace.tables(table) for row in part.to_pylist()]


def commit_at_once(uri, landings, commits):
    """Several landings list runs in one snapshot at the same time, as fast as they can."""

    def commit_some(landing):
        for number in range(commits):
            entry = RunEntry(f"run-{landing}-{number}", 1, "content", "digest", "release")
            commit(uri, [Landed(runs=(entry,))])

    with ThreadPoolExecutor(landings) as pool:
        list(pool.map(commit_some, range(landings)))
