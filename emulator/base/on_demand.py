"""The face of a package whose modules are imported when somebody asks for a name: importing the package stays fast."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any


def attribute_of(package: str, modules: Mapping[str, str], name: str) -> Any:
    """The value of `__getattr__` of a package.

    Args:
        package: its name.
        modules: mapping name -> the module below the package that has it.
        name: what was asked for.

    Raises:
        AttributeError: no module has it.
    """
    if name in modules:
        return getattr(import_module(f"{package}.{modules[name]}"), name)
    raise AttributeError(f"module {package!r} has no attribute {name!r}")
