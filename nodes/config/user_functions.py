"""Functions of the user's own, which options name by module and function, or by entry point.

A name is only text here: nodes import nothing. What runs a cluster finds the functions that its scenario names, if the
user allows that, and registers them before the first node starts.
"""

import re
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Any

import attrs

from nodes.fields import Rule, key_of
from nodes.values import frozen

_NAME_MAX = 255
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
    """A function is not allowed, cannot be found, or is none."""


@frozen
class FunctionRule(Rule):
    """What a field may hold that can name a function: all that names code in a scenario has this rule."""

    kind: FunctionKind = attrs.field(kw_only=True)

    def names_code(self, value: object) -> bool:
        """Whether a value is the name of a function, and nothing else that the field may hold."""
        return _is_name(value)


def function_rule(kind: FunctionKind, names: type[StrEnum] | None = None) -> FunctionRule:
    """What the name of a function looks like.

    Args:
        kind: of the function.
        names: what else the field may hold; None: nothing else.
    """
    expected = f"a function of your own as module:function, or the name of an entry point of {kind}"
    if names is not None:
        expected = f"one of {', '.join(names)}, {expected}"

    def holds(value: object) -> bool:
        return (names is not None and isinstance(value, names)) or _is_name(value)

    return FunctionRule(expected, holds, kind=kind)


def _is_name(value: object) -> bool:
    return isinstance(value, str) and len(value) <= _NAME_MAX and bool(_FORM.fullmatch(value))


def named_functions(value: Any) -> Iterator[tuple[str, FunctionKind, str]]:
    """The functions that the fields of a class of attrs name: key, kind and name of each."""
    for field in attrs.fields(type(value)):
        rule, held = field.metadata.get("rule"), getattr(value, field.name)
        if isinstance(rule, FunctionRule) and rule.names_code(held):
            yield key_of(field), rule.kind, str(held)


_registered: dict[tuple[FunctionKind, str], Callable[..., Any]] = {}


def register_user_function(kind: FunctionKind, name: str, function: Callable[..., Any]) -> None:
    """Let options name a function; the last one of a name counts."""
    _registered[kind, name] = function


def user_function(kind: FunctionKind, name: str) -> Callable[..., Any]:
    """The function as it was last registered.

    Raises:
        UserFunctionError: no scenario of this process has been allowed to name it.
    """
    try:
        return _registered[kind, name]
    except KeyError:
        raise UserFunctionError(f"no scenario of this process may name {name}") from None


def is_registered(kind: FunctionKind, name: str) -> bool:
    """Whether a scenario of this process has named the function: a name in a request makes no node import it."""
    return (kind, name) in _registered
