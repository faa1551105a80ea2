"""Workers of a cluster: whether there are any, and whether they have this package."""

import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from emulator.base.errors import UserError
from emulator.dataset.connect import is_connect
from emulator.dataset.failures import raise_errors_only
from emulator.trace.run_directory import versions

if TYPE_CHECKING:
    import pyarrow as pa

WORKERS_S = 60.0
"""Wall seconds that a master may take to give a worker."""
_LOOK_EVERY_S = 0.2
_PROBES = 4
_ANSWER = "host string, version string"
_MISSING = "not installed"
_NO_LIMIT = (1 << 31) - 1
"""Of the bytes of a batch; Spark looks at no size then."""


class WorkersError(UserError):
    """Workers are missing, or cannot do what they are for; the text says which, and what to do."""


def prepare(spark: SparkSession) -> None:
    """Fit any session, also one that somebody has made without us, to what tasks of this package do."""
    raise_errors_only()
    use_this_python(spark)
    fill_batches_by_rows(spark)


def use_this_python(spark: SparkSession) -> None:
    """Have workers on this machine run this interpreter, which has the packages, in place of any `python3` on `PATH`.

    A session that somebody has made without us would take that one: kernels of editors call `.venv/bin/python`, and
    activate nothing. `PYSPARK_PYTHON` says otherwise, and on other machines it is theirs to know.
    """
    if is_connect(spark) or "PYSPARK_PYTHON" in os.environ:
        return
    context = spark.sparkContext
    if (context.master or "").startswith("local"):
        context.pythonExec = sys.executable


def fill_batches_by_rows(spark: SparkSession) -> None:
    """Have a session hand workers batches of so many rows, however large these are.

    To limit their bytes, Spark adds up the sizes of all columns, nested ones included, for each row, which takes
    three times as long as all else with packed rows. A row is small, and a batch has 10,000.
    """
    spark.conf.set("spark.sql.execution.arrow.maxBytesPerBatch", str(_NO_LIMIT))


def has_workers(spark: SparkSession) -> bool:
    """Whether a classic session has executors besides its driver."""
    return len(spark.sparkContext._jsc.sc().statusTracker().getExecutorInfos()) > 1  # noqa: SLF001 - no other way


def require_workers(spark: SparkSession, master: str, patience_s: float) -> None:
    """Wait until a standalone master has given a worker; Spark would wait for ever.

    Args:
        spark: a classic session.
        master: its master; those of other kinds are not waited for.
        patience_s: how long at most.

    Raises:
        WorkersError: none has come.
    """
    if not master.startswith("spark:"):
        return
    give_up_s = time.monotonic() + patience_s
    while not has_workers(spark):
        if time.monotonic() > give_up_s:
            raise WorkersError(no_workers(master, patience_s))
        time.sleep(_LOOK_EVERY_S)


def no_workers(master: str, patience_s: float) -> str:
    """The line about a master that gives no worker."""
    return f"{master} has given no worker for {patience_s:g} s: start one, or free a core"


def require_same_package(spark: SparkSession, where: str) -> None:
    """Run a tiny job, and refuse workers without this package, or with another version of it.

    Args:
        spark: classic or Connect.
        where: it runs, for the message.

    Raises:
        WorkersError: the package is missing on a worker, or differs.
    """
    own = versions()["rocketmq-emulator"]
    answers = spark.range(0, _PROBES, 1, _PROBES).mapInArrow(_reporter(), _ANSWER).distinct().collect()
    for host, version in sorted(answers):
        if version == own:
            continue
        has = "no rocketmq-emulator" if version == _MISSING else f"rocketmq-emulator {version}"
        raise WorkersError(f"{where}: worker {host} has {has}: expected {own}, as here")


def _reporter() -> "Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]":
    """A function that a worker without this package can run: Spark sends it by value, since it is a local one."""
    missing = _MISSING

    def report(batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        import socket

        import pyarrow as pa

        try:
            from emulator.trace.run_directory import versions

            version = versions()["rocketmq-emulator"]
        except ImportError:
            version = missing
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"host": [socket.gethostname()], "version": [version]})

    return report
