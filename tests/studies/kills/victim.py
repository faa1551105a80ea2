"""`python -m studies.kills.victim MODE RUNS`: runs a cluster without end, and says how far it has come.

Prints the run directory, then lines with wall time (`time.monotonic`) and seq of a row that was recorded then.
"""

import os
import sys
import time
from pathlib import Path

from emulator.console.session import Session
from emulator.run import run_scenario
from emulator.testing import a_scenario, broker_groups
from emulator.time.mode import TimeMode
from emulator.trace.batches import Row
from emulator.trace.schema import TraceTable

_REPORTS_APART_S = 0.01


class _Reports:
    def __init__(self) -> None:
        self._next_s = 0.0

    def note(self, _table: TraceTable, row: Row) -> None:
        """A `RowListener`."""
        now_s = time.monotonic()
        if now_s >= self._next_s:
            self._next_s = now_s + _REPORTS_APART_S
            os.write(1, f"{now_s} {row[0]}\n".encode())


async def _name_run(session: Session) -> None:
    os.write(1, f"{session.run_directory}\n".encode())


def main(mode: str, runs: str) -> None:
    """Run until the process is killed."""
    scenario = a_scenario(
        nameservers=2, brokers=broker_groups("broker-a", "broker-b", slaves=1), consumers=4, rate_per_s=50
    )
    run_scenario(
        scenario,
        mode=TimeMode(mode),
        runs=Path(runs),
        endless=True,
        listeners=(_Reports().note,),
        session_tasks=(_name_run,),
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
