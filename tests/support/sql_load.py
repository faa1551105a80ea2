"""Lag, latency and failed sends in SQL over the raw Parquet files of one run of level full, with duckdb.

For runs in which groups allocate their queues among members that subscribe to all messages of their topics.
"""

from pathlib import Path

import duckdb

TABLES = ("messages", "ownership", "rpc", "beliefs")
# In 5.3.3's numbers, so that nothing of the emulator's own reading is shared.
SENDS = "(10, 310, 320)"
LATENCIES = """
WITH first AS (
    SELECT "group", topic, broker_name, queue_id, "offset", stored_ms, min(t_ns) AS t_ns FROM messages
    WHERE event = 'consumed' GROUP BY ALL),
took AS (
    SELECT "group", first.topic, first.t_ns - s.t_ns AS took_ns FROM first JOIN (
        SELECT topic, broker_name, queue_id, "offset", stored_ms, t_ns FROM messages WHERE event = 'stored') s
    USING (topic, broker_name, queue_id, "offset", stored_ms)),
ranked AS (
    SELECT *, row_number() OVER w AS place, count(*) OVER (PARTITION BY "group", topic) AS messages FROM took
    WINDOW w AS (PARTITION BY "group", topic ORDER BY took_ns))
SELECT "group", topic, any_value(messages),
    min(took_ns) FILTER (place >= 0.5 * messages) / 1e6, min(took_ns) FILTER (place >= 0.99 * messages) / 1e6,
    max(took_ns) / 1e6
FROM ranked GROUP BY ALL ORDER BY ALL
"""
LAGS = """
WITH groups AS (
    SELECT split_part(subject, '/', 1) AS "group", split_part(subject, '/', 2) AS topic, min(t_ns) AS since_ns
    FROM beliefs WHERE kind = 'subscription' GROUP BY ALL),
every AS (
    SELECT groups."group", topic, broker_name, queue_id, t_ns, seq, "offset" + 1 AS stored, NULL AS through
    FROM messages JOIN groups USING (topic) WHERE event = 'stored' AND t_ns >= since_ns
    UNION ALL
    SELECT "group", topic, broker_name, queue_id, t_ns, seq, NULL,
        "offset" + (event IN ('consumed', 'filtered'))::INT
    FROM messages WHERE event IN ('consumed', 'filtered', 'committed')
    UNION ALL
    SELECT "group", topic, broker_name, queue_id, t_ns, seq, NULL, "offset" FROM ownership
    WHERE event = 'acquired' AND "offset" >= 0),
behind AS (
    SELECT "group", topic, broker_name, queue_id, t_ns, seq,
        max(stored) OVER w - greatest(coalesce(max(through) OVER w, min(stored) OVER w - 1), 0) AS waiting
    FROM every
    WINDOW w AS (PARTITION BY "group", topic, broker_name, queue_id ORDER BY seq)),
settled AS (
    SELECT "group", topic, broker_name, queue_id, t_ns, greatest(0, last(waiting ORDER BY seq)) AS waiting
    FROM behind GROUP BY ALL)
SELECT "group", topic, broker_name, queue_id, max(waiting), last(waiting ORDER BY t_ns) FROM settled
GROUP BY ALL HAVING max(waiting) > 0 ORDER BY ALL
"""
FAILED = f"""
WITH attempts AS (
    SELECT dst AS producer, status = 0 AS good, t_ns FROM rpc
    WHERE kind = 'response' AND event = 'delivered' AND code IN {SENDS}
    UNION ALL SELECT src, false, t_ns FROM rpc WHERE event = 'timed_out' AND code IN {SENDS})
SELECT producer, count(*) FILTER (good), count(*) FILTER (NOT good) FROM attempts GROUP BY ALL ORDER BY ALL
"""


class SqlLoad:
    """The three questions about one run."""

    def __init__(self, run: Path) -> None:
        self._base = duckdb.connect()
        for table in TABLES:
            files = [str(path) for path in sorted((run / "trace" / table).glob("*.parquet"))]
            self._base.execute(f"CREATE VIEW {table} AS SELECT * FROM read_parquet({files})")

    def latencies(self) -> list[tuple[object, ...]]:
        """group, topic, messages, p50_ms, p99_ms, max_ms."""
        return self._base.execute(LATENCIES).fetchall()

    def lags(self) -> list[tuple[object, ...]]:
        """group, topic, broker_name, queue_id, most, end."""
        return self._base.execute(LAGS).fetchall()

    def sends(self) -> list[tuple[object, ...]]:
        """producer, acknowledged, failed."""
        return self._base.execute(FAILED).fetchall()
