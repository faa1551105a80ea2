"""The real command in a process of its own, and what it left."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq

from emulator.trace.schema import TABLES
from support.forked_command import forked

COMMAND = [sys.executable, "-m", "emulator.cli"]
ENGINE_OF_TESTS = "engine: this process (RMQEMU_ENGINE)"
"""The first line of commands: the environment of the tests names their engine."""

SMALL = """
[scenario]
name = "small"
run_for_s = 70

[network]
delay_ms = 2
jitter_ms = 3

[[broker]]
name = "broker-a"

[[broker]]
name = "broker-b"

[[topic]]
name = "orders"
queues = 4

[[consumer]]
group = "g"
count = 3
topics = ["orders"]

[[producer]]
group = "p"
topic = "orders"
rate_per_s = 5

[[fault]]
kind = "loss"
percent = 10
at_s = 20
for_s = 10

[[fault]]
kind = "kill"
node = "consumer-2"
at_s = 40
"""


def rmqemu(*arguments, cwd, before=None, **environment):
    """Run the command to its end; in a fresh process where something is to be done before, or Python itself is set."""
    words = list(map(str, arguments))
    if before is None and not any(name.startswith("PYTHON") for name in environment):
        return forked(words, cwd, environment)
    return subprocess.run(
        [*COMMAND, *words],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        preexec_fn=before,
    )


def started(*arguments, cwd, before=None):
    """The command while it runs."""
    return subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=before,  # noqa: PLW1509 - the tests have no threads
    )


def write_small(folder, **changes):
    """The small scenario as a file; `changes` replaces text."""
    text = SMALL
    for old, new in changes.items():
        text = text.replace(old, new)
    path = Path(folder) / "small.toml"
    path.write_text(text)
    return path


def manifest_of(run):
    return json.loads((Path(run) / "manifest.json").read_text())


def seqs_of(run):
    """The seq of every row of all closed segments, in order."""
    return sorted(
        seq
        for table in TABLES
        for segment in (Path(run) / "trace" / table.name).glob("seg-*.parquet")
        for seq in pq.read_table(segment, columns=["seq"])["seq"].to_pylist()
    )
