"""What runs campaigns and judges runs, by name."""

import os
from collections.abc import Mapping
from enum import StrEnum

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


def engine_of(
    option: EngineName | None,
    master: str | None,
    remote: str | None = None,
    environment: Mapping[str, str] = os.environ,
) -> EngineName:
    """The engine of a command: its option decides, else the environment; else Spark where it is installed.

    Args:
        option: `--engine`; None: it was not given.
        master: `--master`.
        remote: `--remote`.
        environment: of this process.

    Raises:
        UserError: Spark's options were given to this process, or the environment names no engine.
    """
    given = "--master" if master is not None else "--remote" if remote is not None else ""
    if option is EngineName.LOCAL and given:
        raise UserError(f"{given}: expected only with --engine spark")
    if option is not None or given:
        return option or EngineName.SPARK
    configured = environment.get(ENGINE, "")
    if configured and configured not in list(EngineName):
        raise UserError(f"{ENGINE}: {nearest('engine', configured, [item.value for item in EngineName])}")
    if configured:
        return EngineName(configured)
    return EngineName.SPARK if has_extra() else EngineName.LOCAL
