"""Columns of rows as Arrow arrays, made from their buffers.

`pyarrow.array` would import pandas to find out that a tuple is none of its series: seconds in which a live cluster
stands still, and more memory than the cluster takes.
"""

from array import array
from collections.abc import Sequence
from itertools import accumulate
from typing import Any


def int_array(pa: Any, values: Sequence[int]) -> Any:
    """64 bit numbers, none of them null."""
    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(array("q", values))])


def text_array(pa: Any, values: Sequence[str]) -> Any:
    """Texts in UTF-8, none of them null."""
    content = "".join(values).encode()
    encoded = values if len(content) == sum(map(len, values)) else [value.encode() for value in values]
    ends = array("i", accumulate(map(len, encoded), initial=0))
    return pa.Array.from_buffers(pa.string(), len(values), [None, pa.py_buffer(ends), pa.py_buffer(content)])
