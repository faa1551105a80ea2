"""Overlaps, orphans and divergence of views in SQL over the raw Parquet files of many runs, with duckdb.

For traces of groups that allocate their queues and that have recorded neither the queues that they see nor routes, such
as random traces; in others a queue is an orphan only while it can be read.
"""

from pathlib import Path

import duckdb

CHANGES = """
CREATE TABLE ends AS
    SELECT run, node, incarnation, min(seq) AS end_seq, min(t_ns) AS end_ns FROM lifecycle
    WHERE event IN ('stopped', 'crashed', 'killed', 'powered_off') GROUP BY ALL;
CREATE TABLE known AS
    SELECT o.*, e.end_seq, e.end_ns FROM ownership o LEFT JOIN ends e USING (run, node, incarnation)
    WHERE event IN ('acquired', 'dropped') AND (end_seq IS NULL OR seq < end_seq);
-- What a process holds after each of its rows, and nothing after its end.
CREATE TABLE states AS
    SELECT run, "group", topic, broker_name, queue_id, node, incarnation, seq, t_ns, event = 'acquired' AS owns
    FROM known
    UNION SELECT DISTINCT run, "group", topic, broker_name, queue_id, node, incarnation, end_seq, end_ns, false
        FROM known WHERE end_seq IS NOT NULL;
CREATE TABLE steps AS
    SELECT *, owns::INT - coalesce(lag(owns::INT) OVER w, 0) AS step FROM states
    WINDOW w AS (PARTITION BY run, "group", topic, broker_name, queue_id, node, incarnation ORDER BY seq);
"""
LEVELS = """
CREATE TABLE levels AS
    SELECT *, sum(step) OVER w AS owners, lead(t_ns, 1, {end_ns}) OVER w AS until_ns
    FROM (SELECT run, "group", topic, broker_name, queue_id, t_ns, sum(step) AS step FROM steps GROUP BY ALL)
    WINDOW w AS (PARTITION BY run, "group", topic, broker_name, queue_id ORDER BY t_ns);
"""
OVERLAPS = """
SELECT run, "group", topic, broker_name, queue_id, min(t_ns), max(until_ns), max(owners)::INT FROM (
    SELECT *, sum((owners > 1 AND coalesce(before, 0) <= 1)::INT) OVER w AS island FROM (
        SELECT *, lag(owners) OVER v AS before FROM levels
        WINDOW v AS (PARTITION BY run, "group", topic, broker_name, queue_id ORDER BY t_ns))
    WINDOW w AS (PARTITION BY run, "group", topic, broker_name, queue_id ORDER BY t_ns))
WHERE owners > 1 AND t_ns < until_ns GROUP BY run, "group", topic, broker_name, queue_id, island ORDER BY ALL
"""
ORPHANS = """
WITH named AS (
    SELECT run, node, incarnation, trim(unnest(string_split(detail, ','))) AS "group", t_ns, seq FROM lifecycle
    WHERE role = 'consumer' AND event IN ('started', 'ready')),
members AS (
    SELECT run, "group", node, incarnation, min(t_ns) AS t_ns, any_value(end_ns) AS end_ns
    FROM named LEFT JOIN ends USING (run, node, incarnation)
    WHERE "group" <> '' AND (end_seq IS NULL OR seq < end_seq) GROUP BY ALL),
alive AS (
    SELECT run, "group", t_ns, 1 AS step FROM members UNION ALL
    SELECT run, "group", end_ns, -1 FROM members WHERE end_ns IS NOT NULL),
first AS (
    SELECT run, "group", topic, broker_name, queue_id, min(t_ns) AS t_ns FROM known
    WHERE event = 'acquired' GROUP BY ALL),
every AS (
    SELECT run, "group", topic, broker_name, queue_id, t_ns, step AS owners, 0 AS alive, 0 AS there FROM steps
    UNION ALL
    SELECT run, f."group", topic, broker_name, queue_id, a.t_ns, 0, a.step, 0
    FROM first f JOIN alive a USING (run, "group") UNION ALL
    SELECT run, "group", topic, broker_name, queue_id, t_ns, 0, 0, 1 FROM first),
at_instants AS (
    SELECT run, "group", topic, broker_name, queue_id, t_ns,
        sum(owners) AS owners, sum(alive) AS alive, sum(there) AS there
    FROM every GROUP BY ALL),
levels AS (
    SELECT run, "group", topic, broker_name, queue_id, t_ns, lead(t_ns, 1, {end_ns}) OVER w AS until_ns,
        sum(owners) OVER w = 0 AND sum(alive) OVER w > 0 AND sum(there) OVER w > 0 AS lonely
    FROM at_instants WINDOW w AS (PARTITION BY run, "group", topic, broker_name, queue_id ORDER BY t_ns)),
marked AS (
    SELECT *, lonely AND NOT coalesce(lag(lonely) OVER w, false) AS begins FROM levels
    WINDOW w AS (PARTITION BY run, "group", topic, broker_name, queue_id ORDER BY t_ns)),
islands AS (
    SELECT *, sum(begins::INT) OVER w AS island FROM marked
    WINDOW w AS (PARTITION BY run, "group", topic, broker_name, queue_id ORDER BY t_ns))
SELECT run, "group", topic, broker_name, queue_id, min(t_ns), max(until_ns) FROM islands WHERE lonely
GROUP BY run, "group", topic, broker_name, queue_id, island HAVING min(t_ns) < max(until_ns) ORDER BY ALL
"""
VIEWS = """
WITH recorded AS (
    SELECT run, role, subject, node, incarnation, t_ns, end_ns, last(value_hash ORDER BY seq) AS hash
    FROM beliefs LEFT JOIN ends USING (run, node, incarnation)
    WHERE kind = 'view' AND (end_seq IS NULL OR seq < end_seq) GROUP BY ALL),
values_of AS (
    SELECT run, role, subject, node, incarnation, t_ns, hash FROM recorded WHERE end_ns IS NULL OR t_ns < end_ns
    UNION SELECT run, role, subject, node, incarnation, end_ns, '' FROM recorded WHERE end_ns IS NOT NULL),
held AS (
    SELECT *, lead(t_ns, 1, {end_ns}) OVER w AS until_ns FROM values_of
    WINDOW w AS (PARTITION BY run, role, subject, node, incarnation ORDER BY t_ns)),
instants AS (SELECT DISTINCT run, role, subject, t_ns FROM values_of),
counted AS (
    SELECT i.run, i.role, i.subject, i.t_ns, count(DISTINCT hash) FILTER (hash <> '') AS views
    FROM instants i LEFT JOIN held h
    ON i.run = h.run AND i.role = h.role AND i.subject = h.subject AND h.t_ns <= i.t_ns AND i.t_ns < h.until_ns
    GROUP BY ALL),
lasting AS (
    SELECT *, lead(t_ns, 1, {end_ns}) OVER w AS until_ns, views > 1 AND coalesce(lag(views) OVER w, 0) <= 1 AS begins
    FROM counted WINDOW w AS (PARTITION BY run, role, subject ORDER BY t_ns)),
islands AS (
    SELECT *, sum(begins::INT) OVER w AS island FROM lasting
    WINDOW w AS (PARTITION BY run, role, subject ORDER BY t_ns))
SELECT run, role, subject, min(t_ns), max(until_ns), max(views) FROM islands WHERE views > 1
GROUP BY run, role, subject, island HAVING min(t_ns) < max(until_ns) ORDER BY ALL
"""
TABLES = ("beliefs", "lifecycle", "ownership")


