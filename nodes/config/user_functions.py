"""Functions of the user's own, which options name by module and function, or by entry point.

A name is only text until a scenario is to be played: who reads an old run need not have its functions.
"""

import re
from collections.abc import Callable
from enum import StrEnum
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from nodes.fields import Rule, shown

_PROBLEM_MOST = 200
_NAME_MOST = 255
_FUNCTION = r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*"
_ENTRY_POINT = r"[a-z][a-z0-9_.-]*"
"""In small letters, so that nothing of RocketMQ's can be meant."""
_FORM = re.compile(f"{_FUNCTION}|{_ENTRY_POINT}")


class FunctionKind(StrEnum):
    """What a function is for: the group of its entry points."""

    STRATEGY = "rmqemu.strategies"
    """An `AllocateMessageQueueStrategy`."""
    HASH_FUNCTION = "rmqemu.hash_functions"
    """From a text to a number."""


class UserFunctionError(ValueError):
    """A function cannot be imported, or is none."""


def function_rule(kind: FunctionKind) -> Rule:
    """What the name of a function looks like."""
    return Rule(
        f"a function of your own as package.module:function, or the name of an entry point of {kind}",
        lambda value: isinstance(value, str) and len(value) <= _NAME_MOST and bool(_FORM.fullmatch(value)),
    )


_loaded: dict[tuple[FunctionKind, str], Callable[..., Any]] = {}


def load_user_function(kind: FunctionKind, name: str) -> Callable[..., Any]:
    """Import a function.

    Raises:
        UserFunctionError: in one line, what is wrong.
    """
    point = EntryPoint(name, name, kind) if ":" in name else _entry_point(kind, name)
    try:
        function = point.load()
    except (Exception, SystemExit) as error:  # whatever the user's module raises
        problem = shown(f"{type(error).__name__}: {error}", _PROBLEM_MOST)
        raise UserFunctionError(
            f"cannot import {point.value}: {problem}; it must be installed, or in a directory of PYTHONPATH"
        ) from error
    if not callable(function):
        raise UserFunctionError(f"{point.value} cannot be called: it is a {type(function).__name__}")
    _loaded[kind, name] = function
    return function  # type: ignore[no-any-return]


def user_function(kind: FunctionKind, name: str) -> Callable[..., Any]:
    """The function as it was last imported; imported now if it never was.

    Raises:
        UserFunctionError: it cannot be imported.
    """
    return _loaded.get((kind, name)) or load_user_function(kind, name)


def is_loaded(kind: FunctionKind, name: str) -> bool:
    """Whether a scenario of this process has named the function: a name in a request makes nobody import it."""
    return (kind, name) in _loaded


def _entry_point(kind: FunctionKind, name: str) -> EntryPoint:
    found = {point.value: point for point in entry_points(group=kind, name=name)}
    if len(found) == 1:
        return next(iter(found.values()))
    if found:
        raise UserFunctionError(f"several packages have an entry point {name} of {kind}: {', '.join(sorted(found))}")
    known = sorted(dict.fromkeys(point.name for point in entry_points(group=kind)))
    others = f"; there are {', '.join(known)}" if known else "; no installed package has one"
    raise UserFunctionError(f"no entry point {name} of {kind}{others}")
