"""What plans of Spark consist of, and how many jobs it has run."""

import re

import attrs

_OPERATOR = re.compile(r"^[\s:|+\-*]*(?:\(\d+\) )?(\w+)(.*)$")


@attrs.frozen
class PlanCounts:
    """How many operators of each kind a plan has."""

    exchanges: int
    """Shuffles; those that are used again are not counted."""
    broadcasts: int
    """As of `exchanges`."""
    sorts: int
    scans: int
    """Of files, and of tables without files."""
    python: int
    """Operators that run Python."""


def plan_counts(frame):
    """Count the operators of the plan of a DataFrame of a classic session without adaptive execution."""
    plan = frame._jdf.queryExecution().executedPlan().toString()
    names = [match[1] for line in plan.splitlines() if (match := _OPERATOR.match(line))]
    return PlanCounts(
        exchanges=names.count("Exchange"),
        broadcasts=names.count("BroadcastExchange"),
        sorts=names.count("Sort"),
        scans=sum(name in ("FileScan", "Scan", "LocalTableScan", "BatchScan") for name in names),
        python=sum("Python" in name or "Arrow" in name or "Pandas" in name for name in names),
    )


def jobs(session):
    """How many jobs the application of a classic session has run."""
    return session.sparkContext._jsc.sc().dagScheduler().numTotalJobs()
