"""A run that is divided into shares gives the findings of the run as a whole.

Messages go to the shares of their queue and of their key, and all other rows to every share; a part of what is found
crosses a process boundary, so it is pickled here, too.
"""

import pickle

import pytest

from analysis.busy_traces import BROKER_NAMES, busy_trace
from analysis.random_traces import END_S
from analysis.trace_rows import SECOND, RowsOf
from emulator.analysis.inputs.facts import RunFacts
from emulator.analysis.judge import judge_parts, judge_rows, judge_share
from emulator.history.rows.shares import EVERYWHERE, PARTITIONED, WITH_KEYS, RunShare
from emulator.trace.schema import MESSAGES

FACTS = RunFacts(
    END_S * SECOND, broker_names=BROKER_NAMES, consume_ms={"g": 300, "h": 0}, ordered=("g",), exclusive=("h",)
)


class Only:
    """The rows of a source without some of its messages."""

    def __init__(self, source, is_there):
        self._source = source
        self._is_there = is_there

    def rows(self, table):
        rows = self._source.rows(table)
        return filter(self._is_there, rows) if table is MESSAGES else rows

    def frames(self):
        return self._source.frames()


def shares_of(row, of):
    """The shares to which a message goes; none: it is read once all shares are."""
    if row.event in EVERYWHERE:
        return [RunShare(number, of) for number in range(of)]
    if row.event not in PARTITIONED:
        return []
    return [share for share in (RunShare(number, of) for number in range(of)) if has(share, row)]


def has(share, row):
    by_key = row.key and row.event in WITH_KEYS and share.has_text(row.key)
    return by_key or share.has_queue(row.topic, row.broker_name, row.queue_id)


def of_share(source, share):
    return Only(source, lambda row: share in shares_of(row, share.of))


def undivided(source):
    return Only(source, lambda row: row.event not in PARTITIONED)


@pytest.fixture(scope="module", params=[10, pytest.param(40, marks=pytest.mark.slow)])
def traces(request):
    return [RowsOf(busy_trace(seed)) for seed in range(request.param)]


@pytest.mark.parametrize("number", [pytest.param(1, marks=pytest.mark.slow), 2, 5])
def test_the_shares_of_a_run_find_together_what_one_pass_finds(traces, number):
    seen = {}
    for seed, source in enumerate(traces):
        whole = judge_rows(source, FACTS)
        shares = [RunShare(item, number) for item in range(number)]
        parts = [pickle.loads(pickle.dumps(judge_share(of_share(source, share), FACTS, share))) for share in shares]
        found = judge_parts(undivided(source), FACTS, parts)
        assert found.agreed_ns == whole.agreed_ns
        for name, rows in whole.rows.items():
            assert found.rows[name] == rows, f"trace {seed}, table {name}"
            seen[name] = seen.get(name, 0) + len(rows)
    assert not [name for name in ("overlaps", "orphans", "views", "losses", "keys", "popped", "lags") if not seen[name]]


def test_each_message_of_a_queue_is_in_one_share_by_its_queue_and_in_one_by_its_key(traces):
    rows = [row for source in traces[:5] for row in source.rows(MESSAGES)]
    for row in rows:
        shares = shares_of(row, 4)
        by_queue = [share for share in shares if share.has_queue(row.topic, row.broker_name, row.queue_id)]
        if row.event in PARTITIONED:
            assert len(by_queue) == 1
            assert len(shares) <= 2
    assert any(len(shares_of(row, 4)) == 2 for row in rows)
