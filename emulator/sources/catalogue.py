"""All sources, in order."""

from emulator.sources import locks, members, notices, offsets, queues, shares
from emulator.sources.source import Row, Source, judge

SOURCES: tuple[Source, ...] = (
    *queues.SOURCES,
    *members.SOURCES,
    *notices.SOURCES,
    *shares.SOURCES,
    *locks.SOURCES,
    *offsets.SOURCES,
)
BY_ID = {source.id: source for source in SOURCES}


def play(source_id: str) -> Row:
    """Play one source, in whatever process this is called in."""
    return judge(BY_ID[source_id])
