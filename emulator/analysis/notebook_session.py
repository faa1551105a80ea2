"""Spark's session in a notebook, where whatever a child process prints would end up below the cell."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark import SparkContext
from pyspark.sql import SparkSession

from emulator.analysis.session import STDERR, spark_session


def notebook_session() -> SparkSession:
    """As `spark_session`; a JVM that it starts prints nothing, since its errors are raised here anyway.

    Raises:
        JavaNotFoundError: there is no Java to run on.
    """
    if SparkContext._gateway is not None:  # noqa: SLF001 - the only way to tell whether Java runs
        return spark_session()
    with _children_print_nothing():
        return spark_session()


@contextmanager
def _children_print_nothing() -> Iterator[None]:
    before, nothing = os.dup(STDERR), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, STDERR)
    try:
        yield
    finally:
        os.dup2(before, STDERR)
        os.close(before)
        os.close(nothing)
