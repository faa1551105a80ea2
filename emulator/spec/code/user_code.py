"""The one place where the emulator runs code that a scenario names, if the user allows that.

Scenario files are sent from one person to another, so a file that names code is as dangerous as a program. It may name
an entry point of an installed package, or a function of a module next to the file; never a module of Python or of an
installed package, and never what such a module has imported.
"""

import os
import sys
from collections.abc import Callable, Iterator
from hashlib import blake2b
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

import attrs

from emulator.base.files import UnreadableError, read_text
from emulator.spec.bundled import example
from emulator.spec.code.permission_of_code import ALLOW_CODE, TRUSTED_FOLDERS
from emulator.spec.tables.bounds import FILE_BYTES_MAX
from nodes.config.user_functions import FunctionKind, UserFunctionError, register_user_function
from nodes.fields import shown

_PROBLEM_MAX = 200
_MODULES = "rmqemu_user_code"
"""With this the names of users' modules begin in `sys.modules`, so that none stands in the place of another one."""


@attrs.frozen
class UserCode:
    """The code that a scenario may run."""

    folder: Path | None = None
    """Where its modules are: the folder of its file; None: it has no file, and only entry points can be named."""
    is_allowed: bool = False

    @classmethod
    def next_to(cls, file: Path, *, allow: bool = False) -> "UserCode":
        """The code next to a file.

        Args:
            file: of a scenario, or what else names code.
            allow: whether the user allows it; else only below a folder that the user trusts.
        """
        folder = Path(os.path.realpath(file)).parent
        return cls(folder, allow or any(folder.is_relative_to(trusted) for trusted in _trusted_folders()))

    def find(self, kind: FunctionKind, name: str) -> Callable[..., Any]:
        """Import a function, and let options name it.

        Raises:
            UserFunctionError: in one line, what is wrong.
        """
        if not self.is_allowed:
            raise UserFunctionError(
                f"names code, {name}, which runs only with {ALLOW_CODE} (allow_code=True in Python), or where the file "
                f"lies below a folder of {TRUSTED_FOLDERS}; read the code first"
            )
        function = self._of_module(name) if ":" in name else _of_entry_point(_entry_point(kind, name))
        if not callable(function):
            raise UserFunctionError(f"{name} cannot be called: it is a {type(function).__name__}")
        register_user_function(kind, name, function)
        return function  # type: ignore[no-any-return]

    def source(self, name: str) -> tuple[Path, bytes] | None:
        """The file of the module of a function, relative to the folder, and its content; None for an entry point.

        Raises:
            UserFunctionError: there is no such file.
        """
        if ":" not in name or self.folder is None:
            return None
        path, text = self._file(name)
        return path.relative_to(self.folder), text.encode()

    def _of_module(self, name: str) -> Any:
        path, text = self._file(name)
        module = _imported(path, text, name)
        found: Any = module
        for part in name.partition(":")[2].split("."):
            try:
                found = getattr(found, part)
            except AttributeError:
                raise UserFunctionError(f"{path.name} has no {name.partition(':')[2]}") from None
        if callable(found) and getattr(found, "__module__", None) != module.__name__:
            raise UserFunctionError(f"{name} is imported there: expected a function that {path.name} defines")
        return found

    def _file(self, name: str) -> tuple[Path, str]:
        """Path and text of the module that a name begins with."""
        steps = name.partition(":")[0].split(".")
        if steps[0] in sys.stdlib_module_names:
            raise UserFunctionError(f"{steps[0]} is a module of Python: expected {_EXPECTED}")
        if self.folder is None:
            raise UserFunctionError(f"there is no file that {name} could lie next to: expected {_EXPECTED}")
        path = self.folder.joinpath(*steps).with_suffix(".py")
        relative_path = path.relative_to(self.folder)
        if not Path(os.path.realpath(path)).is_relative_to(self.folder):
            raise UserFunctionError(f"{relative_path} is a link out of its folder: expected {_EXPECTED}")
        try:
            return path, read_text(path, FILE_BYTES_MAX)
        except UnreadableError as error:
            raise UserFunctionError(
                f"{relative_path} next to the file cannot be read: {error}; expected {_EXPECTED}"
            ) from None


_EXPECTED = "an entry point, or a module next to the file"


def _trusted_folders() -> Iterator[Path]:
    """Those of the environment, and the examples of the package, which is code that the user has installed."""
    yield Path(os.path.realpath(example("")))
    for text in os.environ.get(TRUSTED_FOLDERS, "").split(os.pathsep):
        if text and Path(text).is_absolute():
            yield Path(os.path.realpath(text))


def _imported(path: Path, text: str, name: str) -> ModuleType:
    """The module of a file, imported once as long as it is not changed.

    Its source is compiled here: a compiled file in `__pycache__` may hold something else.
    """
    digest = blake2b(f"{path}\n{text}".encode(), digest_size=8).hexdigest()
    known = sys.modules.get(f"{_MODULES}.{digest}.{path.stem}")
    if known is not None:
        return known
    module = ModuleType(f"{_MODULES}.{digest}.{path.stem}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    try:
        exec(compile(text, path, "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - the user has allowed it
    except (Exception, SystemExit) as error:  # what the user's module raises
        del sys.modules[module.__name__]
        raise _not_imported(name, error) from error
    return module


def _of_entry_point(point: EntryPoint) -> Any:
    try:
        return point.load()
    except (Exception, SystemExit) as error:  # what the user's package raises
        raise _not_imported(point.value, error) from error


def _not_imported(name: str, error: BaseException) -> UserFunctionError:
    return UserFunctionError(f"cannot import {name}: {shown(f'{type(error).__name__}: {error}', _PROBLEM_MAX)}")


def _entry_point(kind: FunctionKind, name: str) -> EntryPoint:
    found = {point.value: point for point in entry_points(group=kind, name=name)}
    if len(found) == 1:
        return next(iter(found.values()))
    if found:
        raise UserFunctionError(f"several packages have an entry point {name} of {kind}: {', '.join(sorted(found))}")
    known = sorted(dict.fromkeys(point.name for point in entry_points(group=kind)))
    others = f"; there are {', '.join(known)}" if known else "; no installed package has one"
    raise UserFunctionError(f"no entry point {name} of {kind}{others}")
