"""What plays and judges runs, by name."""

from enum import StrEnum


class EngineName(StrEnum):
    """What plays and judges runs."""

    LOCAL = "local"
    """This process: no Java is needed."""
    SPARK = "spark"
    """The tasks of a Spark job."""
