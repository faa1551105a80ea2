"""When servers last heard from those who send them heartbeats."""

from collections.abc import Sequence

from emulator.history.rows.reader import frame_counts
from emulator.trace.batches import Row
from emulator.trace.schema import COUNTS, RPC, TraceTable
from emulator.web.sections import Entries
from nodes.protocol.registry import codes_where
from nodes.units import NS_PER_MS

_HEARTBEATS = codes_where(lambda exchange: exchange.is_heartbeat)
"""Requests after which a server counts a client or a broker as alive."""
_RPC_T_NS, _SRC, _DST = RPC.index("t_ns"), RPC.index("src"), RPC.index("dst")
_EVENT, _KIND, _CODE = RPC.index("event"), RPC.index("kind"), RPC.index("code")


class LastHeartbeats:
    """The last heartbeat of each pair of nodes; where frames are only counted, the second of it."""

    def __init__(self) -> None:
        self.changed: Entries = {}
        """Mapping "server sender" -> emulated ms of the last heartbeat, of pairs with one since this was replaced."""

    def take(self, table: TraceTable, rows: Sequence[Row]) -> None:
        """Read a batch of frames, or of their counts; rows of other tables are left out."""
        if table is RPC:
            for row in rows:
                if row[_CODE] in _HEARTBEATS and row[_EVENT] == "delivered" and row[_KIND] != "response":
                    self.changed[f"{row[_DST]} {row[_SRC]}"] = int(row[_RPC_T_NS]) // NS_PER_MS
        elif table is COUNTS:
            for frame_count in frame_counts(table, rows):
                if (
                    frame_count.code in _HEARTBEATS
                    and frame_count.event == "delivered"
                    and frame_count.kind != "response"
                ):
                    self.changed[f"{frame_count.dst} {frame_count.src}"] = frame_count.second * 1_000