def connection(runs: list[Path], end_ns: int) -> duckdb.DuckDBPyConnection:
    """A data base with the levels of owners of each queue of some runs that end at the same instant."""
    base = duckdb.connect()
    for table in TABLES:
        files = [str(path) for run in runs for path in sorted((run / "trace" / table).glob("*.parquet"))]
        columns = "regexp_extract(filename, '([^/]+)/trace/', 1) AS run, * EXCLUDE filename"
        base.execute(f"CREATE VIEW {table} AS SELECT {columns} FROM read_parquet({files}, filename = true)")
    return _with_levels(base, end_ns)


def landed_connection(dataset: Path, end_ns: int) -> duckdb.DuckDBPyConnection:
    """As `connection`, of the runs of a dataset of which every file belongs to its snapshot."""
    base = duckdb.connect()
    for table in TABLES:
        base.execute(f"CREATE VIEW {table} AS FROM read_parquet('{dataset}/trace/{table}/*.parquet')")
    return _with_levels(base, end_ns)


def _with_levels(base: duckdb.DuckDBPyConnection, end_ns: int) -> duckdb.DuckDBPyConnection:
    base.execute(CHANGES)
    base.execute(LEVELS.format(end_ns=end_ns))
    return base


def views(base: duckdb.DuckDBPyConnection, end_ns: int) -> list[tuple[object, ...]]:
    """run, role, subject, start_ns, end_ns, views_max."""
    return base.execute(VIEWS.format(end_ns=end_ns)).fetchall()


def overlaps(base: duckdb.DuckDBPyConnection) -> list[tuple[object, ...]]:
    """run, group, topic, broker_name, queue_id, start_ns, end_ns, owners_max."""
    return base.execute(OVERLAPS).fetchall()


def orphans(base: duckdb.DuckDBPyConnection, end_ns: int) -> list[tuple[object, ...]]:
    """run, group, topic, broker_name, queue_id, start_ns, end_ns."""
    return base.execute(ORPHANS.format(end_ns=end_ns)).fetchall()
