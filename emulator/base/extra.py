"""The extra `spark` of the package: Spark with its Java, pandas, and the arrays of statistics over many seeds.

Launching, breaking and joining a cluster, and all that is reported about one run, need nothing of it.
"""

from importlib.util import find_spec

from emulator.base.errors import UserError

INSTALL = "pip install 'rocketmq-emulator[spark]'"
_MODULES = ("pyspark", "pandas", "scipy", "numpy")
"""Java is not among them: any that is installed will do."""


class ExtraMissingError(UserError):
    """Something needs the extra, which is not installed; the text ends with the line to type."""


def require_extra(subject: str) -> None:
    """Refuse what needs the extra where it is not installed; nothing is imported.

    Args:
        what: that needs it, as the subject of a sentence.

    Raises:
        ExtraMissingError: a package of the extra is missing.
    """
    missing = _missing()
    if missing:
        raise ExtraMissingError(f"{subject} needs {', '.join(missing)}: {INSTALL}")


def has_extra() -> bool:
    """Whether the extra is installed; nothing is imported."""
    return not _missing()


def _missing() -> list[str]:
    return [name for name in _MODULES if find_spec(name) is None]
