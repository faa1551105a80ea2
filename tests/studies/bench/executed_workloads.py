"""`python executed.py SCENARIO LEVEL`: runs a scenario in a process that is warm; prints CPU seconds and MiB.

It runs with the packages of an earlier release, too, so it knows nothing of ours but how to run a scenario.
"""

import gc
import inspect
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from emulator.run import run_scenario
from emulator.spec import load, loads

_WARM_UP = """
[scenario]
name = "warm-up"
run_for_s = 5
[nameserver]
count = 1
[[broker]]
name = "broker-a"
[[topic]]
name = "orders"
[[consumer]]
group = "shop"
topics = ["orders"]
[[producer]]
group = "tills"
topic = "orders"
"""


def main(path: str, level: str) -> None:
    """Run the scenario once to warm up, and once for the figures."""
    with tempfile.TemporaryDirectory() as runs:
        execute = _runner(level)
        execute(loads(_WARM_UP, "warm-up"), runs=Path(runs))
        scenario = load(Path(path))
        gc.collect()
        begin_s = time.process_time()
        execute(scenario, runs=Path(runs))
        cpu_s = time.process_time() - begin_s
    print(cpu_s, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)  # noqa: T201 - it is the result


def _runner(level: str) -> Callable[..., object]:
    """Releases before there were levels write all rows."""
    if "level" not in inspect.signature(run_scenario).parameters:
        return run_scenario
    from emulator.trace.schema import TraceLevel

    return partial(run_scenario, level=TraceLevel(level))


if __name__ == "__main__":
    main(*sys.argv[1:])
