"""A program that is run beside a live cluster, and ends it with its own end: `rmqemu up SPEC --exec COMMAND...`."""

import os
import re
import shlex
import sys
from pathlib import Path

import trio

from emulator.namesrv_addr import namesrv_addr
from emulator.verbs.desk import Desk

_NOT_FOUND, _NOT_EXECUTABLE = 127, 126
"""What shells give for a command that cannot be run."""


class GuestCommand:
    """Runs a command once all nodes are ready, with the cluster's address in its environment; an attendant of a run.

    The command finds `NAMESRV_ADDR`, which RocketMQ's own clients read, too (that of the first named guest; each has
    its own in `NAMESRV_ADDR_SHOP`, where it is called shop);
    `RMQEMU_RUN`, for `rmqemu ctl --run "$RMQEMU_RUN" kill broker-a`; and `rmqemu` on its PATH.

    Args:
        line: the command and its words.
    """

    def __init__(self, line: str) -> None:
        self._words = shlex.split(line)
        self.exit_status = 0
        self.problem = ""
        """Why it could not be run."""

    async def attend(self, desk: Desk) -> None:
        """Run it; its end is that of the run."""
        await desk.cluster.started.wait()
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
        names = desk.cluster.scenario.guests
        surroundings = {
            **os.environ,
            "NAMESRV_ADDR": namesrv_addr(desk.cluster, next(iter(names), None)),
            **{_variable(name): namesrv_addr(desk.cluster, name) for name in names},
            "RMQEMU_RUN": str(desk.run_directory.resolve()),
            "PATH": path,
        }
        try:
            done = await trio.run_process(self._words, check=False, env=surroundings)
            self.exit_status = done.returncode if done.returncode >= 0 else 128 - done.returncode
        except OSError as error:
            self.problem = f"{self._words[0]}: {error.strerror or error}"
            self.exit_status = _NOT_FOUND if isinstance(error, FileNotFoundError) else _NOT_EXECUTABLE
        desk.leaving.set()


def _variable(guest: str) -> str:
    return f"NAMESRV_ADDR_{re.sub(r'[^A-Za-z0-9]', '_', guest).upper()}"
