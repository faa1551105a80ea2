"""What the bits of a permission say together.

Mirrors:
    `org.apache.rocketmq.common.constant.PermName`.
"""

from nodes.protocol.model import PermName, is_readable, is_writeable


def is_inherited(perm: int) -> bool:
    """Whether the INHERIT bit is set."""
    return bool(perm & PermName.INHERIT)


def is_priority(perm: int) -> bool:
    """Whether the PRIORITY bit is set."""
    return bool(perm & PermName.PRIORITY)


def is_accessible(perm: int) -> bool:
    """Whether one may read or write."""
    return is_readable(perm) or is_writeable(perm)


def is_valid(perm: int) -> bool:
    """Whether somebody may ask for it: the priority bit is none that may be set."""
    return 0 <= perm < PermName.PRIORITY


def perm_to_text(perm: int) -> str:
    """A letter for each of the bits READ, WRITE and INHERIT, `-` where it is not set: `RW-`."""
    bits = ((is_readable(perm), "R"), (is_writeable(perm), "W"), (is_inherited(perm), "X"))
    return "".join(letter if is_set else "-" for is_set, letter in bits)
