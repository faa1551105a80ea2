"""Errors of Spark as one line: what failed and where, without the stack of Java."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger

from emulator.base.errors import UserError
from emulator.dataset.settings import LOG, no_room, scratch

_ERROR_OF_PYTHON = re.compile(r"(?:[A-Za-z_]\w*\.)*(?P<name>[A-Za-z_]\w*): ?(?P<text>.*)")
_CAUSE_IN_JAVA = re.compile(r"Caused by: (?P<cause>.+)")
_CLASS_IN_JAVA = re.compile(r"^(?:[a-z][\w$]*\.)+(?P<name>[A-Z][\w$]*)(?:: )?(?P<text>.*)")
_CONDITION = re.compile(r"\[[A-Z][A-Z0-9_.]+\] ")
_SQLSTATE = re.compile(r"\s*SQLSTATE: \w+.*")
_OUT_OF_MEMORY = re.compile(r"OutOfMemoryError|Java heap space|GC overhead limit exceeded")
_LOST = re.compile(
    r"StatusCode\.UNAVAILABLE|Connection refused|Answer from Java side is empty|Error while sending or receiving|"
    r"SparkContext was shut down|Cannot call methods on a stopped SparkContext|SESSION_CLOSED|RETRIES_EXCEEDED"
)
_OWN_ERRORS = "emulator."
_NOT_INSTALLED = re.compile(r"No module named '(?:emulator|pyarrow|pandas)'")


class SparkError(UserError):
    """Spark failed; the text is the line that says most."""


@contextmanager
def spark_errors(where: str = "Spark") -> Iterator[None]:
    """Turn errors of Spark in the `with` block into one line.

    Args:
        where: Spark runs, as the subject of the line.

    Raises:
        SparkError: Spark, its JVM, its server or a worker failed.
    """
    try:
        with _silent_loggers():
            yield
    except (PySparkException, Py4JError) as error:
        raise SparkError(f"{where}: {gist(str(error))}") from error
    except ConnectionError as error:  # py4j's: Java has gone
        raise SparkError(f"{where}: {_ENDED}") from error
    except Exception as error:
        # grpc is there with Connect alone; its errors are no errors of Spark when the server is killed.
        if not type(error).__module__.startswith("grpc"):
            raise
        raise SparkError(f"{where}: {gist(str(error))}") from error


def raise_errors_only() -> None:
    """Let pyspark raise the errors of queries, and not print them before, with the stack of Java as JSON of 10 KB.

    It stays so for all sessions of this process, unless RMQEMU_SPARK_LOG asks for what Spark logs.
    """
    if LOG not in os.environ:
        for logger in _query_loggers():
            logger.disabled = True


def _query_loggers() -> list[PySparkLogger]:
    # Made by pyspark, since it logs through a class of its own, which a logger that exists already would not have.
    return [PySparkLogger.getLogger(name) for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger")]


@contextmanager
def _silent_loggers() -> Iterator[None]:
    """Those of pyspark that print errors with the stack of Java, before they are raised."""
    loggers = _query_loggers()
    before = [logger.disabled for logger in loggers]
    for logger in loggers:
        logger.disabled = True
    try:
        yield
    finally:
        for logger, disabled in zip(loggers, before, strict=True):
            logger.disabled = disabled


_ENDED = "it has ended while it worked, or does not answer any more"


def gist(text: str) -> str:
    """What an error of Spark is about, in one line.

    Args:
        text: with stacks of Java and of Python workers.
    """
    if "No space left on device" in text:
        return no_room(str(scratch()))
    if _OUT_OF_MEMORY.search(text):
        return "Java has no memory left: give it more with SPARK_DRIVER_MEMORY or spark.executor.memory"
    if "JAVA_GATEWAY_EXITED" in text:
        return f"Java has ended while it started; {LOG}=warn shows why"
    if "Traceback (most recent call last)" in text:
        return _of_python(text)
    if _LOST.search(text):
        return _ENDED
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    causes = _CAUSE_IN_JAVA.findall(text)
    line = str(causes[-1]) if causes else next((line for line in lines if not line.startswith("An error occurred")), "")
    if line.startswith(":"):
        line = line[1:].strip()
    return _plain(line) or "it failed without a reason"


def _of_python(text: str) -> str:
    """The last line of the traceback of a worker: name and text of its exception, or the text of one of ours."""
    traceback = text.rpartition("Traceback (most recent call last)")[2].splitlines()[1:]
    found = [line for line in traceback if _ERROR_OF_PYTHON.fullmatch(line)]
    if not found:
        return "a worker failed"
    match = _ERROR_OF_PYTHON.fullmatch(found[0])
    assert match is not None
    if _NOT_INSTALLED.search(match["text"]):
        return "workers run a Python without rocketmq-emulator: set PYSPARK_PYTHON to one that has it"
    text = _SQLSTATE.sub("", match["text"])
    return text if found[0].startswith(_OWN_ERRORS) else f"a worker failed: {match['name']}: {text}"


def _plain(line: str) -> str:
    """A line of Java without package names, classes of conditions and SQL states."""
    match = _CLASS_IN_JAVA.match(line)
    if match is not None:
        is_plain = match["text"] and match["name"].startswith(("Spark", "Analysis", "Parse"))
        line = match["text"] if is_plain else f"{match['name']}: {match['text']}".removesuffix(": ")
    return _SQLSTATE.sub("", _CONDITION.sub("", line)).strip()
