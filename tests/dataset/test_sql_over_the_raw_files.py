"""Overlaps and orphans once more, in SQL over the raw Parquet files: another engine and another way to think."""

import duckdb
import pytest

from analysis.random_traces import END_S, random_trace
from analysis.trace_rows import SECOND, write_run
from emulator.analysis.judge import RunFacts, judge_rows
from emulator.analysis.rows import StoredRows
from emulator.trace.run_directory import open_run

TRACES = 40

CHANGES = """
CREATE TABLE ends AS
    SELECT node, incarnation, min(seq) AS end_seq, min(t_ns) AS end_ns FROM lifecycle
    WHERE event IN ('stopped', 'crashed', 'killed', 'powered_off') GROUP BY ALL;
CREATE TABLE known AS
    SELECT o.*, e.end_seq, e.end_ns FROM ownership o LEFT JOIN ends e USING (node, incarnation)
    WHERE event IN ('acquired', 'dropped') AND (end_seq IS NULL OR seq < end_seq);
-- What a process holds after each of its rows, and nothing after its end.
CREATE TABLE states AS
    SELECT "group", topic, broker_name, queue_id, node, incarnation, seq, t_ns, event = 'acquired' AS owns FROM known
    UNION SELECT DISTINCT "group", topic, broker_name, queue_id, node, incarnation, end_seq, end_ns, false
        FROM known WHERE end_seq IS NOT NULL;
CREATE TABLE steps AS
    SELECT *, owns::INT - coalesce(lag(owns::INT) OVER w, 0) AS step FROM states
    WINDOW w AS (PARTITION BY "group", topic, broker_name, queue_id, node, incarnation ORDER BY seq);
"""
LEVELS = """
CREATE TABLE levels AS
    SELECT *, sum(step) OVER w AS owners, lead(t_ns, 1, {end_ns}) OVER w AS until_ns
    FROM (SELECT "group", topic, broker_name, queue_id, t_ns, sum(step) AS step FROM steps GROUP BY ALL)
    WINDOW w AS (PARTITION BY "group", topic, broker_name, queue_id ORDER BY t_ns);
"""
OVERLAPS = """
SELECT "group", topic, broker_name, queue_id, min(t_ns), max(until_ns), max(owners)::INT FROM (
    SELECT *, sum((owners > 1 AND coalesce(before, 0) <= 1)::INT) OVER w AS island FROM (
        SELECT *, lag(owners) OVER v AS before FROM levels
        WINDOW v AS (PARTITION BY "group", topic, broker_name, queue_id ORDER BY t_ns))
    WINDOW w AS (PARTITION BY "group", topic, broker_name, queue_id ORDER BY t_ns))
WHERE owners > 1 AND t_ns < until_ns GROUP BY "group", topic, broker_name, queue_id, island ORDER BY ALL
"""
ORPHANS = """
WITH named AS (
    SELECT node, incarnation, trim(unnest(string_split(detail, ','))) AS "group", t_ns, seq FROM lifecycle
    WHERE role = 'consumer' AND event IN ('started', 'ready')),
members AS (
    SELECT "group", node, incarnation, min(t_ns) AS t_ns, any_value(end_ns) AS end_ns
    FROM named LEFT JOIN ends USING (node, incarnation)
    WHERE "group" <> '' AND (end_seq IS NULL OR seq < end_seq) GROUP BY ALL),
alive AS (
    SELECT "group", t_ns, 1 AS step FROM members UNION ALL
    SELECT "group", end_ns, -1 FROM members WHERE end_ns IS NOT NULL),
first AS (
    SELECT "group", topic, broker_name, queue_id, min(t_ns) AS t_ns FROM known WHERE event = 'acquired' GROUP BY ALL),
every AS (
    SELECT "group", topic, broker_name, queue_id, t_ns, step AS owners, 0 AS alive, 0 AS there FROM steps UNION ALL
    SELECT f."group", topic, broker_name, queue_id, a.t_ns, 0, a.step, 0
    FROM first f JOIN alive a USING ("group") UNION ALL
    SELECT "group", topic, broker_name, queue_id, t_ns, 0, 0, 1 FROM first),
at_instants AS (
    SELECT "group", topic, broker_name, queue_id, t_ns, sum(owners) AS owners, sum(alive) AS alive, sum(there) AS there
    FROM every GROUP BY ALL),
levels AS (
    SELECT "group", topic, broker_name, queue_id, t_ns, lead(t_ns, 1, {end_ns}) OVER w AS until_ns,
        sum(owners) OVER w = 0 AND sum(alive) OVER w > 0 AND sum(there) OVER w > 0 AS lonely
    FROM at_instants WINDOW w AS (PARTITION BY "group", topic, broker_name, queue_id ORDER BY t_ns)),
marked AS (
    SELECT *, lonely AND NOT coalesce(lag(lonely) OVER w, false) AS begins FROM levels
    WINDOW w AS (PARTITION BY "group", topic, broker_name, queue_id ORDER BY t_ns)),
islands AS (
    SELECT *, sum(begins::INT) OVER w AS island FROM marked
    WINDOW w AS (PARTITION BY "group", topic, broker_name, queue_id ORDER BY t_ns))
SELECT "group", topic, broker_name, queue_id, min(t_ns), max(until_ns) FROM islands WHERE lonely
GROUP BY "group", topic, broker_name, queue_id, island HAVING min(t_ns) < max(until_ns) ORDER BY ALL
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return [write_run(random_trace(seed), folder / f"random-{seed}", END_S, segment_rows=7) for seed in range(TRACES)]


def in_sql(run, query):
    end_ns = END_S * SECOND
    with duckdb.connect() as base:
        for table in ("ownership", "lifecycle"):
            base.execute(f"CREATE VIEW {table} AS SELECT * FROM read_parquet('{run}/trace/{table}/*.parquet')")
        base.execute(CHANGES)
        base.execute(LEVELS.format(end_ns=end_ns))
        return base.execute(query.format(end_ns=end_ns)).fetchall()


def by_oracles(run):
    return judge_rows(StoredRows(open_run(run)), RunFacts(END_S * SECOND))


def place(row):
    return row.queue.group, row.queue.topic, row.queue.broker_name, row.queue.queue_id, row.start_ns, row.end_ns


def test_overlaps_equal_sql(runs):
    found = [sorted((*place(row), row.owners_max) for row in by_oracles(run).overlaps) for run in runs]
    assert found == [in_sql(run, OVERLAPS) for run in runs]
    assert sum(map(len, found)) > TRACES / 4


def test_orphans_equal_sql(runs):
    found = [sorted(place(row) for row in by_oracles(run).orphans) for run in runs]
    assert found == [in_sql(run, ORPHANS) for run in runs]
    assert sum(map(len, found)) > TRACES / 4
