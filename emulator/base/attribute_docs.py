"""The docstrings below the attributes of classes, which Python does not keep."""

import ast
import inspect
import sys
from functools import cache
from itertools import pairwise
from textwrap import dedent


@cache
def attribute_docs(of: type) -> dict[str, str]:
    """What a class says of its attributes.

    Args:
        of: a class whose source is there; what a base class says holds unless the class says more.

    Returns:
        Mapping attribute -> the docstring below it, in one line.
    """
    found: dict[str, str] = {}
    for item in reversed(of.__mro__):
        if item.__module__ not in sys.stdlib_module_names:
            found |= _own_docs(item)
    return found


def _own_docs(of: type) -> dict[str, str]:
    tree = ast.parse(dedent(inspect.getsource(of)))
    (body,) = (node.body for node in tree.body if isinstance(node, ast.ClassDef))
    found: dict[str, str] = {}
    for before, after in pairwise(body):
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str):
            targets = [before.target] if isinstance(before, ast.AnnAssign) else getattr(before, "targets", [])
            found |= {
                target.id: " ".join(after.value.value.split()) for target in targets if isinstance(target, ast.Name)
            }
    return found
