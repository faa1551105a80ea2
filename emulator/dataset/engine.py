"""The engines that judge runs."""

from enum import StrEnum


class Engine(StrEnum):
    """What judges runs."""

    LOCAL = "local"
    """This process: no Java is needed."""
    SPARK = "spark"
    """The tasks of a Spark job."""
