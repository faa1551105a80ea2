"""All sources, in order."""

import os
from pathlib import Path

from emulator.run.log import open_log
from studies.sources import locks, members, notices, offsets, queues, shares
from studies.sources.source import Row, Source, judge

SOURCES: tuple[Source, ...] = (
    *queues.SOURCES,
    *members.SOURCES,
    *notices.SOURCES,
    *shares.SOURCES,
    *locks.SOURCES,
    *offsets.SOURCES,
)
BY_ID = {source.id: source for source in SOURCES}


def play_source(source_id: str) -> Row:
    """Play one source, in whatever process this is called in; what its nodes log is dropped."""
    with open_log(Path(os.devnull)):
        return judge(BY_ID[source_id])
