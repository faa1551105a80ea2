"""The command with planted bugs: runs of some seeds raise, never end, or are killed while they start.

`python planted.py ARGUMENTS...`, as `rmqemu ARGUMENTS...`.
"""

import os
import signal

from emulator.cli.main import app
from emulator.cluster.cluster import Cluster

CRASHES, HANGS, IS_KILLED, ENDS = 2, 3, 4, 5
"""Seeds."""
_entered = Cluster.__aenter__


def spin():
    while True:
        pass


async def planted(cluster):
    seed = cluster.scenario.seed
    if seed == CRASHES:
        raise ValueError("planted")
    if seed == HANGS:
        spin()
    if seed == IS_KILLED:
        os.kill(os.getpid(), signal.SIGKILL)
    if seed == ENDS:
        os._exit(9)
    return await _entered(cluster)


if __name__ == "__main__":
    Cluster.__aenter__ = planted
    app(prog_name="rmqemu")
