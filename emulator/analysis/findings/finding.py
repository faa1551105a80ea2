"""What all findings that causes explain have in common."""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any

import attrs

from emulator.analysis.findings.cause_share import CauseShare
from emulator.history.rows.row_classes import Span


class Cause(StrEnum):
    """Why views and owners may differ for a while."""

    START = "start"
    """The group has not agreed yet, or only just."""
    NOTIFIED = "notified"
    """A broker's list of members changed, and it notified the members."""
    ROUND = "round"
    """Members learn of a change with their next pass, since no notification reaches them for sure."""
    ORDER_LOCK = "order lock"
    """An ordered consumer ended without unlocking its queues."""
    ROUTE = "route"
    """A broker or topic came, went or changed; clients poll routes."""
    RETURNED = "returned"
    """A process runs again, or a link carries frames again; clients send heartbeats and poll routes."""
    SILENT = "silent"
    """A process or a link is silent; brokers and nameservers wait before they believe it."""
    ASSIGNER = "assigner"
    """Members ask another assigner than before, or the first one; it collects their claims before it allocates."""
    NONE = "none"
    """No timer of RocketMQ explains it, or no longer."""


NO_COLUMN: Mapping[str, Any] = MappingProxyType({"column": False})
"""Metadata of a field that a finding needs to be explained, and that is no column of its table."""


@attrs.frozen(kw_only=True)
class Explained:
    """How causes explain a finding; columns behind those of the finding itself."""

    causes: tuple[CauseShare, ...] = ()
    """The disturbances on its chain, each with its share: `[{"id": ..., "what": ..., "share": ...}, ...]`."""
    cause: str = Cause.NONE
    """What explains it, of `Cause`."""
    explained_by: str = ""
    """The disturbance, for people; with the cause `none`, the first of `causes`, though it explains no more."""
    excess_ns: int = 0
    """How long it lasted outside of all that causes explain."""
    violation: bool = False


@attrs.frozen(kw_only=True)
class JudgedFinding:
    """A finding that no cause can explain: it is a violation, or none, whatever led to it."""

    causes: tuple[CauseShare, ...] = ()
    """The disturbances on its chain, each with its share: `[{"id": ..., "what": ..., "share": ...}, ...]`."""
    violation: bool = False


def active_spans() -> Any:
    """A field for the parts of an interval that have an impact; None: all of it."""
    default: tuple[Span, ...] | None = None
    return attrs.field(default=default, kw_only=True, repr=False, metadata=NO_COLUMN)
