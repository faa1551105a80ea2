"""Distinguishing a time that was taken in a case from a small number that was given to it."""

ORIGIN_MS = 1_700_000_000_000
"""When every case begins."""


def shown_version(version):
    taken = version.timestamp >= ORIGIN_MS
    timestamp = f"now+{version.timestamp - ORIGIN_MS}" if taken else version.timestamp
    return [version.state_version, timestamp, version.counter]
