"""The extras of the package: what is installed only where it is needed.

Launching, breaking and joining a cluster, and all that is reported about one run, need nothing of `spark`: Spark with
its Java, pandas, and the arrays of statistics over many seeds. Guests that are clients of RocketMQ 5 need `proxy`.
"""

from importlib.util import find_spec

from emulator.base.errors import UserError

INSTALL = "pip install 'rocketmq-emulator[spark]'"
_SPARK = ("pyspark", "pandas", "scipy", "numpy")
"""Java is not among them: any that is installed will do."""
_INSTALL_PROXY = "pip install 'rocketmq-emulator[proxy]'"
_PROXY = ("h2", "google.protobuf")


class ExtraMissingError(UserError):
    """Something needs an extra, which is not installed; the text ends with the line to type."""


def require_extra(subject: str) -> None:
    """Refuse what needs the extra `spark` where it is not installed; nothing is imported.

    Args:
        subject: what needs it, as the subject of a sentence.

    Raises:
        ExtraMissingError: a package of the extra is missing.
    """
    _require(subject, _SPARK, INSTALL)


def has_extra() -> bool:
    """Whether the extra `spark` is installed; nothing is imported."""
    return not _missing(_SPARK)


def require_proxy_extra(subject: str) -> None:
    """Refuse what needs the extra `proxy` where it is not installed; nothing is imported.

    Args:
        subject: what needs it, as the subject of a sentence.

    Raises:
        ExtraMissingError: a package of the extra is missing.
    """
    _require(subject, _PROXY, _INSTALL_PROXY)


def _require(subject: str, modules: tuple[str, ...], install: str) -> None:
    missing = _missing(modules)
    if missing:
        raise ExtraMissingError(f"{subject} needs {', '.join(missing)}: {install}")


def _missing(modules: tuple[str, ...]) -> list[str]:
    return [name for name in modules if not _is_installed(name)]


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # of the package that it is in
        return False
