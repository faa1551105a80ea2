"""Sizes as people write them: `200MB`, `1GiB`, `500000`."""

import re

from emulator.spec.tables.mistakes import SpecError
from nodes.fields import LONG_MAX, shown

_UNITS = {"": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_SIZE = re.compile(rf"([0-9]{{1,19}}) ?({'|'.join(_UNITS)})")


def size_of(where: str, text: str) -> int:
    """A number of bytes.

    Args:
        where: the option that was given.
        text: its value.

    Raises:
        SpecError: it is none, or too large.
    """
    found = _SIZE.fullmatch(text)
    size_bytes = int(found[1]) * _UNITS[found[2]] if found else 0
    if not 0 < size_bytes <= LONG_MAX:
        raise SpecError(where, f"expected bytes >= 1 such as 200MB or 1GiB, not {shown(text)}")
    return size_bytes
