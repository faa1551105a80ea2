"""What runs campaigns and judges runs, by name."""

import os
from collections.abc import Callable, Mapping
from enum import StrEnum

import attrs

from emulator.base.errors import UserError
from emulator.base.extra import has_extra
from emulator.base.text import nearest

ENGINE = "RMQEMU_ENGINE"
"""Environment variable: the engine of commands that name none."""


class EngineName(StrEnum):
    """What runs campaigns and judges runs."""

    LOCAL = "local"
    """This process: no Java is needed."""
    SPARK = "spark"
    """The tasks of a Spark job."""


class EngineChoice(StrEnum):
    """The values of `--engine` and of the variable."""

    AUTO = "auto"
    """The engine follows the work: `ROWS_FOR_SPARK`."""
    LOCAL = "local"
    SPARK = "spark"


ROWS_FOR_SPARK = 2_000_000
"""Fewer rows are judged sooner in this process: Spark takes about 12 s of CPU to start and to warm up."""


@attrs.frozen
class Work:
    """What a command has to do."""

    words: str
    """In the line that names the engine: `a campaign of 24 runs`."""
    rows: int | None = None
    """Of the trace; None: Spark is to do it, however little it is."""


@attrs.frozen
class Chosen:
    """The engine of a command, and why."""

    engine: EngineName
    why: str
    is_named: bool
    """Whether an option or the environment names it; else the work decided, and another engine will do as well."""


def choose_engine(
    option: EngineChoice | None,
    master: str | None,
    remote: str | None,
    work: Callable[[], Work],
    environment: Mapping[str, str] = os.environ,
) -> Chosen:
    """The engine of a command: its option decides, else the environment, else the work.

    Args:
        option: `--engine`; None: it was not given.
        master: `--master`.
        remote: `--remote`.
        work: what there is to do; called if nothing else decides.
        environment: of this process.

    Raises:
        UserError: Spark's options were given to this process, or the environment names no engine.
    """
    given = "--master" if master is not None else "--remote" if remote is not None else ""
    if option is EngineChoice.LOCAL and given:
        raise UserError(f"{given}: expected only with --engine spark")
    if given:
        return Chosen(EngineName.SPARK, given, is_named=True)
    configured = environment.get(ENGINE, "")
    if option is None and configured and configured not in list(EngineChoice):
        raise UserError(f"{ENGINE}: {nearest('engine', configured, [item.value for item in EngineChoice])}")
    choice = option or EngineChoice(configured or EngineChoice.AUTO)
    if choice is not EngineChoice.AUTO:
        return Chosen(EngineName(choice), "--engine" if option is not None else ENGINE, is_named=True)
    return _by_work(work())


def _by_work(work: Work) -> Chosen:
    if work.rows is not None and work.rows < ROWS_FOR_SPARK:
        why = f"{work.words}; Spark from {ROWS_FOR_SPARK:,} rows on, or with --engine spark"
        return Chosen(EngineName.LOCAL, why, is_named=False)
    if not has_extra():
        return Chosen(EngineName.LOCAL, f"{work.words}; the extra spark is not installed", is_named=False)
    return Chosen(EngineName.SPARK, work.words, is_named=False)
