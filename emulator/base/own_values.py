"""Values of this program that were pickled, read from a file that others may have written.

A pickle can name any function and have it called. So only classes of the packages that the reader names are found, with
their methods, and containers of Python: their constructors only hold values.
"""

import io
import pickle
from collections.abc import Collection
from enum import Enum, EnumType
from types import MethodType
from typing import Any

from emulator.base.errors import UserError

_CONTAINERS = frozenset(
    {("builtins", "set"), ("builtins", "frozenset")}
    | {("collections", name) for name in ("Counter", "OrderedDict", "defaultdict", "deque")}
    | {("array", "array"), ("array", "_array_reconstructor"), ("functools", "partial")}
)
_RANGE_MAX = 1_000_000


class ForeignValueError(UserError):
    """A pickle names something else than a value of this program; nothing was called."""


def unpickled(content: bytes, packages: Collection[str]) -> Any:
    """The value of a pickle.

    Args:
        content: the pickle.
        packages: whose classes it may name, also in their modules.

    Raises:
        ForeignValueError: it names something else, or cannot be read.
    """
    try:
        return _RestrictedUnpickler(content, packages).load()
    except ForeignValueError:
        raise
    except Exception as error:  # whatever damaged bytes lead to
        raise ForeignValueError(f"no value of this program: {type(error).__name__}") from error


def _short_range(*bounds: int) -> range:
    """A range that has no more numbers than values of this program have: a set can be made of it."""
    found = range(*bounds)
    if found[_RANGE_MAX:]:
        raise ForeignValueError(f"no value of this program: a range of more than {_RANGE_MAX} numbers")
    return found


class _RestrictedUnpickler(pickle.Unpickler):
    def __init__(self, content: bytes, packages: Collection[str]) -> None:
        super().__init__(io.BytesIO(content))
        self._packages = packages

    def find_class(self, module: str, name: str, /) -> Any:
        if (module, name) in _CONTAINERS:
            return super().find_class(module, name)
        if (module, name) == ("builtins", "getattr"):
            return self._attribute
        if (module, name) == ("builtins", "range"):
            return _short_range
        if self._is_ours(module):
            found = super().find_class(module, name)
            if isinstance(found, type) and found.__module__ == module:
                return found
        raise ForeignValueError(f"no value of this program: it names {module}.{name}")

    def _is_ours(self, module: str) -> bool:
        return any(module == package or module.startswith(f"{package}.") for package in self._packages)

    def _attribute(self, owner: object, name: str) -> MethodType | Enum:
        """A method of a value, which a pickle stores as a call of `getattr`; no other attribute.

        Python before 3.11.4 stores members of enums in the same way.
        """
        if isinstance(owner, EnumType) and self._is_ours(owner.__module__) and name in owner.__members__:
            return owner.__members__[name]
        found = getattr(owner, name, None) if self._is_ours(type(owner).__module__) else None
        if isinstance(found, MethodType) and not name.startswith("__"):
            return found
        raise ForeignValueError(f"no value of this program: it names {name} of a {type(owner).__name__}")
