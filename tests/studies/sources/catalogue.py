"""All sources, in order."""

import os
from pathlib import Path

import attrs

from studies.process_log import open_log
from studies.sources import assigners, locks, members, notices, offsets, queues, shares
from studies.sources.allocations import Compared
from studies.sources.source import Row, Source, compare, judge

SOURCES: tuple[Source, ...] = (
    *queues.SOURCES,
    *members.SOURCES,
    *notices.SOURCES,
    *shares.SOURCES,
    *assigners.SOURCES,
    *locks.SOURCES,
    *offsets.SOURCES,
)
BY_ID = {source.id: source for source in SOURCES}


def execute_source(source_id: str) -> Row:
    """Run one source, in whatever process this is called in; what its nodes log is dropped."""
    with open_log(Path(os.devnull)):
        return judge(BY_ID[source_id])


def compare_source(source_id: str) -> Compared | None:
    """Run it with and without an assigner; see `studies.sources.source.compare`."""
    with open_log(Path(os.devnull)):
        return compare(BY_ID[source_id])


def execute_and_compare(source_id: str) -> Row:
    """Both."""
    return attrs.evolve(execute_source(source_id), with_assigner=compare_source(source_id))
